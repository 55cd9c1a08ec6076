-- The whole schema, made by `make sql` from migrations/ and functions/: edit those instead.
SET check_function_bodies = false;

CREATE SCHEMA app;

COMMENT ON SCHEMA app IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA archive;

CREATE SCHEMA auth;

CREATE SCHEMA bee;

COMMENT ON SCHEMA bee IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA deliver;

CREATE SCHEMA frontier;

CREATE SCHEMA knowledge;

CREATE SCHEMA lexicon;

COMMENT ON SCHEMA lexicon IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA measure;

CREATE SCHEMA nuq;

COMMENT ON SCHEMA nuq IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA observability;

COMMENT ON SCHEMA observability IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA queue;

CREATE SCHEMA rag;

COMMENT ON SCHEMA rag IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA store;

CREATE SCHEMA tenancy;

CREATE SCHEMA unobtanium;

COMMENT ON SCHEMA unobtanium IS 'Read-only views of Trapline: docs/views.md';

CREATE SCHEMA webhook;

COMMENT ON SCHEMA webhook IS 'Read-only views of Trapline: docs/views.md';

CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public;

COMMENT ON EXTENSION pg_stat_statements IS 'track planning and execution statistics of all SQL statements executed';

CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;

COMMENT ON EXTENSION pg_trgm IS 'text similarity measurement and index searching based on trigrams';

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';

CREATE TYPE archive.new_file AS (
	visit integer,
	request_number smallint,
	url_id bigint,
	last_modified timestamp with time zone,
	size bigint,
	media_type text,
	canonical_url_id bigint,
	charset text,
	headers text,
	sha256 bytea
);

CREATE TYPE archive.new_redirect AS (
	visit integer,
	number smallint,
	request_number smallint,
	url_id bigint,
	to_url_id bigint,
	source smallint,
	is_permanent boolean,
	by_security_policy boolean,
	last_modified timestamp with time zone
);

CREATE TYPE archive.new_request AS (
	visit integer,
	number smallint,
	url_id bigint,
	sent_at timestamp with time zone,
	total_ms real,
	dns_ms real,
	connect_ms real,
	tls_ms real,
	first_byte_ms real,
	robots_approved boolean,
	exit_code smallint,
	status smallint,
	etag text,
	last_modified timestamp with time zone,
	remote_address text
);

CREATE TYPE archive.new_visit AS (
	organisation_id uuid,
	uuid uuid,
	agent_id bigint,
	job_id uuid,
	task_id bigint,
	site_id uuid,
	url_id bigint,
	crawl_type smallint,
	started_at timestamp with time zone,
	took_ms integer,
	exit_code smallint,
	message text
);

CREATE TYPE lexicon.job_type_enum AS ENUM (
    'one_time',
    'scheduled',
    'recurring'
);

CREATE TYPE lexicon.log_level_enum AS ENUM (
    'DEBUG',
    'INFO',
    'WARNING',
    'ERROR',
    'CRITICAL'
);

CREATE TYPE lexicon.status_enum AS ENUM (
    'pending',
    'running',
    'completed',
    'failed',
    'cancelled',
    'active',
    'inactive'
);

CREATE TYPE nuq.group_status AS ENUM (
    'active',
    'completed',
    'cancelled'
);

CREATE TYPE nuq.job_status AS ENUM (
    'queued',
    'active',
    'completed',
    'failed'
);

CREATE TYPE queue.claimed AS (
	task_id bigint,
	lane_id bigint,
	lease_id bigint,
	priority smallint,
	turn bigint,
	attempts smallint,
	stalls smallint,
	kind text,
	payload text,
	max_attempts smallint,
	timeout interval,
	deadline timestamp with time zone,
	trace_id uuid,
	blocked_by text,
	blocked_until timestamp with time zone,
	job_id uuid,
	job_status text
);

CREATE TYPE queue.ending AS (
	task_id bigint,
	verdict smallint,
	code smallint,
	result text,
	error text,
	run_at timestamp with time zone,
	lane_id bigint,
	job_id uuid,
	organisation_id uuid,
	gate_id bigint,
	priority smallint,
	attempts smallint,
	stalls smallint,
	slots smallint,
	agent_id bigint,
	claimed_at timestamp with time zone
);

CREATE TYPE queue.gate_change AS (
	gate_id bigint,
	gap interval,
	pressure smallint,
	not_before timestamp with time zone
);

CREATE TYPE queue.new_direct AS (
	id uuid,
	organisation_id uuid,
	member_id uuid,
	kind text,
	priority smallint,
	options text,
	metadata text,
	trace_id uuid,
	zero_data_retention boolean,
	ttl interval,
	failed_ttl interval
);

CREATE TYPE queue.new_event AS (
	job_id uuid,
	task_id bigint,
	type text,
	data text
);

CREATE TYPE queue.new_gate AS (
	name text,
	gap interval,
	bound integer,
	lane_gap interval,
	lane_bound integer
);

CREATE TYPE queue.new_task AS (
	job_id uuid,
	gate text,
	kind text,
	payload text,
	parent_id bigint,
	priority smallint,
	max_attempts smallint,
	timeout interval,
	run_at timestamp with time zone,
	deadline timestamp with time zone,
	counted boolean,
	source smallint,
	trace_id uuid,
	key_scope uuid,
	key uuid,
	key_expires_at timestamp with time zone
);

CREATE TYPE queue.tally AS (
	job_id uuid,
	organisation_id uuid,
	completed bigint,
	failed bigint,
	skipped bigint,
	cancelled bigint,
	slots bigint
);

CREATE TYPE queue.verdict AS (
	lease_id bigint,
	task_id bigint,
	verdict smallint,
	code smallint,
	result text,
	error text,
	run_at timestamp with time zone
);

CREATE TYPE queue.want AS (
	lane_id bigint,
	take integer,
	after_priority smallint,
	after_turn bigint,
	to_priority smallint,
	limited boolean
);

CREATE TYPE store.find AS (
	page_id uuid,
	is_new boolean,
	before_id bigint,
	version_id bigint,
	number integer,
	change smallint,
	returned boolean,
	differs boolean
);

CREATE TYPE store.new_sighting AS (
	page_id uuid,
	organisation_id uuid,
	site_id uuid,
	url_id bigint,
	visit_id bigint,
	job_id uuid,
	seen_at timestamp with time zone,
	times integer,
	compared_with bigint,
	alike boolean,
	added_lines integer,
	removed_lines integer,
	added_words integer,
	removed_words integer,
	status smallint,
	content_hash bytea,
	extractor_version smallint,
	content_type text,
	title text,
	language text,
	page_type text,
	text text,
	markdown text,
	metadata text,
	links text,
	warning text,
	sha256 bytea,
	variant bytea
);

CREATE TYPE store.seen AS (
	page_id uuid,
	version_id bigint,
	number integer,
	change smallint
);

CREATE FUNCTION archive.record_visits(p_visits archive.new_visit[], p_requests archive.new_request[], p_redirects archive.new_redirect[], p_files archive.new_file[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT nextval('archive.visit_id_seq') FROM generate_series(1, cardinality(p_visits)));
BEGIN
    INSERT INTO archive.visit (
        id, organisation_id, uuid, agent_id, job_id, task_id, site_id, url_id, crawl_type,
        started_at, took_ms, exit_code, message)
    OVERRIDING SYSTEM VALUE
    SELECT ids[v.position], v.organisation_id, v.uuid, v.agent_id, v.job_id, v.task_id, v.site_id,
           v.url_id, v.crawl_type, v.started_at, v.took_ms, v.exit_code, v.message
    FROM unnest(p_visits) WITH ORDINALITY AS v (
        organisation_id, uuid, agent_id, job_id, task_id, site_id, url_id, crawl_type, started_at,
        took_ms, exit_code, message, position);

    INSERT INTO archive.request (
        visit_id, started_at, number, organisation_id, url_id, sent_at, total_ms, dns_ms,
        connect_ms, tls_ms, first_byte_ms, robots_approved, exit_code, status, etag, last_modified,
        remote_address)
    SELECT ids[r.visit], (p_visits[r.visit]).started_at, r.number, (p_visits[r.visit]).organisation_id,
           r.url_id, r.sent_at, r.total_ms, r.dns_ms, r.connect_ms, r.tls_ms, r.first_byte_ms,
           r.robots_approved, r.exit_code, r.status, r.etag, r.last_modified, r.remote_address
    FROM unnest(p_requests) AS r;

    IF cardinality(p_redirects) > 0 THEN
        INSERT INTO archive.redirect (
            visit_id, started_at, number, organisation_id, request_number, url_id, to_url_id,
            source, is_permanent, by_security_policy, last_modified)
        SELECT ids[r.visit], (p_visits[r.visit]).started_at, r.number,
               (p_visits[r.visit]).organisation_id, r.request_number, r.url_id, r.to_url_id,
               r.source, r.is_permanent, r.by_security_policy, r.last_modified
        FROM unnest(p_redirects) AS r;
    END IF;

    IF cardinality(p_files) > 0 THEN
        INSERT INTO archive.mimetype (name)
        SELECT DISTINCT f.media_type FROM unnest(p_files) AS f
        WHERE NOT EXISTS (SELECT FROM archive.mimetype m WHERE m.name = f.media_type)
        ORDER BY f.media_type
        ON CONFLICT DO NOTHING;
        INSERT INTO archive.file (
            visit_id, started_at, organisation_id, request_number, url_id, last_modified, size,
            mimetype_id, canonical_url_id, charset, headers, sha256)
        SELECT ids[f.visit], (p_visits[f.visit]).started_at, (p_visits[f.visit]).organisation_id,
               f.request_number, f.url_id, f.last_modified, f.size, m.id, f.canonical_url_id,
               f.charset, f.headers::jsonb, f.sha256
        FROM unnest(p_files) AS f
        CROSS JOIN LATERAL (
            SELECT m.id FROM archive.mimetype m WHERE m.name = f.media_type OFFSET 0) m;
    END IF;
    RETURN ids;
END
$$;

CREATE FUNCTION auth.uid() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('trapline.member_id'::text, true), ''::text))::uuid;

COMMENT ON FUNCTION auth.uid() IS 'The member who acts in this transaction; null when an API key acts for its organisation.';

CREATE TABLE archive.file (
    visit_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    organisation_id uuid NOT NULL,
    request_number smallint,
    url_id bigint NOT NULL,
    last_modified timestamp with time zone,
    size bigint,
    mimetype_id integer NOT NULL,
    canonical_url_id bigint,
    charset text,
    headers jsonb,
    sha256 bytea
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.file FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.visit (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    uuid uuid NOT NULL,
    agent_id bigint,
    job_id uuid,
    task_id bigint,
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    crawl_type smallint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    took_ms integer NOT NULL,
    exit_code smallint NOT NULL,
    message text
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.visit FORCE ROW LEVEL SECURITY;

CREATE FUNCTION bee.cache_status(job uuid, visit bigint) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT (h.pair ->> 1) FROM ((archive.visit v JOIN archive.file f ON (((f.started_at = v.started_at) AND (f.visit_id = v.id)))) CROSS JOIN LATERAL jsonb_array_elements(f.headers) WITH ORDINALITY h(pair, place)) WHERE ((v.job_id = cache_status.job) AND (v.id = cache_status.visit) AND (lower((h.pair ->> 0)) = ANY (ARRAY['cf-cache-status'::text, 'x-cache'::text, 'x-cache-status'::text, 'cache-status'::text]))) ORDER BY h.place LIMIT 1);

CREATE TABLE archive.mimetype (
    id integer NOT NULL,
    name text NOT NULL
);

CREATE FUNCTION bee.content_type(job uuid, visit bigint) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT m.name FROM ((archive.visit v JOIN archive.file f ON (((f.started_at = v.started_at) AND (f.visit_id = v.id)))) JOIN archive.mimetype m ON ((m.id = f.mimetype_id))) WHERE ((v.job_id = content_type.job) AND (v.id = content_type.visit)));

CREATE TABLE frontier.host (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT host_name_check CHECK ((name <> ''::text))
);

ALTER TABLE ONLY frontier.host FORCE ROW LEVEL SECURITY;

CREATE FUNCTION bee.domain_of(organisation uuid, url text) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT h.id FROM frontier.host h WHERE ((h.organisation_id = domain_of.organisation) AND (h.name = "substring"(domain_of.url, '^https?://([^/?]+)'::text))));

CREATE TABLE frontier.url (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    host_id bigint NOT NULL,
    secure boolean NOT NULL,
    path text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT url_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT url_path_check CHECK ((path ~~ '/%'::text))
);

ALTER TABLE ONLY frontier.url FORCE ROW LEVEL SECURITY;

CREATE FUNCTION bee.page_of(organisation uuid, url text) RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT u.id FROM frontier.url u WHERE ((u.organisation_id = page_of.organisation) AND (u.hash = sha256(convert_to(page_of.url, 'UTF8'::name)))));

CREATE TABLE archive.request (
    visit_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    number smallint NOT NULL,
    organisation_id uuid NOT NULL,
    url_id bigint NOT NULL,
    sent_at timestamp with time zone NOT NULL,
    total_ms real,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    robots_approved boolean NOT NULL,
    exit_code smallint NOT NULL,
    status smallint,
    etag text,
    last_modified timestamp with time zone,
    remote_address text
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.request FORCE ROW LEVEL SECURITY;

CREATE FUNCTION bee.response_time(job uuid, visit bigint) RETURNS integer
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT (round((r.total_ms)::double precision))::integer AS round FROM (archive.visit v JOIN archive.request r ON (((r.started_at = v.started_at) AND (r.visit_id = v.id)))) WHERE ((v.job_id = response_time.job) AND (v.id = response_time.visit)) ORDER BY r.number DESC LIMIT 1);

CREATE FUNCTION frontier.find_urls(p_organisations uuid[], p_hashes bytea[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
BEGIN
    RETURN ARRAY(
        SELECT u.id
        FROM unnest(p_organisations, p_hashes) WITH ORDINALITY
            AS wanted (organisation_id, hash, position)
        LEFT JOIN LATERAL (
            SELECT u.id FROM frontier.url u
            WHERE u.organisation_id = wanted.organisation_id AND u.hash = wanted.hash OFFSET 0
        ) u ON true
        ORDER BY wanted.position);
END
$$;

CREATE FUNCTION frontier.intern_urls(p_organisations uuid[], p_hosts text[], p_secures boolean[], p_paths text[], p_hashes bytea[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    ids bigint[] := frontier.find_urls(p_organisations, p_hashes);
BEGIN
    IF array_position(ids, NULL) IS NULL THEN RETURN ids; END IF;
    INSERT INTO frontier.host (organisation_id, name)
    SELECT DISTINCT new.organisation_id, new.name
    FROM unnest(p_organisations, p_hosts, ids) AS new (organisation_id, name, id)
    WHERE new.id IS NULL AND NOT EXISTS (
        SELECT FROM frontier.host h
        WHERE h.organisation_id = new.organisation_id AND h.name = new.name)
    ORDER BY new.organisation_id, new.name
    ON CONFLICT DO NOTHING;
    INSERT INTO frontier.url (organisation_id, host_id, secure, path, hash)
    SELECT new.organisation_id, h.id, new.secure, new.path, new.hash
    FROM unnest(p_organisations, p_hosts, p_secures, p_paths, p_hashes, ids)
        AS new (organisation_id, name, secure, path, hash, id)
    CROSS JOIN LATERAL (
        SELECT h.id FROM frontier.host h
        WHERE h.organisation_id = new.organisation_id AND h.name = new.name OFFSET 0) h
    WHERE new.id IS NULL
    ORDER BY new.organisation_id, new.hash
    ON CONFLICT DO NOTHING;
    RETURN frontier.find_urls(p_organisations, p_hashes);
END
$$;

CREATE FUNCTION knowledge.estimate_matching_entries(p_organisation_id uuid, p_sources uuid[], p_sites uuid[], p_applications uuid[], p_kinds text[], p_languages text[], p_types text[], p_hosts text[], p_not_hosts text[], p_path text, p_since timestamp with time zone, p_until timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    AS $_$
DECLARE
    chosen uuid[];
    plan json;
BEGIN
    IF coalesce(p_sources, p_sites, p_applications) IS NOT NULL OR p_kinds IS NOT NULL THEN
        SELECT coalesce(array_agg(s.id), '{}') INTO chosen
        FROM knowledge.source AS s
        WHERE
            s.organisation_id = p_organisation_id
            AND (p_sources IS NULL OR s.id = ANY(p_sources))
            AND (p_sites IS NULL OR s.site_id = ANY(p_sites))
            AND (p_applications IS NULL OR s.application_id = ANY(p_applications))
            AND (p_kinds IS NULL OR s.kind = ANY(p_kinds));
    END IF;
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT FROM knowledge.entry AS e WHERE e.organisation_id = $1'
        ' AND ($2 IS NULL OR e.source_id = ANY($2))'
        ' AND ($3 IS NULL OR e.language = ANY($3))'
        ' AND ($4 IS NULL OR e.content_type = ANY($4))'
        ' AND ($5 IS NULL OR knowledge.host_of(e.uri) = ANY($5))'
        ' AND ($6 IS NULL OR NOT knowledge.host_of(e.uri) = ANY($6))'
        ' AND ($7 IS NULL OR e.path ^@ $7)'
        ' AND ($8 IS NULL OR e.dated_at >= $8)'
        ' AND ($9 IS NULL OR e.dated_at < $9)'
    INTO plan
    USING p_organisation_id, chosen, p_languages, p_types, p_hosts, p_not_hosts, p_path, p_since, p_until;
    RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::bigint;
END
$_$;

CREATE FUNCTION knowledge.host_of(uri text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN lower(split_part(split_part(split_part(uri, '://'::text, 2), '/'::text, 1), ':'::text, 1));

CREATE FUNCTION knowledge.matching_entries(p_organisation_id uuid, p_sources uuid[], p_sites uuid[], p_applications uuid[], p_kinds text[], p_languages text[], p_types text[], p_hosts text[], p_not_hosts text[], p_path text, p_since timestamp with time zone, p_until timestamp with time zone) RETURNS TABLE(entry_id bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT e.id
    FROM knowledge.entry AS e
    INNER JOIN knowledge.source AS s ON e.source_id = s.id AND e.generation = s.generation
    WHERE
        s.organisation_id = p_organisation_id
        AND (p_sources IS NULL OR s.id = ANY(p_sources))
        AND (p_sites IS NULL OR s.site_id = ANY(p_sites))
        AND (p_applications IS NULL OR s.application_id = ANY(p_applications))
        AND (p_kinds IS NULL OR s.kind = ANY(p_kinds))
        AND (p_languages IS NULL OR e.language = ANY(p_languages))
        AND (p_types IS NULL OR e.content_type = ANY(p_types))
        AND (p_hosts IS NULL OR knowledge.host_of(e.uri) = ANY(p_hosts))
        AND (p_not_hosts IS NULL OR NOT knowledge.host_of(e.uri) = ANY(p_not_hosts))
        AND (p_path IS NULL OR e.path ^@ p_path)
        AND (p_since IS NULL OR e.dated_at >= p_since)
        AND (p_until IS NULL OR e.dated_at < p_until)
$$;

CREATE FUNCTION knowledge.nearest_chunks(p_model_id integer, p_dimension integer, p_numbers real[], p_most integer, p_scanned integer, p_organisation_id uuid, p_sources uuid[], p_sites uuid[], p_applications uuid[], p_kinds text[], p_languages text[], p_types text[], p_hosts text[], p_not_hosts text[], p_path text, p_since timestamp with time zone, p_until timestamp with time zone) RETURNS TABLE(chunk_id bigint, entry_id bigint, score real)
    LANGUAGE plpgsql STABLE
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $_$
BEGIN
    PERFORM set_config('hnsw.ef_search', least(greatest(p_most, 200), 1000)::text, true);
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true);
    PERFORM set_config('hnsw.max_scan_tuples', p_scanned::text, true);
    RETURN QUERY EXECUTE format(
        'SELECT v.chunk_id, v.entry_id, (-(v.embedding::halfvec(%2$s) <#> $1::halfvec(%2$s)))::real'
        ' FROM knowledge.vector AS v'
        ' CROSS JOIN LATERAL ('
        ' SELECT FROM knowledge.matching_entries($3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14) AS m'
        ' WHERE m.entry_id = v.entry_id OFFSET 0) AS fits'
        ' WHERE v.model_id = %1$s'
        ' ORDER BY v.embedding::halfvec(%2$s) <#> $1::halfvec(%2$s) LIMIT $2',
        p_model_id, p_dimension
    ) USING p_numbers, p_most, p_organisation_id, p_sources, p_sites, p_applications, p_kinds,
        p_languages, p_types, p_hosts, p_not_hosts, p_path, p_since, p_until;
END
$_$;

CREATE FUNCTION knowledge.nearest_chunks_in_entries(p_model_id integer, p_dimension integer, p_numbers real[], p_most integer, p_scanned integer, p_entry_ids bigint[]) RETURNS TABLE(chunk_id bigint, score real)
    LANGUAGE plpgsql STABLE
    SET enable_sort TO 'off'
    SET jit TO 'off'
    AS $_$
BEGIN
    PERFORM set_config('hnsw.ef_search', least(greatest(p_most, 200), 1000)::text, true);
    PERFORM set_config('hnsw.iterative_scan', 'relaxed_order', true);
    PERFORM set_config('hnsw.max_scan_tuples', p_scanned::text, true);
    RETURN QUERY EXECUTE format(
        'SELECT v.chunk_id, (-(v.embedding::halfvec(%2$s) <#> $1::halfvec(%2$s)))::real'
        ' FROM knowledge.vector AS v'
        ' WHERE v.model_id = %1$s AND v.entry_id = ANY($3)'
        ' ORDER BY v.embedding::halfvec(%2$s) <#> $1::halfvec(%2$s) LIMIT $2',
        p_model_id, p_dimension
    ) USING p_numbers, p_most, p_entry_ids;
END
$_$;

CREATE FUNCTION knowledge.note_vectors() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO knowledge.mirror_change (organisation_id, model_id, chunk_id)
    SELECT v.organisation_id, v.model_id, v.chunk_id FROM moved AS v;
    RETURN NULL;
END
$$;

CREATE TABLE queue.job (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    member_id uuid,
    kind text NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    standing boolean DEFAULT false NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    parent_id uuid,
    retry_of uuid,
    retry_count integer DEFAULT 0 NOT NULL,
    max_retries integer DEFAULT 3 NOT NULL,
    round integer DEFAULT 1 NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    variables jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    trace_id uuid,
    zero_data_retention boolean DEFAULT false NOT NULL,
    task_limit bigint,
    max_active integer,
    required_workers integer DEFAULT 1 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    remaining bigint DEFAULT 0 NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    cancelled bigint DEFAULT 0 NOT NULL,
    found bigint DEFAULT 0 NOT NULL,
    from_sitemap bigint DEFAULT 0 NOT NULL,
    reserved bigint DEFAULT 0 NOT NULL,
    overflow bigint DEFAULT 0 NOT NULL,
    active integer DEFAULT 0 NOT NULL,
    last_event bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    scheduled_at timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    ttl interval DEFAULT '24:00:00'::interval NOT NULL,
    failed_ttl interval,
    expires_at timestamp with time zone,
    cancelled_by text,
    cancel_reason text,
    error text,
    id_text character varying GENERATED ALWAYS AS ((id)::text) STORED NOT NULL,
    begun_at timestamp with time zone GENERATED ALWAYS AS (COALESCE(started_at, created_at)) STORED NOT NULL,
    CONSTRAINT job_check CHECK ((parent_id <> id)),
    CONSTRAINT job_check1 CHECK ((retry_of <> id)),
    CONSTRAINT job_check2 CHECK (((task_limit IS NULL) OR (reserved <= task_limit))),
    CONSTRAINT job_failed_ttl_check CHECK ((failed_ttl > '00:00:00'::interval)),
    CONSTRAINT job_kind_check CHECK ((kind <> ''::text)),
    CONSTRAINT job_max_active_check CHECK ((max_active > 0)),
    CONSTRAINT job_max_retries_check CHECK ((max_retries >= 0)),
    CONSTRAINT job_overflow_check CHECK ((overflow >= 0)),
    CONSTRAINT job_remaining_check CHECK ((remaining >= 0)),
    CONSTRAINT job_required_workers_check CHECK ((required_workers > 0)),
    CONSTRAINT job_reserved_check CHECK ((reserved >= 0)),
    CONSTRAINT job_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'paused'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT job_task_limit_check CHECK ((task_limit >= 0)),
    CONSTRAINT job_ttl_check CHECK ((ttl > '00:00:00'::interval))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02');
ALTER TABLE ONLY queue.job ALTER COLUMN options SET STATISTICS 0;
ALTER TABLE ONLY queue.job ALTER COLUMN variables SET STATISTICS 0;
ALTER TABLE ONLY queue.job ALTER COLUMN metadata SET STATISTICS 0;

ALTER TABLE ONLY queue.job FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.task (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    lane_id bigint NOT NULL,
    gate_id bigint NOT NULL,
    parent_id bigint,
    kind text NOT NULL,
    payload jsonb NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    max_attempts smallint NOT NULL,
    timeout interval,
    deadline timestamp with time zone,
    counted boolean DEFAULT true NOT NULL,
    source smallint DEFAULT 0 NOT NULL,
    trace_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT task_max_attempts_check CHECK ((max_attempts > 0))
);
ALTER TABLE ONLY queue.task ALTER COLUMN payload SET STATISTICS 0;

ALTER TABLE ONLY queue.task FORCE ROW LEVEL SECURITY;

CREATE FUNCTION nuq.data_of(t queue.task, j queue.job) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (jsonb_strip_nulls(jsonb_build_object('mode', (t).kind, 'team_id', (t).organisation_id, 'url', ((t).payload ->> 'url'::text), 'sitemapUrl', CASE (t).kind WHEN 'kickoff_sitemap'::text THEN ((t).payload ->> 'url'::text) ELSE NULL::text END, 'location', CASE (t).kind WHEN 'kickoff_sitemap'::text THEN ((t).payload ->> 'url'::text) ELSE NULL::text END, 'scrapeOptions', COALESCE(((j).metadata #> '{firecrawl,options,scrapeOptions}'::text[]), ((j).options -> 'scrape'::text), '{}'::jsonb), 'crawlerOptions', CASE WHEN ((j).kind <> 'scrape'::text) THEN ((COALESCE(((j).metadata #> '{firecrawl,options}'::text[]), (j).options, '{}'::jsonb) - 'scrapeOptions'::text) - 'scrape'::text) ELSE NULL::jsonb END, 'internalOptions', jsonb_build_object('teamId', (t).organisation_id), 'origin', COALESCE(((j).metadata ->> 'origin'::text), 'api'::text), 'crawl_id', CASE WHEN ((j).kind <> 'scrape'::text) THEN (j).id ELSE NULL::uuid END, 'sitemapped', CASE WHEN ((t).kind = 'single_urls'::text) THEN ((t).source = 2) ELSE NULL::boolean END, 'v1', true, 'is_scrape', ((j).kind = 'scrape'::text), 'zeroDataRetention', (j).zero_data_retention, 'traceContext', CASE WHEN (COALESCE((t).trace_id, (j).trace_id) IS NOT NULL) THEN jsonb_build_object('traceId', COALESCE((t).trace_id, (j).trace_id)) ELSE NULL::jsonb END)) || jsonb_build_object('apiKeyId', ((j).metadata -> 'api_key'::text)));

CREATE TABLE store.version (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    page_id uuid NOT NULL,
    number integer NOT NULL,
    visit_id bigint NOT NULL,
    job_id uuid,
    fetched_at timestamp with time zone NOT NULL,
    content_hash bytea NOT NULL,
    extractor_version smallint NOT NULL,
    status smallint,
    content_type text,
    title text,
    language text,
    page_type text,
    text text NOT NULL,
    markdown text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    links jsonb DEFAULT '[]'::jsonb NOT NULL,
    warning text,
    sha256 bytea,
    variant bytea DEFAULT '\x'::bytea NOT NULL,
    CONSTRAINT version_content_hash_check CHECK ((length(content_hash) = 32))
);
ALTER TABLE ONLY store.version ALTER COLUMN text SET STORAGE EXTERNAL;
ALTER TABLE ONLY store.version ALTER COLUMN markdown SET STORAGE EXTERNAL;

ALTER TABLE ONLY store.version FORCE ROW LEVEL SECURITY;

CREATE FUNCTION nuq.document_of(t queue.task, result jsonb, finished_at timestamp with time zone, v store.version) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN jsonb_strip_nulls(jsonb_build_object('id', ((v).id)::text, 'url', (result ->> 'url'::text), 'content', COALESCE((v).markdown, ''::text), 'markdown', (v).markdown, 'llm_extraction', (result #> '{answers,json}'::text[]), 'createdAt', (v).fetched_at, 'updatedAt', finished_at, 'type', (v).page_type, 'linksOnPage', (v).links, 'childrenLinks', jsonb_path_query_array((v).links, '$[*]?(@ starts with $"origin")'::jsonpath, jsonb_build_object('origin', "substring"((result ->> 'url'::text), '^https?://[^/]+/'::text))), 'provider', 'trapline', 'warning', (v).warning, 'metadata', (COALESCE(((v).metadata -> 'declared'::text), '{}'::jsonb) || jsonb_build_object('title', (v).title, 'description', ((v).metadata -> 'description'::text), 'language', (v).language, 'author', ((v).metadata -> 'author'::text), 'sourceURL', ((t).payload ->> 'url'::text), 'url', (result ->> 'url'::text), 'statusCode', (result -> 'status'::text), 'contentType', (v).content_type))));

CREATE FUNCTION nuq.status_of(state text) RETURNS nuq.job_status
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE state WHEN 'completed'::text THEN 'completed'::nuq.job_status WHEN 'failed'::text THEN 'failed'::nuq.job_status WHEN 'skipped'::text THEN 'failed'::nuq.job_status WHEN 'running'::text THEN 'active'::nuq.job_status WHEN 'queued'::text THEN 'queued'::nuq.job_status ELSE NULL::nuq.job_status END;

CREATE TABLE deliver.endpoint (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    topic text NOT NULL,
    url text NOT NULL,
    receiver text NOT NULL,
    headers jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    events text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone,
    lease uuid,
    leased_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    CONSTRAINT endpoint_topic_check CHECK ((topic <> ''::text)),
    CONSTRAINT endpoint_url_check CHECK ((length(url) <= 16384))
)
WITH (fillfactor='70');

ALTER TABLE ONLY deliver.endpoint FORCE ROW LEVEL SECURITY;

CREATE FUNCTION nuq.webhook_of(e deliver.endpoint) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN jsonb_build_object('webhook', jsonb_build_object('url', (e).url, 'events', to_jsonb((e).events), 'metadata', (e).metadata));

CREATE FUNCTION queue.add_event(p_job uuid, p_type text, p_data jsonb) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    SELECT j.id, j.last_event, j.organisation_id, p_type, p_data FROM queue.job j WHERE j.id = p_job
$$;

CREATE FUNCTION queue.add_terminal_event(p_job uuid) RETURNS void
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    SELECT j.id, j.last_event, j.organisation_id, 'job.' || j.status, jsonb_build_object(
        'kind', j.kind, 'round', j.round, 'total', j.total, 'completed', j.completed,
        'failed', j.failed, 'skipped', j.skipped, 'cancelled', j.cancelled)
        || CASE WHEN j.error IS NULL THEN '{}' ELSE jsonb_build_object('error', j.error) END
    FROM queue.job j WHERE j.id = p_job
$$;

CREATE FUNCTION queue.admit_overflow(p_job uuid, p_most bigint) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    lanes bigint[];
BEGIN
    WITH oldest AS MATERIALIZED (
        DELETE FROM queue.overflow o WHERE o.ctid = ANY (ARRAY(
            SELECT i.ctid FROM queue.overflow i WHERE i.job_id = p_job
            ORDER BY i.task_id LIMIT p_most))
        RETURNING o.task_id
    ),
    admitted AS MATERIALIZED (
        SELECT t.* FROM oldest o
        CROSS JOIN LATERAL (
            SELECT t.id, t.lane_id, t.priority, t.deadline FROM queue.task t
            WHERE t.id = o.task_id OFFSET 0) t
    ),
    moved AS (
        INSERT INTO queue.ready (lane_id, priority, task_id, deadline)
        SELECT a.lane_id, a.priority, a.id, a.deadline FROM admitted a ORDER BY a.id
    )
    SELECT array_agg(DISTINCT a.lane_id) INTO lanes FROM admitted a;
    PERFORM l.id FROM queue.lane l WHERE l.id = ANY (lanes) ORDER BY l.id FOR KEY SHARE;
    PERFORM queue.wake_lanes(lanes);
END
$$;

CREATE FUNCTION queue.begin_inline_task(p_job queue.new_direct, p_task queue.new_task, p_gate queue.new_gate, p_latest timestamp with time zone, p_agent bigint, p_lease_time interval, p_again boolean, p_unless text, OUT gate_id bigint, OUT slots smallint, OUT begin_at timestamp with time zone, OUT blocked_by text, OUT task_id bigint, OUT lane_id bigint, OUT lease_id bigint) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    -- If the server crashes before this is on its disk, the finish finds no lease and says so. A
    -- finish is on the disk together with all that was written before it.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF p_unless IS NOT NULL THEN
        blocked_by := p_unless;
        RETURN;
    END IF;
    IF p_again THEN
        SELECT l.gate_id, d.slots, greatest(clock_timestamp(), g.ready_at), d.task_id, d.lane_id, d.lease_id
        INTO gate_id, slots, begin_at, task_id, lane_id, lease_id
        FROM queue.lane l
        JOIN queue.gate g ON g.id = l.gate_id
        JOIN queue.task t ON t.job_id = l.job_id
        JOIN queue.lease s ON s.agent_id = p_agent
        JOIN queue.leased d ON d.lease_id = s.id AND d.task_id = t.id
        WHERE l.job_id = p_job.id;
        IF FOUND THEN RETURN; END IF;
    END IF;
    SELECT p.* INTO gate_id, slots, begin_at, blocked_by
    FROM queue.take_slots(p_job.organisation_id, p_gate, p_latest) p;
    IF blocked_by IS NOT NULL THEN RETURN; END IF;

    INSERT INTO queue.job (
        id, organisation_id, member_id, kind, priority, options, metadata, trace_id,
        zero_data_retention, ttl, failed_ttl, total, remaining, reserved, status, started_at,
        last_event)
    VALUES (
        p_job.id, p_job.organisation_id, p_job.member_id, p_job.kind, p_job.priority,
        p_job.options::jsonb, p_job.metadata::jsonb, p_job.trace_id, p_job.zero_data_retention,
        p_job.ttl, p_job.failed_ttl, 1, 1, p_task.counted::integer, 'running', now(), 1);
    INSERT INTO queue.event (job_id, number, organisation_id, type, data)
    VALUES (p_job.id, 1, p_job.organisation_id, 'job.started', jsonb_build_object('kind', p_job.kind));
    -- Not awake: workers have nothing to claim in it.
    INSERT INTO queue.lane (organisation_id, job_id, gate_id, priority, awake)
    VALUES (p_job.organisation_id, p_job.id, begin_inline_task.gate_id, p_task.priority, false)
    RETURNING id INTO lane_id;
    INSERT INTO queue.task (
        organisation_id, job_id, lane_id, gate_id, kind, payload, priority, max_attempts, timeout,
        deadline, counted, source, trace_id)
    VALUES (
        p_job.organisation_id, p_job.id, begin_inline_task.lane_id, begin_inline_task.gate_id, p_task.kind,
        p_task.payload::jsonb, p_task.priority, p_task.max_attempts, p_task.timeout,
        p_task.deadline, p_task.counted, p_task.source, p_task.trace_id)
    RETURNING id INTO task_id;
    INSERT INTO queue.lease (agent_id, expires_at)
    VALUES (p_agent, clock_timestamp() + p_lease_time) RETURNING id INTO lease_id;
    INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls, slots)
    VALUES (begin_inline_task.lease_id, begin_inline_task.task_id, begin_inline_task.lane_id, p_task.priority, 0, 0,
        begin_inline_task.slots);
END
$$;

CREATE FUNCTION queue.blocked_lane(p_lane bigint, p_by text, p_until timestamp with time zone) RETURNS queue.claimed
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT ROW(NULL, p_lane, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
               p_by, p_until, NULL, NULL)::queue.claimed
$$;

CREATE FUNCTION queue.cancel_job(p_job uuid, p_by text, p_reason text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE queue.job j
    SET status = 'cancelled', cancelled = j.cancelled + j.remaining, remaining = 0,
        finished_at = now(), expires_at = now() + queue.retention(
            j.zero_data_retention, 'cancelled', j.ttl, j.failed_ttl),
        cancelled_by = p_by, cancel_reason = p_reason, last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status IN ('pending', 'running', 'paused');
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE queue.lane l SET open = false WHERE l.job_id = p_job AND l.open;
    PERFORM queue.add_terminal_event(p_job);
    RETURN true;
END
$$;

CREATE FUNCTION queue.complete(p_leases bigint[], p_tasks bigint[], p_results text[]) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    tallies queue.tally[] := queue.write_completed(p_leases, p_tasks, p_results);
    jobs record;
BEGIN
    IF tallies IS NULL THEN RETURN '{}'; END IF;
    jobs := queue.settle_jobs(tallies, '{}', '{}', '{}', '{}');
    RETURN jobs.news;
END
$$;

CREATE FUNCTION queue.count_down(p_tallies queue.tally[]) RETURNS queue.tally[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    counted uuid[];
BEGIN
    IF cardinality(p_tallies) > 1 THEN
        PERFORM j.id
        FROM (SELECT * FROM unnest(p_tallies) o ORDER BY o.organisation_id, o.job_id) t
        CROSS JOIN LATERAL (
            SELECT j.id FROM queue.job j WHERE j.id = t.job_id FOR NO KEY UPDATE OFFSET 0) j;
    END IF;
    WITH moved AS (
        UPDATE queue.job j
        SET remaining = j.remaining - (t.completed + t.failed + t.cancelled),
            completed = j.completed + t.completed, failed = j.failed + t.failed,
            cancelled = j.cancelled + t.cancelled, active = j.active - t.slots
        FROM unnest(p_tallies) t
        WHERE j.id = t.job_id AND j.status IN ('running', 'paused') AND t.skipped = 0
            AND j.started_at IS NOT NULL
            AND (j.remaining > t.completed + t.failed + t.cancelled OR j.standing)
        RETURNING j.id
    )
    SELECT array_agg(m.id) INTO counted FROM moved m;
    IF counted IS NULL THEN RETURN p_tallies; END IF;
    RETURN ARRAY(SELECT t FROM unnest(p_tallies) t WHERE t.job_id <> ALL (counted));
END
$$;

CREATE FUNCTION queue.count_new_tasks(p_endings queue.ending[], p_tasks queue.new_task[], p_ids bigint[], p_job uuid, p_skipped bigint, p_limit bigint, p_reserved bigint, p_overflow bigint, OUT total bigint, OUT counted bigint, OUT beyond bigint, OUT linked bigint, OUT from_sitemap bigint, OUT released bigint, OUT admitted bigint, OUT over boolean[]) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    total := 0; counted := 0; beyond := 0; linked := 0; from_sitemap := 0;
    released := 0; admitted := 0;
    IF p_skipped > 0 THEN
        SELECT count(*) INTO released
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.counted FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.job_id = p_job AND e.verdict = queue.outcome_skipped() AND t.counted;
        admitted := least(released, p_overflow);
    END IF;
    IF cardinality(p_tasks) > 0 THEN
        -- No new task overtakes an older one in the overflow.
        over := queue.mark_overflow(p_tasks, p_ids, p_job, CASE
            WHEN p_limit IS NULL THEN 9223372036854775807
            WHEN p_overflow > admitted THEN 0
            ELSE p_limit - p_reserved + released - admitted END);
        SELECT count(*) FILTER (WHERE NOT t.over),
               count(*) FILTER (WHERE t.counted AND NOT t.over),
               count(*) FILTER (WHERE t.over),
               count(*) FILTER (WHERE t.source = queue.source_found() AND NOT t.over),
               count(*) FILTER (WHERE t.source = queue.source_sitemap() AND NOT t.over)
        INTO total, counted, beyond, linked, from_sitemap
        FROM unnest(p_tasks, p_ids, over)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
        WHERE t.job_id = p_job AND t.id > 0;
    END IF;
    IF admitted > 0 THEN
        SELECT linked + count(*) FILTER (WHERE s.source = queue.source_found()),
               from_sitemap + count(*) FILTER (WHERE s.source = queue.source_sitemap())
        INTO linked, from_sitemap
        FROM (
            SELECT o.task_id FROM queue.overflow o WHERE o.job_id = p_job
            ORDER BY o.task_id LIMIT admitted) a
        CROSS JOIN LATERAL (SELECT t.source FROM queue.task t WHERE t.id = a.task_id OFFSET 0) s;
    END IF;
END
$$;

CREATE FUNCTION queue.day_of(p_at timestamp with time zone) RETURNS date
    LANGUAGE sql IMMUTABLE
    RETURN ((p_at AT TIME ZONE 'UTC'::text))::date;

CREATE FUNCTION queue.end_if_empty(p_job uuid) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE queue.job j
    SET status = 'completed', started_at = coalesce(j.started_at, now()), finished_at = now(),
        expires_at = now() + queue.retention(j.zero_data_retention, 'completed', j.ttl, j.failed_ttl),
        last_event = j.last_event + 1
    WHERE j.id = p_job AND j.remaining = 0 AND NOT j.standing
        AND j.status IN ('pending', 'running', 'paused');
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM queue.add_terminal_event(p_job);
    RETURN true;
END
$$;

CREATE FUNCTION queue.enqueue(p_job uuid, p_tasks queue.new_task[], p_gates queue.new_gate[], OUT task_id bigint, OUT place smallint) RETURNS SETOF record
    LANGUAGE plpgsql
    AS $$
DECLARE
    ids bigint[] := queue.take_keys(p_tasks);
    over boolean[];
    job record;
    news record;
BEGIN
    SELECT j.* INTO job FROM queue.job j WHERE j.id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'There is no job %.', p_job USING ERRCODE = 'TQ404';
    ELSIF job.status NOT IN ('pending', 'running', 'paused') THEN
        RAISE EXCEPTION 'Job % is %: it accepts no more tasks.', p_job, job.status
        USING ERRCODE = 'TQ409';
    END IF;
    over := queue.mark_overflow(
        p_tasks, ids, p_job, coalesce(job.task_limit, 9223372036854775807) - job.reserved);
    SELECT count(*) FILTER (WHERE NOT t.over) AS total,
           count(*) FILTER (WHERE t.counted AND NOT t.over) AS counted,
           count(*) FILTER (WHERE t.over) AS over,
           count(*) FILTER (WHERE t.source = queue.source_found() AND NOT t.over) AS found,
           count(*) FILTER (WHERE t.source = queue.source_sitemap() AND NOT t.over) AS from_sitemap
    INTO news
    FROM unnest(p_tasks, ids, over)
        AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
             deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
    WHERE t.id > 0;
    UPDATE queue.job j
    SET total = j.total + news.total, remaining = j.remaining + news.total,
        reserved = j.reserved + news.counted, overflow = j.overflow + news.over,
        found = j.found + news.found, from_sitemap = j.from_sitemap + news.from_sitemap
    WHERE j.id = p_job;
    PERFORM queue.open_lanes(p_job, job.organisation_id, job.priority, p_gates);
    PERFORM queue.write_tasks(p_tasks, ids, over);
    IF EXISTS (SELECT FROM unnest(ids) u(id) WHERE u.id < 0) THEN
        PERFORM queue.raise_priorities(p_tasks, ids);
    END IF;
    RETURN QUERY SELECT abs(u.id), (CASE WHEN u.id < 0 THEN 2 WHEN u.over THEN 1 ELSE 0 END)::smallint
    FROM unnest(ids, over) AS u(id, over);
END
$$;

CREATE FUNCTION queue.fail_stalled(p_endings queue.ending[], p_most_stalls integer) RETURNS queue.ending[]
    LANGUAGE sql
    AS $$
    SELECT array_agg(ROW(
        e.task_id,
        CASE WHEN e.verdict = queue.outcome_stalled()
                AND (e.stalls >= p_most_stalls OR e.slots & queue.slot_inline() > 0)
            THEN queue.outcome_failed()
            ELSE e.verdict END,
        e.code, e.result,
        CASE WHEN e.verdict = queue.outcome_stalled() AND e.slots & queue.slot_inline() > 0
            THEN 'The process that asked for this and ran it has died.'
            WHEN e.verdict = queue.outcome_stalled() AND e.stalls >= p_most_stalls
            THEN format('The workers that held this task died or lost it %s times.', e.stalls + 1)
            ELSE e.error END,
        e.run_at, e.lane_id, e.job_id, e.organisation_id, e.gate_id, e.priority, e.attempts,
        e.stalls + CASE WHEN e.verdict = queue.outcome_stalled() THEN 1 ELSE 0 END,
        e.slots, e.agent_id, e.claimed_at)::queue.ending)
    FROM unnest(p_endings) e
$$;

CREATE FUNCTION queue.failure_reason(p_job uuid, p_endings queue.ending[]) RETURNS text
    LANGUAGE sql STABLE
    SET enable_seqscan TO 'off'
    AS $$
    SELECT coalesce(
        'No task succeeded; the last one that failed: ' || coalesce(
            (SELECT e.error FROM unnest(p_endings) e
             WHERE e.job_id = p_job AND e.verdict = queue.outcome_failed()
             ORDER BY e.task_id DESC LIMIT 1),
            (SELECT d.error FROM queue.dead_letter d WHERE d.job_id = p_job
             ORDER BY d.failed_at DESC, d.task_id DESC LIMIT 1)),
        'No task succeeded; the last one was skipped: ' || coalesce(
            (SELECT e.error FROM unnest(p_endings) e
             WHERE e.job_id = p_job AND e.verdict = queue.outcome_skipped()
             ORDER BY e.task_id DESC LIMIT 1),
            (SELECT d.error FROM queue.task t JOIN queue.done d ON d.task_id = t.id
             WHERE t.job_id = p_job AND d.status = queue.outcome_skipped()
             ORDER BY t.id DESC LIMIT 1)),
        'No task succeeded.')
$$;

CREATE FUNCTION queue.fence(p_verdicts queue.verdict[], p_lost boolean) RETURNS SETOF queue.ending
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    fenced queue.ending[];
    gone bigint;
BEGIN
    WITH held AS MATERIALIZED (
        SELECT d.at, v.task_id, v.verdict, v.code, v.result, v.error, v.run_at,
               d.lane_id, l.job_id, l.organisation_id, l.gate_id,
               d.priority, d.attempts, d.stalls, d.slots, s.agent_id, s.claimed_at
        FROM unnest(p_verdicts) v
        CROSS JOIN LATERAL (
            SELECT s.agent_id, s.claimed_at FROM queue.lease s
            WHERE s.id = v.lease_id AND (p_lost OR s.expires_at > clock_timestamp()) OFFSET 0) s
        CROSS JOIN LATERAL (
            SELECT d.ctid AS at, d.* FROM queue.leased d
            WHERE d.lease_id = v.lease_id AND d.task_id = v.task_id OFFSET 0) d
        CROSS JOIN LATERAL (
            SELECT l.job_id, l.organisation_id, l.gate_id FROM queue.lane l
            WHERE l.id = d.lane_id OFFSET 0) l
    ),
    deleted AS (
        DELETE FROM queue.leased d WHERE d.ctid = ANY (ARRAY(SELECT h.at FROM held h)) RETURNING 1
    )
    SELECT array_agg(ROW(
               h.task_id, h.verdict, h.code, h.result, h.error, h.run_at, h.lane_id, h.job_id,
               h.organisation_id, h.gate_id, h.priority, h.attempts, h.stalls, h.slots,
               h.agent_id, h.claimed_at)::queue.ending),
           (SELECT count(*) FROM deleted)
    INTO fenced, gone FROM held h;
    -- Another transaction ended one of them between our read and our delete: retry.
    IF gone <> coalesce(cardinality(fenced), 0) THEN
        RAISE EXCEPTION 'a lease was lost meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN QUERY SELECT * FROM unnest(fenced);
END
$$;

CREATE FUNCTION queue.finish(p_verdicts queue.verdict[], p_lost boolean, p_most_stalls integer) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN queue.settle(
        ARRAY(SELECT f FROM queue.fence(p_verdicts, p_lost) f), '{}', '{}', '{}', '{}', p_most_stalls);
END
$$;

CREATE FUNCTION queue.finish_and_claim(p_leases bigint[], p_tasks bigint[], p_results text[], p_verdicts queue.verdict[], p_most_stalls integer, p_agent bigint, p_wants queue.want[], p_starting uuid[], p_lease_time interval) RETURNS SETOF queue.claimed
    LANGUAGE plpgsql
    AS $$
DECLARE
    lease bigint;
    want queue.want;
    free queue.want[];
    news uuid[];
BEGIN
    IF cardinality(p_wants) > 0 THEN
        lease := nextval('queue.lease_id_seq');
        free := ARRAY(SELECT w FROM unnest(p_wants) w WHERE NOT w.limited);
        IF cardinality(free) > 0 THEN
            RETURN QUERY SELECT * FROM queue.lease_tasks(lease, free, 0::smallint);
        END IF;
    END IF;

    IF cardinality(p_tasks) > 0 THEN
        news := queue.complete(p_leases, p_tasks, p_results);
    ELSIF cardinality(p_verdicts) > 0 THEN
        news := queue.finish(p_verdicts, false, p_most_stalls);
    END IF;
    IF cardinality(news) > 0 THEN
        RETURN QUERY SELECT * FROM queue.jobs_with_events(news);
    END IF;

    IF lease IS NULL THEN RETURN; END IF;
    FOR want IN SELECT w.* FROM unnest(p_wants) w WHERE w.limited LOOP
        RETURN QUERY SELECT * FROM queue.lease_limited(lease, want);
    END LOOP;
    PERFORM FROM queue.leased l WHERE l.lease_id = lease LIMIT 1;
    IF NOT FOUND THEN RETURN; END IF;
    INSERT INTO queue.lease (id, agent_id, expires_at)
    VALUES (lease, p_agent, clock_timestamp() + p_lease_time);
    -- Jobs that the worker believes to be pending.
    IF cardinality(p_starting) > 0 THEN
        RETURN QUERY SELECT * FROM queue.start_jobs(ARRAY(
            SELECT DISTINCT l.job_id
            FROM queue.leased d
            CROSS JOIN LATERAL (SELECT l.job_id FROM queue.lane l WHERE l.id = d.lane_id OFFSET 0) l
            WHERE d.lease_id = lease AND l.job_id = ANY (p_starting)));
    END IF;
END
$$;

CREATE FUNCTION queue.fit_pages(p_lane bigint, p_want queue.want, p_most integer, p_pages bigint, OUT looked bigint, OUT take integer, OUT pages bigint) RETURNS record
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    WITH upcoming AS MATERIALIZED (
        SELECT r.priority, r.turn, r.task_id FROM queue.ready r
        WHERE r.lane_id = p_lane AND (r.priority, r.turn) > (p_want.after_priority, p_want.after_turn)
            AND r.priority <= p_want.to_priority
        ORDER BY r.priority, r.turn LIMIT p_most FOR UPDATE SKIP LOCKED
    ),
    counted AS (
        SELECT t.counted, count(*) FILTER (WHERE t.counted) OVER (ORDER BY u.priority, u.turn) AS nth
        FROM upcoming u
        CROSS JOIN LATERAL (SELECT t.counted FROM queue.task t WHERE t.id = u.task_id OFFSET 0) t
    )
    SELECT count(*), (count(*) FILTER (WHERE c.nth <= p_pages OR c.nth = 0))::integer,
           count(*) FILTER (WHERE c.counted AND c.nth <= p_pages)
    FROM counted c
$$;

CREATE FUNCTION queue.forget_job(p_job uuid, p_most integer) RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT t.id FROM queue.task t WHERE t.job_id = p_job ORDER BY t.id LIMIT p_most);
    gone bigint;
BEGIN
    PERFORM queue.remember_job(p_job);
    DELETE FROM queue.done d WHERE d.task_id = ANY (ids);
    DELETE FROM queue.waiting w WHERE w.task_id = ANY (ids);
    DELETE FROM queue.dead_letter d WHERE d.task_id = ANY (ids);
    DELETE FROM queue.overflow o WHERE o.job_id = p_job AND o.task_id = ANY (ids);
    DELETE FROM queue.task t WHERE t.id = ANY (ids);
    IF cardinality(ids) = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.event e WHERE e.ctid = ANY (ARRAY(
        SELECT i.ctid FROM queue.event i WHERE i.job_id = p_job LIMIT p_most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
        SELECT i.ctid FROM queue.unique_key i WHERE i.scope = p_job LIMIT p_most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
        SELECT i.ctid FROM queue.unique_key i
        WHERE i.job_id = p_job AND i.scope <> i.job_id LIMIT p_most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = p_most THEN RETURN p_most; END IF;

    DELETE FROM queue.ready r USING queue.lane l WHERE l.job_id = p_job AND r.lane_id = l.id;
    DELETE FROM queue.lane l WHERE l.job_id = p_job;
    DELETE FROM queue.job j WHERE j.id = p_job;
    RETURN cardinality(ids);
END
$$;

CREATE FUNCTION queue.free_gates(p_endings queue.ending[], p_changes queue.gate_change[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    g record;
BEGIN
    FOR g IN
        SELECT c.id, sum(c.n) AS n, max(c.gap) AS gap, max(c.pressure) AS pressure,
               max(c.not_before) AS not_before
        FROM (
            SELECT e.gate_id AS id, 1 AS n, NULL::interval AS gap, NULL::smallint AS pressure,
                   NULL::timestamptz AS not_before
            FROM unnest(p_endings) e WHERE e.slots & queue.slot_gate() > 0
            UNION ALL
            SELECT c.gate_id, 0, c.gap, c.pressure, c.not_before FROM unnest(p_changes) c
        ) c
        GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.gate u
        SET in_flight = u.in_flight - g.n, gap = coalesce(g.gap, u.gap),
            pressure = coalesce(g.pressure, u.pressure),
            ready_at = greatest(u.ready_at, g.not_before), updated_at = now()
        WHERE u.id = g.id;
    END LOOP;
END
$$;

CREATE FUNCTION queue.free_organisations(p_endings queue.ending[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    o record;
BEGIN
    FOR o IN
        SELECT e.organisation_id AS id, count(*) FILTER (WHERE e.slots & queue.slot_organisation() > 0) AS n,
               -- A page that was skipped or is retried has not been visited today.
               count(*) FILTER (WHERE e.slots & queue.slot_pages() > 0
                   AND e.verdict NOT IN (queue.outcome_completed(), queue.outcome_failed())
                   AND queue.day_of(e.claimed_at) = queue.day_of(now())) AS unvisited
        FROM unnest(p_endings) e
        WHERE e.slots & (queue.slot_organisation() | queue.slot_pages()) > 0 GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.quota q
        SET active = q.active - o.n,
            pages = q.pages - CASE WHEN q.day = queue.day_of(now()) THEN o.unvisited ELSE 0 END
        WHERE q.organisation_id = o.id AND (o.n > 0 OR o.unvisited > 0);
    END LOOP;
END
$$;

CREATE FUNCTION queue.is_fruitless(p_job uuid, p_endings queue.ending[], p_completed bigint, p_failed bigint, p_skipped bigint, p_reserved bigint) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    IF p_failed = 0 AND p_skipped = 0 OR p_failed < p_reserved THEN RETURN false; END IF;
    IF p_completed = 0 THEN RETURN true; END IF;
    RETURN EXISTS (SELECT FROM queue.task t WHERE t.job_id = p_job AND t.counted)
        AND NOT EXISTS (
            SELECT FROM queue.task t JOIN queue.done d ON d.task_id = t.id
            WHERE t.job_id = p_job AND t.counted AND d.status = queue.outcome_completed())
        AND NOT EXISTS (
            SELECT FROM unnest(p_endings) e JOIN queue.task t ON t.id = e.task_id
            WHERE e.job_id = p_job AND t.counted AND e.verdict = queue.outcome_completed());
END
$$;

CREATE FUNCTION queue.jobs_with_events(p_jobs uuid[]) RETURNS SETOF queue.claimed
    LANGUAGE sql STABLE
    AS $$
    SELECT NULL::bigint, NULL::bigint, NULL::bigint, NULL::smallint, NULL::bigint, NULL::smallint,
           NULL::smallint, NULL::text, NULL::text, NULL::smallint, NULL::interval, NULL::timestamptz,
           NULL::uuid, NULL::text, NULL::timestamptz, j.id, j.status
    FROM queue.job j WHERE j.id = ANY (p_jobs)
$$;

CREATE FUNCTION queue.lease_limited(p_lease bigint, p_want queue.want) RETURNS SETOF queue.claimed
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    lane queue.lane;
    gate queue.gate;
    at timestamptz := clock_timestamp();
    soon timestamptz := at + interval '20 milliseconds';
    later timestamptz := at + interval '1 second';
    room integer := p_want.take;
    slots smallint := 0;
    pause interval;
    most integer;
    job_most integer;
    job_active integer;
    organisation_most integer;
    pages_most bigint;
    quota queue.quota;
    looked bigint;
    fitting integer;
    new_pages bigint := 0;
    moved integer;
BEGIN
    SELECT * INTO lane FROM queue.lane l WHERE l.id = p_want.lane_id AND l.open;
    IF NOT FOUND THEN RETURN; END IF;

    SELECT * INTO gate FROM queue.gate g WHERE g.id = lane.gate_id FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN NEXT queue.blocked_lane(lane.id, 'busy', soon); RETURN; END IF;
    IF gate.ready_at > at THEN
        RETURN NEXT queue.blocked_lane(lane.id, 'gap', gate.ready_at); RETURN;
    END IF;
    pause := greatest(gate.floor, coalesce(lane.gap, gate.gap));
    -- A host that asks for a delay gets one request after the other, whatever the job allows.
    most := CASE WHEN gate.floor > interval '0' THEN 1 ELSE coalesce(lane.bound, gate.bound) END;
    IF pause > interval '0' THEN room := least(room, 1); END IF;
    IF most IS NOT NULL THEN
        slots := slots | queue.slot_gate();
        room := least(room, most - gate.in_flight - (gate.kept_until > at)::integer);
        IF room <= 0 THEN RETURN NEXT queue.blocked_lane(lane.id, 'gate', later); RETURN; END IF;
    END IF;

    SELECT j.max_active INTO job_most FROM queue.job j WHERE j.id = lane.job_id;
    IF job_most IS NOT NULL THEN
        SELECT j.active INTO job_active FROM queue.job j WHERE j.id = lane.job_id
        FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN RETURN NEXT queue.blocked_lane(lane.id, 'busy', soon); RETURN; END IF;
        slots := slots | queue.slot_job();
        room := least(room, job_most - job_active);
        IF room <= 0 THEN RETURN NEXT queue.blocked_lane(lane.id, 'job', later); RETURN; END IF;
    END IF;

    SELECT o.max_concurrency, o.max_pages_per_day INTO organisation_most, pages_most
    FROM tenancy.organisation o WHERE o.id = lane.organisation_id;
    IF organisation_most IS NOT NULL OR pages_most IS NOT NULL THEN
        INSERT INTO queue.quota (organisation_id) VALUES (lane.organisation_id)
        ON CONFLICT DO NOTHING;
        SELECT * INTO quota FROM queue.quota q
        WHERE q.organisation_id = lane.organisation_id FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN RETURN NEXT queue.blocked_lane(lane.id, 'busy', soon); RETURN; END IF;
    END IF;
    IF organisation_most IS NOT NULL THEN
        slots := slots | queue.slot_organisation();
        room := least(room, organisation_most - quota.active - (quota.kept_until > at)::integer);
        IF room <= 0 THEN RETURN NEXT queue.blocked_lane(lane.id, 'organisation', later); RETURN; END IF;
    END IF;
    IF pages_most IS NOT NULL THEN
        slots := slots | queue.slot_pages();
        SELECT f.looked, f.take, f.pages INTO looked, fitting, new_pages FROM queue.fit_pages(
            lane.id, p_want, room,
            pages_most - CASE WHEN quota.day = queue.day_of(at) THEN quota.pages ELSE 0 END) f;
        IF looked = 0 THEN RETURN; END IF;
        IF fitting = 0 THEN
            RETURN NEXT queue.blocked_lane(lane.id, 'pages', at + interval '10 seconds'); RETURN;
        END IF;
        room := fitting;
    END IF;

    p_want.take := room;
    RETURN QUERY SELECT * FROM queue.lease_tasks(p_lease, ARRAY[p_want], slots);
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved = 0 THEN RETURN; END IF;
    IF slots & queue.slot_gate() > 0 OR pause > interval '0' THEN
        UPDATE queue.gate g
        SET in_flight = g.in_flight + CASE WHEN slots & queue.slot_gate() > 0 THEN moved ELSE 0 END,
            ready_at = CASE WHEN pause > interval '0' THEN at + pause ELSE g.ready_at END
        WHERE g.id = gate.id;
        IF pause > interval '0' THEN RETURN NEXT queue.blocked_lane(lane.id, 'gap', at + pause); END IF;
    END IF;
    IF slots & queue.slot_job() > 0 THEN
        UPDATE queue.job j SET active = j.active + moved WHERE j.id = lane.job_id;
    END IF;
    IF slots & (queue.slot_organisation() | queue.slot_pages()) > 0 THEN
        UPDATE queue.quota q
        SET active = q.active + CASE WHEN slots & queue.slot_organisation() > 0 THEN moved ELSE 0 END,
            day = CASE WHEN slots & queue.slot_pages() > 0 THEN queue.day_of(at) ELSE q.day END,
            pages = CASE
                WHEN slots & queue.slot_pages() = 0 THEN q.pages
                WHEN q.day = queue.day_of(at) THEN q.pages + new_pages
                ELSE new_pages END
        WHERE q.organisation_id = lane.organisation_id;
    END IF;
END
$$;

CREATE FUNCTION queue.lease_tasks(p_lease bigint, p_wants queue.want[], p_slots smallint) RETURNS SETOF queue.claimed
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
BEGIN
    RETURN QUERY
    WITH picked AS MATERIALIZED (
        SELECT r.at FROM unnest(p_wants) w
        CROSS JOIN LATERAL (SELECT l.id FROM queue.lane l WHERE l.id = w.lane_id AND l.open OFFSET 0) l
        CROSS JOIN LATERAL (
            SELECT r.ctid AS at FROM queue.ready r
            WHERE r.lane_id = l.id AND (r.priority, r.turn) > (w.after_priority, w.after_turn)
                AND r.priority <= w.to_priority
            ORDER BY r.priority, r.turn LIMIT w.take FOR UPDATE SKIP LOCKED) r
    ),
    moved AS MATERIALIZED (
        DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(SELECT at FROM picked)) RETURNING r.*
    ),
    leased AS (
        INSERT INTO queue.leased (lease_id, task_id, lane_id, priority, attempts, stalls, slots)
        SELECT p_lease, m.task_id, m.lane_id, m.priority, m.attempts, m.stalls,
               -- Only counted tasks use the daily quota of pages.
               CASE WHEN p_slots & queue.slot_pages() = 0
                   OR (SELECT t.counted FROM queue.task t WHERE t.id = m.task_id)
               THEN p_slots ELSE p_slots - queue.slot_pages() END
        FROM moved m
    )
    SELECT m.task_id, m.lane_id, p_lease, m.priority, m.turn, m.attempts, m.stalls,
           t.kind, t.payload, t.max_attempts, t.timeout, t.deadline, t.trace_id,
           NULL::text, NULL::timestamptz, NULL::uuid, NULL::text
    FROM moved m CROSS JOIN LATERAL (
        SELECT t.kind, t.payload::text AS payload, t.max_attempts, t.timeout, t.deadline,
               t.trace_id
        FROM queue.task t WHERE t.id = m.task_id OFFSET 0) t;
END
$$;

CREATE FUNCTION queue.mark_overflow(p_tasks queue.new_task[], p_ids bigint[], p_job uuid, p_room bigint) RETURNS boolean[]
    LANGUAGE sql
    AS $$
    SELECT array_agg(
        t.job_id = p_job AND t.counted AND t.id > 0
        AND t.nth > p_room ORDER BY t.position)
    FROM (
        SELECT u.*, count(*) FILTER (WHERE u.job_id = p_job AND u.counted AND u.id > 0)
            OVER (ORDER BY u.position) AS nth
        FROM unnest(p_tasks, p_ids) WITH ORDINALITY
            AS u(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, position)
    ) t
$$;

CREATE FUNCTION queue.number_of(id uuid) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ((('x'::text || "right"((id)::text, 12)))::bit(48))::bigint;

CREATE FUNCTION queue.open_gates(p_gates queue.new_gate[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    INSERT INTO queue.gate (name, gap, bound)
    SELECT DISTINCT ON (g.name) g.name, coalesce(g.gap, interval '0'), g.bound
    FROM unnest(p_gates) g
    WHERE NOT EXISTS (SELECT FROM queue.gate e WHERE e.name = g.name)
    ORDER BY g.name
    ON CONFLICT (name) DO NOTHING
$$;

CREATE FUNCTION queue.open_lanes(p_job uuid, p_organisation uuid, p_priority smallint, p_gates queue.new_gate[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    lanes bigint[];
BEGIN
    PERFORM queue.open_gates(p_gates);
    INSERT INTO queue.lane (organisation_id, job_id, gate_id, priority, gap, bound, open)
    SELECT p_organisation, p_job, g.id, p_priority, w.lane_gap, w.lane_bound,
           (SELECT j.status <> 'paused' FROM queue.job j WHERE j.id = p_job)
    FROM unnest(p_gates) w
    CROSS JOIN LATERAL (SELECT g.id FROM queue.gate g WHERE g.name = w.name OFFSET 0) g
    WHERE NOT EXISTS (
        SELECT FROM queue.lane l WHERE l.job_id = p_job AND l.gate_id = g.id)
    ORDER BY g.id
    ON CONFLICT (job_id, gate_id) DO NOTHING;
    -- The lock keeps a lane awake until our commit: maintenance locks it FOR UPDATE before it looks
    -- for tasks and puts the lane to sleep, and it could not see ours yet.
    lanes := ARRAY(
        SELECT l.id
        FROM unnest(p_gates) w
        CROSS JOIN LATERAL (SELECT g.id FROM queue.gate g WHERE g.name = w.name OFFSET 0) g
        CROSS JOIN LATERAL (
            SELECT l.id FROM queue.lane l WHERE l.job_id = p_job AND l.gate_id = g.id
            FOR KEY SHARE OFFSET 0) l);
    PERFORM queue.wake_lanes(lanes);
END
$$;

CREATE FUNCTION queue.outcome_cancelled() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (3)::smallint;

CREATE FUNCTION queue.outcome_completed() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (0)::smallint;

CREATE FUNCTION queue.outcome_failed() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (1)::smallint;

CREATE FUNCTION queue.outcome_released() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (6)::smallint;

CREATE FUNCTION queue.outcome_retry() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (4)::smallint;

CREATE FUNCTION queue.outcome_skipped() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (2)::smallint;

CREATE FUNCTION queue.outcome_stalled() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (5)::smallint;

CREATE FUNCTION queue.pause_job(p_job uuid, p_by text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE queue.job j SET status = 'paused', last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status IN ('pending', 'running');
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE queue.lane l SET open = false WHERE l.job_id = p_job AND l.open;
    PERFORM queue.add_event(p_job, 'job.paused', jsonb_build_object('by', p_by));
    RETURN true;
END
$$;

CREATE FUNCTION queue.promote(p_most integer, OUT promoted bigint, OUT next_at timestamp with time zone) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    lanes bigint[];
BEGIN
    WITH due AS MATERIALIZED (
        SELECT w.ctid AS at FROM queue.waiting w WHERE w.run_at <= now()
        ORDER BY w.run_at LIMIT p_most FOR UPDATE SKIP LOCKED
    ),
    gone AS MATERIALIZED (
        DELETE FROM queue.waiting w WHERE w.ctid = ANY (ARRAY(SELECT at FROM due)) RETURNING w.*
    ),
    -- The lane of a cancelled job may be deleted already; then the task is dropped.
    kept AS MATERIALIZED (
        SELECT g.* FROM gone g CROSS JOIN LATERAL (
            SELECT l.id FROM queue.lane l WHERE l.id = g.lane_id FOR KEY SHARE OFFSET 0) l
    ),
    moved AS (
        INSERT INTO queue.ready (lane_id, priority, task_id, attempts, stalls, deadline)
        SELECT lane_id, priority, task_id, attempts, stalls, deadline FROM kept ORDER BY run_at
    )
    SELECT count(*), array_agg(DISTINCT lane_id) INTO promoted, lanes FROM kept;
    PERFORM queue.wake_lanes(lanes);
    SELECT min(w.run_at) INTO next_at FROM queue.waiting w;
END
$$;

CREATE FUNCTION queue.raise_priorities(p_tasks queue.new_task[], p_ids bigint[]) RETURNS void
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    WITH found AS MATERIALIZED (
        SELECT -t.id AS id, min(t.priority) AS priority
        FROM unnest(p_tasks, p_ids)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id)
        WHERE t.id < 0 GROUP BY t.id
    ),
    better AS MATERIALIZED (
        SELECT r.at, r.lane_id, r.turn, f.id, f.priority, r.attempts, r.stalls, r.deadline
        FROM found f
        CROSS JOIN LATERAL (
            SELECT k.lane_id, k.priority FROM queue.task k
            WHERE k.id = f.id AND k.priority > f.priority OFFSET 0) k
        CROSS JOIN LATERAL (
            SELECT r.ctid AS at, r.* FROM queue.ready r
            WHERE r.lane_id = k.lane_id AND r.priority = k.priority AND r.turn = f.id
            FOR UPDATE SKIP LOCKED) r
    ),
    gone AS (
        DELETE FROM queue.ready r WHERE r.ctid = ANY (ARRAY(SELECT b.at FROM better b))
    ),
    raised AS (
        UPDATE queue.task t SET priority = b.priority FROM better b WHERE t.id = b.id
    )
    INSERT INTO queue.ready (lane_id, priority, turn, task_id, attempts, stalls, deadline)
    SELECT b.lane_id, b.priority, b.turn, b.id, b.attempts, b.stalls, b.deadline FROM better b
$$;

CREATE FUNCTION queue.release_gates(p_leases bigint[], p_tasks bigint[], p_not_before timestamp with time zone[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    lanes bigint[];
    pauses timestamptz[];
    g record;
BEGIN
    -- If a crash loses this, the slots are released when the tasks end.
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH held AS MATERIALIZED (
        SELECT d.at, d.lane_id, h.not_before
        FROM unnest(p_leases, p_tasks, p_not_before) AS h(lease_id, task_id, not_before)
        CROSS JOIN LATERAL (
            SELECT d.ctid AS at, d.lane_id FROM queue.leased d
            WHERE d.lease_id = h.lease_id AND d.task_id = h.task_id AND d.slots & queue.slot_gate() > 0
            FOR UPDATE OFFSET 0) d
    ),
    gone AS (
        UPDATE queue.leased d SET slots = d.slots & ~queue.slot_gate()
        WHERE d.ctid = ANY (ARRAY(SELECT h.at FROM held h))
    )
    SELECT array_agg(h.lane_id), array_agg(h.not_before) INTO lanes, pauses FROM held h;
    FOR g IN
        SELECT l.gate_id AS id, count(*) AS n, max(n.not_before) AS not_before
        FROM unnest(lanes, pauses) AS n(id, not_before)
        CROSS JOIN LATERAL (SELECT l.gate_id FROM queue.lane l WHERE l.id = n.id OFFSET 0) l
        GROUP BY 1 ORDER BY 1
    LOOP
        UPDATE queue.gate u
        SET in_flight = u.in_flight - g.n, ready_at = greatest(u.ready_at, g.not_before)
        WHERE u.id = g.id;
    END LOOP;
END
$$;

CREATE FUNCTION queue.remember_job(p_job uuid) RETURNS void
    LANGUAGE sql
    AS $$
INSERT INTO queue.past_job (
    id, organisation_id, kind, status, base_url, total, completed, failed, indexed, auto_index,
    metadata, error, created_at, started_at, finished_at, expired_at
)
SELECT
    j.id, j.organisation_id, j.kind, j.status,
    coalesce(j.options ->> 'url', (
        SELECT t.payload ->> 'url' FROM queue.task t WHERE t.job_id = j.id ORDER BY t.id LIMIT 1
    ), ''),
    j.total - u.total, j.completed - u.completed, j.failed - u.failed, u.indexed,
    coalesce(j.options -> 'index' = 'true', false), j.metadata, j.error, j.created_at,
    coalesce(j.started_at, j.created_at), j.finished_at, j.expires_at
FROM queue.job j
CROSS JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(*) FILTER (WHERE d.status = queue.outcome_completed()) AS completed,
        count(*) FILTER (WHERE d.status = queue.outcome_failed()) AS failed,
        count(*) FILTER (WHERE d.status = queue.outcome_completed() AND t.kind IN ('index', 'file')) AS indexed
    FROM queue.task t LEFT JOIN queue.done d ON d.task_id = t.id
    WHERE t.job_id = j.id AND NOT t.counted
) u
WHERE j.id = p_job AND j.finished_at IS NOT NULL AND NOT j.zero_data_retention AND NOT j.standing
-- A large job is deleted in parts: the first call writes the summary.
ON CONFLICT (finished_at, id) DO NOTHING
$$;

CREATE FUNCTION queue.reopen_job(p_job uuid) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE queue.job j
    SET status = 'running', round = j.round + 1, finished_at = NULL, expires_at = NULL,
        error = NULL, last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status IN ('completed', 'failed');
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM queue.add_event(p_job, 'job.reopened', '{}');
    RETURN true;
END
$$;

CREATE FUNCTION queue.resume_job(p_job uuid, p_by text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE queue.job j
    SET status = CASE WHEN j.started_at IS NULL THEN 'pending' ELSE 'running' END,
        last_event = j.last_event + 1
    WHERE j.id = p_job AND j.status = 'paused';
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE queue.lane l SET open = true, awake = true WHERE l.job_id = p_job AND NOT l.open;
    PERFORM queue.add_event(p_job, 'job.resumed', jsonb_build_object('by', p_by));
    RETURN true;
END
$$;

CREATE FUNCTION queue.retention(p_zero_data_retention boolean, p_status text, p_ttl interval, p_failed_ttl interval) RETURNS interval
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN p_zero_data_retention THEN LEAST(p_ttl, '01:00:00'::interval) WHEN (p_status = 'failed'::text) THEN COALESCE(p_failed_ttl, p_ttl) ELSE p_ttl END;

CREATE FUNCTION queue.settle(p_endings queue.ending[], p_tasks queue.new_task[], p_gates queue.new_gate[], p_events queue.new_event[], p_changes queue.gate_change[], p_most_stalls integer) RETURNS uuid[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    fenced queue.ending[] := p_endings;
    ids bigint[] := '{}';
    jobs record;
    j record;
    has record;
    bears boolean := cardinality(p_tasks) > 0;
BEGIN
    IF coalesce(cardinality(fenced), 0) = 0 THEN RETURN '{}'; END IF;
    -- Passing the array on costs more than this scan, and most batches need none of these functions.
    SELECT bool_or(e.verdict = queue.outcome_stalled()) AS stalls,
           bool_or(e.slots & queue.slot_gate() > 0) AS gates,
           bool_or(e.slots & (queue.slot_organisation() | queue.slot_pages()) > 0) AS organisations
    INTO has FROM unnest(fenced) e;
    IF has.stalls THEN fenced := queue.fail_stalled(fenced, p_most_stalls); END IF;
    IF bears THEN ids := queue.take_keys(p_tasks); END IF;
    IF has.organisations THEN PERFORM queue.free_organisations(fenced); END IF;
    jobs := queue.settle_jobs(queue.tallies(fenced), fenced, p_tasks, ids, p_events);
    IF has.gates OR cardinality(p_changes) > 0 THEN
        PERFORM queue.free_gates(fenced, p_changes);
    END IF;
    IF bears THEN
        FOR j IN
            SELECT t.job_id AS id, q.organisation_id, q.priority, array_agg(DISTINCT t.gate) AS gates
            FROM unnest(p_tasks) t
            CROSS JOIN LATERAL (
                SELECT q.organisation_id, q.priority FROM queue.job q WHERE q.id = t.job_id OFFSET 0) q
            WHERE t.job_id <> ALL (jobs.closed)
            GROUP BY 1, 2, 3 ORDER BY 2, 1
        LOOP
            PERFORM queue.open_lanes(j.id, j.organisation_id, j.priority, ARRAY(
                SELECT g FROM unnest(p_gates) g WHERE g.name = ANY (j.gates) ORDER BY g.name));
        END LOOP;
        -- A job that has ended has no lanes, so its new tasks are not written.
        PERFORM queue.write_tasks(p_tasks, ids, jobs.over);
        IF EXISTS (SELECT FROM unnest(ids) u(id) WHERE u.id < 0) THEN
            PERFORM queue.raise_priorities(p_tasks, ids);
        END IF;
    END IF;
    PERFORM queue.write_outcomes(fenced, jobs.closed);
    RETURN jobs.news;
END
$$;

CREATE FUNCTION queue.settle_jobs(p_tallies queue.tally[], p_endings queue.ending[], p_tasks queue.new_task[], p_ids bigint[], p_events queue.new_event[], OUT over boolean[], OUT closed uuid[], OUT news uuid[]) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    tallies queue.tally[] := p_tallies;
    j record;
    job record;
    now_over boolean[];
    added record;
    admitted bigint;
    left_over bigint;
    new_status text;
    event_number bigint;
BEGIN
    over := array_fill(false, ARRAY[coalesce(cardinality(p_ids), 0)]);
    closed := '{}';
    news := '{}';
    IF cardinality(p_tasks) = 0 AND cardinality(p_events) = 0 THEN
        tallies := queue.count_down(tallies);
    END IF;
    FOR j IN
        SELECT t.job_id AS id, t.organisation_id, t.completed, t.failed, t.skipped, t.cancelled,
               t.completed + t.failed + t.skipped + t.cancelled AS ended, t.slots
        FROM unnest(tallies) t ORDER BY 2, 1
    LOOP
        SELECT q.ctid AS at, q.status, q.standing, q.kind, q.priority, q.task_limit, q.reserved,
               q.overflow, q.remaining, q.last_event, q.completed, q.failed, q.skipped, q.ttl,
               q.failed_ttl,
               q.zero_data_retention, q.started_at
        INTO job FROM queue.job q WHERE q.id = j.id FOR NO KEY UPDATE;

        IF job.status IN ('completed', 'failed', 'cancelled') THEN
            -- The job has ended: its open tasks have been counted as cancelled.
            closed := closed || j.id;
            UPDATE queue.job q
            SET completed = q.completed + j.completed, failed = q.failed + j.failed,
                skipped = q.skipped + j.skipped,
                cancelled = q.cancelled - (j.completed + j.failed + j.skipped),
                active = q.active - j.slots
            WHERE q.ctid = job.at;
            CONTINUE;
        END IF;

        added := queue.count_new_tasks(p_endings, p_tasks, p_ids, j.id, j.skipped,
            job.task_limit, job.reserved, job.overflow);
        IF added.over IS NOT NULL THEN
            over := ARRAY(SELECT a OR b FROM unnest(over, added.over) AS o(a, b));
        END IF;
        left_over := job.remaining - j.ended + added.admitted + added.total;
        event_number := job.last_event;
        new_status := CASE
            WHEN left_over > 0 OR job.standing THEN
                CASE job.status WHEN 'pending' THEN 'running' ELSE job.status END
            WHEN queue.is_fruitless(
                j.id, p_endings, job.completed + j.completed, job.failed + j.failed,
                job.skipped + j.skipped, job.reserved - added.released + added.counted)
                THEN 'failed'
            ELSE 'completed' END;

        IF job.status = 'pending' THEN
            event_number := event_number + 1;
            INSERT INTO queue.event (job_id, number, organisation_id, type, data) VALUES (
                j.id, event_number, j.organisation_id, 'job.started',
                jsonb_build_object('kind', job.kind));
        END IF;
        IF cardinality(p_events) > 0 THEN
            INSERT INTO queue.event (job_id, number, organisation_id, type, task_id, data)
            SELECT j.id, event_number + row_number() OVER (ORDER BY e.position), j.organisation_id,
                   e.type, e.task_id, e.data::jsonb
            FROM unnest(p_events) WITH ORDINALITY AS e(job_id, task_id, type, data, position)
            WHERE e.job_id = j.id AND (e.task_id IS NULL OR EXISTS (
                SELECT FROM unnest(p_endings) s WHERE s.task_id = e.task_id));
            event_number := event_number
                + (SELECT count(*) FROM queue.event e
                   WHERE e.job_id = j.id AND e.number > event_number);
        END IF;
        IF new_status IN ('completed', 'failed') THEN
            event_number := event_number + 1;
        END IF;

        UPDATE queue.job q
        SET status = new_status, remaining = left_over, total = q.total + added.admitted + added.total,
            completed = q.completed + j.completed, failed = q.failed + j.failed,
            skipped = q.skipped + j.skipped, cancelled = q.cancelled + j.cancelled,
            reserved = q.reserved - added.released + added.admitted + added.counted,
            overflow = q.overflow - added.admitted + added.beyond,
            found = q.found + added.linked, from_sitemap = q.from_sitemap + added.from_sitemap,
            active = q.active - j.slots, last_event = event_number,
            started_at = coalesce(q.started_at, now()),
            finished_at = CASE WHEN new_status IN ('completed', 'failed') THEN now() END,
            error = CASE WHEN new_status = 'failed' THEN queue.failure_reason(j.id, p_endings) END,
            expires_at = CASE
                WHEN new_status NOT IN ('completed', 'failed') THEN NULL
                ELSE now() + queue.retention(q.zero_data_retention, new_status, q.ttl, q.failed_ttl) END
        WHERE q.ctid = job.at;

        IF new_status IN ('completed', 'failed') THEN
            PERFORM queue.add_terminal_event(j.id);
            -- The lanes are empty, and a later round creates new ones; but tasks in the overflow
            -- still refer to theirs.
            IF job.overflow + added.beyond = added.admitted THEN
                DELETE FROM queue.lane l WHERE l.job_id = j.id;
            END IF;
        END IF;
        IF added.admitted > 0 THEN
            PERFORM queue.admit_overflow(j.id, added.admitted);
        END IF;
        IF event_number > job.last_event THEN
            news := news || j.id;
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION queue.slot_gate() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (1)::smallint;

CREATE FUNCTION queue.slot_inline() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (8)::smallint;

CREATE FUNCTION queue.slot_job() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (2)::smallint;

CREATE FUNCTION queue.slot_organisation() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (4)::smallint;

CREATE FUNCTION queue.slot_pages() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (16)::smallint;

CREATE FUNCTION queue.source_found() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (1)::smallint;

CREATE FUNCTION queue.source_sitemap() RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (2)::smallint;

CREATE FUNCTION queue.start_jobs(p_jobs uuid[]) RETURNS SETOF queue.claimed
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    WITH idle AS MATERIALIZED (
        SELECT j.id FROM queue.job j WHERE j.id = ANY (p_jobs) AND j.status = 'pending'
        ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
    ),
    started AS (
        UPDATE queue.job j
        SET status = 'running', started_at = now(), last_event = j.last_event + 1
        WHERE j.id = ANY (ARRAY(SELECT i.id FROM idle i))
        RETURNING j.id, j.organisation_id, j.last_event, j.kind
    ),
    told AS (
        INSERT INTO queue.event (job_id, number, organisation_id, type, data)
        SELECT s.id, s.last_event, s.organisation_id, 'job.started', jsonb_build_object('kind', s.kind)
        FROM started s
    )
    SELECT NULL::bigint, NULL::bigint, NULL::bigint, NULL::smallint, NULL::bigint, NULL::smallint,
           NULL::smallint, NULL::text, NULL::text, NULL::smallint, NULL::interval, NULL::timestamptz,
           NULL::uuid, NULL::text, NULL::timestamptz, s.id, 'running'
    FROM started s
$$;

CREATE FUNCTION queue.take_keys(p_tasks queue.new_task[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    ids bigint[] := ARRAY(
        SELECT nextval('queue.task_id_seq') FROM generate_series(1, cardinality(p_tasks)));
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(p_tasks) t WHERE t.key IS NOT NULL) THEN
        RETURN ids;
    END IF;
    DELETE FROM queue.unique_key k WHERE k.ctid = ANY (ARRAY(
        SELECT e.at FROM unnest(p_tasks) t CROSS JOIN LATERAL (
            SELECT e.ctid AS at FROM queue.unique_key e
            WHERE e.scope = t.key_scope AND e.key = t.key AND e.expires_at <= now()
            OFFSET 0) e));
    INSERT INTO queue.unique_key (scope, key, job_id, task_id, expires_at)
    SELECT DISTINCT ON (t.key_scope, t.key) t.key_scope, t.key, t.job_id, t.id, t.key_expires_at
    FROM unnest(p_tasks, ids) WITH ORDINALITY
        AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
             deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, position)
    WHERE t.key IS NOT NULL AND NOT EXISTS (
        SELECT FROM queue.unique_key e WHERE e.scope = t.key_scope AND e.key = t.key)
    ORDER BY t.key_scope, t.key, t.position
    ON CONFLICT (scope, key) DO NOTHING;
    RETURN ARRAY(
        SELECT CASE WHEN k.task_id IS NULL OR k.task_id = t.id THEN t.id ELSE -k.task_id END
        FROM unnest(p_tasks, ids) WITH ORDINALITY
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, position)
        LEFT JOIN LATERAL (
            SELECT k.task_id FROM queue.unique_key k
            WHERE k.scope = t.key_scope AND k.key = t.key OFFSET 0) k ON true
        ORDER BY t.position);
END
$$;

CREATE FUNCTION queue.take_slots(p_organisation uuid, p_gate queue.new_gate, p_latest timestamp with time zone, OUT gate_id bigint, OUT slots smallint, OUT begin_at timestamp with time zone, OUT blocked_by text) RETURNS record
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    at timestamptz := clock_timestamp();
    kept timestamptz := at + interval '300 milliseconds';
    gate queue.gate;
    quota queue.quota;
    pause interval;
    most integer;
    pages_most bigint;
BEGIN
    slots := queue.slot_inline();
    SELECT o.max_concurrency, o.max_pages_per_day INTO most, pages_most
    FROM tenancy.organisation o WHERE o.id = p_organisation;
    IF most IS NOT NULL OR pages_most IS NOT NULL THEN
        INSERT INTO queue.quota (organisation_id) VALUES (p_organisation) ON CONFLICT DO NOTHING;
        SELECT * INTO quota FROM queue.quota q WHERE q.organisation_id = p_organisation
        FOR NO KEY UPDATE;
        IF quota.day <> queue.day_of(at) THEN quota.pages := 0; END IF;
        IF quota.pages >= pages_most THEN
            blocked_by := 'pages';
            RETURN;
        ELSIF quota.active >= most THEN
            UPDATE queue.quota q SET kept_until = kept WHERE q.organisation_id = p_organisation;
            blocked_by := 'organisation';
            RETURN;
        END IF;
        IF most IS NOT NULL THEN slots := slots | queue.slot_organisation(); END IF;
        IF pages_most IS NOT NULL THEN slots := slots | queue.slot_pages(); END IF;
    END IF;

    SELECT * INTO gate FROM queue.gate g WHERE g.name = p_gate.name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM queue.open_gates(ARRAY[p_gate]);
        SELECT * INTO gate FROM queue.gate g WHERE g.name = p_gate.name FOR NO KEY UPDATE;
    END IF;
    pause := greatest(gate.floor, coalesce(p_gate.lane_gap, gate.gap));
    -- A host that asks for a delay gets one request after the other, whatever the job allows.
    most := CASE WHEN gate.floor > interval '0' THEN 1 ELSE coalesce(p_gate.lane_bound, gate.bound) END;
    begin_at := greatest(at, gate.ready_at);
    IF begin_at > p_latest THEN
        blocked_by := 'gap';
    ELSIF gate.in_flight >= most THEN
        blocked_by := 'gate';
        UPDATE queue.gate g SET kept_until = kept WHERE g.id = gate.id;
    END IF;
    IF blocked_by IS NOT NULL THEN RETURN; END IF;
    gate_id := gate.id;
    IF most IS NOT NULL THEN slots := slots | queue.slot_gate(); END IF;
    UPDATE queue.gate g
    SET in_flight = g.in_flight + (most IS NOT NULL)::integer,
        ready_at = CASE WHEN pause > interval '0' THEN begin_at + pause ELSE g.ready_at END
    WHERE g.id = gate.id;
    IF slots & (queue.slot_organisation() | queue.slot_pages()) > 0 THEN
        UPDATE queue.quota q
        SET active = q.active + (slots & queue.slot_organisation() > 0)::integer,
            day = CASE WHEN slots & queue.slot_pages() > 0 THEN queue.day_of(at) ELSE q.day END,
            pages = CASE WHEN slots & queue.slot_pages() > 0 THEN quota.pages + 1 ELSE q.pages END
        WHERE q.organisation_id = p_organisation;
    END IF;
END
$$;

CREATE FUNCTION queue.tallies(p_endings queue.ending[]) RETURNS queue.tally[]
    LANGUAGE sql
    AS $$
    SELECT ARRAY(
        SELECT ROW(e.job_id, e.organisation_id,
                   count(*) FILTER (WHERE e.verdict = queue.outcome_completed()),
                   count(*) FILTER (WHERE e.verdict = queue.outcome_failed()),
                   count(*) FILTER (WHERE e.verdict = queue.outcome_skipped()),
                   count(*) FILTER (WHERE e.verdict = queue.outcome_cancelled()),
                   count(*) FILTER (WHERE e.slots & queue.slot_job() > 0))::queue.tally
        FROM unnest(p_endings) e GROUP BY e.job_id, e.organisation_id)
$$;

CREATE FUNCTION queue.tally_job() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO queue.job_tally (organisation_id, hour, kind, status, jobs)
        VALUES (OLD.organisation_id, date_trunc('hour', OLD.created_at, 'UTC'), OLD.kind, OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO queue.job_tally (organisation_id, hour, kind, status, jobs)
        VALUES (NEW.organisation_id, date_trunc('hour', NEW.created_at, 'UTC'), NEW.kind, NEW.status, 1);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION queue.uuid_of(number bigint) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (('00000000-0000-8000-8000-'::text || lpad(to_hex(number), 12, '0'::text)))::uuid;

CREATE FUNCTION queue.wake_lanes(p_lanes bigint[]) RETURNS void
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    UPDATE queue.lane SET awake = true WHERE id = ANY (p_lanes) AND NOT awake
$$;

CREATE FUNCTION queue.write_completed(p_leases bigint[], p_tasks bigint[], p_results text[]) RETURNS queue.tally[]
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_nestloop TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    tallies queue.tally[];
BEGIN
    WITH held AS MATERIALIZED (
        SELECT s.id, s.agent_id, s.claimed_at, v.tasks
        FROM (
            SELECT u.lease_id, array_agg(u.task_id) AS tasks
            FROM unnest(p_leases, p_tasks) AS u(lease_id, task_id) GROUP BY u.lease_id
        ) v
        CROSS JOIN LATERAL (
            SELECT s.id, s.agent_id, s.claimed_at FROM queue.lease s
            WHERE s.id = v.lease_id AND s.expires_at > clock_timestamp() OFFSET 0) s
    ),
    gone AS MATERIALIZED (
        DELETE FROM queue.leased d WHERE d.ctid = ANY (ARRAY(
            SELECT i.at FROM held h CROSS JOIN LATERAL (
                SELECT i.ctid AS at FROM queue.leased i
                WHERE i.lease_id = h.id AND i.task_id = ANY (h.tasks) AND i.slots = 0 OFFSET 0) i))
        RETURNING d.lease_id, d.task_id, d.lane_id, d.attempts, d.stalls
    ),
    written AS (
        INSERT INTO queue.done (task_id, status, attempts, stalls, agent_id, started_at, result)
        SELECT g.task_id, queue.outcome_completed(), g.attempts + 1, g.stalls, h.agent_id, h.claimed_at, nullif(r.result, '')::jsonb
        FROM gone g
        JOIN held h ON h.id = g.lease_id
        LEFT JOIN unnest(p_tasks, p_results) AS r(task_id, result)
            ON cardinality(p_results) > 0 AND r.task_id = g.task_id
    )
    SELECT array_agg(ROW(j.job_id, j.organisation_id, j.n, 0, 0, 0, 0)::queue.tally) INTO tallies
    FROM (
        SELECT l.job_id, l.organisation_id, sum(c.n)::bigint AS n
        FROM (SELECT g.lane_id, count(*) AS n FROM gone g GROUP BY g.lane_id) c
        CROSS JOIN LATERAL (
            SELECT l.job_id, l.organisation_id FROM queue.lane l WHERE l.id = c.lane_id OFFSET 0) l
        GROUP BY l.job_id, l.organisation_id
    ) j;
    RETURN tallies;
END
$$;

CREATE FUNCTION queue.write_outcomes(p_endings queue.ending[], p_closed uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    lanes bigint[];
    has record;
BEGIN
    SELECT bool_or(e.verdict = queue.outcome_failed()) AS failures,
           bool_or(e.verdict >= queue.outcome_retry()) AS returns
    INTO has FROM unnest(p_endings) e;
    INSERT INTO queue.done (
        task_id, status, code, attempts, stalls, agent_id, started_at, error, result)
    SELECT e.task_id, least(e.verdict, queue.outcome_cancelled()), e.code,
           e.attempts + CASE WHEN e.verdict <= queue.outcome_skipped() THEN 1 ELSE 0 END,
           e.stalls, e.agent_id, e.claimed_at, e.error, e.result::jsonb
    FROM unnest(p_endings) e
    WHERE e.verdict <= queue.outcome_cancelled() OR e.job_id = ANY (p_closed);

    IF has.failures THEN
        INSERT INTO queue.dead_letter (task_id, organisation_id, job_id, kind, code, error)
        SELECT e.task_id, e.organisation_id, e.job_id, t.kind, e.code, e.error
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.kind FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict = queue.outcome_failed();
    END IF;

    IF has.returns THEN
        INSERT INTO queue.waiting (task_id, lane_id, priority, run_at, attempts, stalls, deadline)
        SELECT e.task_id, e.lane_id, e.priority, e.run_at,
               e.attempts + CASE WHEN e.verdict = queue.outcome_retry() THEN 1 ELSE 0 END,
               e.stalls, t.deadline
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.deadline FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict >= queue.outcome_retry() AND e.run_at > now() AND e.job_id <> ALL (p_closed);

        INSERT INTO queue.ready (task_id, lane_id, priority, attempts, stalls, deadline)
        SELECT e.task_id, e.lane_id, e.priority,
               e.attempts + CASE WHEN e.verdict = queue.outcome_retry() THEN 1 ELSE 0 END,
               e.stalls, t.deadline
        FROM unnest(p_endings) e
        CROSS JOIN LATERAL (SELECT t.deadline FROM queue.task t WHERE t.id = e.task_id OFFSET 0) t
        WHERE e.verdict >= queue.outcome_retry() AND (e.run_at IS NULL OR e.run_at <= now())
            AND e.job_id <> ALL (p_closed);
        lanes := ARRAY(
            SELECT DISTINCT e.lane_id FROM unnest(p_endings) e
            WHERE e.verdict >= queue.outcome_retry() ORDER BY 1);
        PERFORM l.id FROM queue.lane l WHERE l.id = ANY (lanes) ORDER BY l.id FOR KEY SHARE;
        PERFORM queue.wake_lanes(lanes);
    END IF;
END
$$;

CREATE FUNCTION queue.write_tasks(p_tasks queue.new_task[], p_ids bigint[], p_over boolean[]) RETURNS void
    LANGUAGE sql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    WITH added AS MATERIALIZED (
        SELECT t.*, l.id AS lane_id, l.organisation_id, g.id AS gate_id
        FROM unnest(p_tasks, p_ids, p_over)
            AS t(job_id, gate, kind, payload, parent_id, priority, max_attempts, timeout, run_at,
                 deadline, counted, source, trace_id, key_scope, key, key_expires_at, id, over)
        CROSS JOIN LATERAL (SELECT g.id FROM queue.gate g WHERE g.name = t.gate OFFSET 0) g
        CROSS JOIN LATERAL (
            SELECT l.id, l.organisation_id FROM queue.lane l
            WHERE l.job_id = t.job_id AND l.gate_id = g.id OFFSET 0) l
        WHERE t.id > 0
    ),
    described AS (
        INSERT INTO queue.task (
            id, organisation_id, job_id, lane_id, gate_id, parent_id, kind, payload, priority,
            max_attempts, timeout, deadline, counted, source, trace_id)
        OVERRIDING SYSTEM VALUE
        SELECT id, organisation_id, job_id, lane_id, gate_id, parent_id, kind, payload::jsonb, priority,
               max_attempts, timeout, deadline, counted, source, trace_id
        FROM added
    ),
    later AS (
        INSERT INTO queue.waiting (task_id, lane_id, priority, run_at, deadline)
        SELECT id, lane_id, priority, run_at, deadline
        FROM added WHERE NOT over AND run_at > now()
    ),
    beyond AS (
        INSERT INTO queue.overflow (job_id, task_id)
        SELECT job_id, id FROM added WHERE over
    )
    -- The turn of a first attempt is its id, by which queue.raise_priorities finds the row.
    INSERT INTO queue.ready (lane_id, priority, turn, task_id, deadline)
    SELECT lane_id, priority, id, id, deadline
    FROM added WHERE NOT over AND (run_at IS NULL OR run_at <= now())
    ORDER BY id
$$;

CREATE FUNCTION store.count_pages() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM store.move_pages(ARRAY(SELECT group_id FROM come), '{}');
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM store.move_pages('{}', ARRAY(SELECT group_id FROM gone));
    ELSE
        PERFORM store.move_pages(
            ARRAY(SELECT group_id FROM come), ARRAY(SELECT group_id FROM gone));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION store.look_up_pages(p_organisations uuid[], p_sites uuid[], p_origins text[], p_variants bytea[], p_hashes bytea[]) RETURNS TABLE("position" bigint, site_id uuid, last_visit_at timestamp with time zone, last_contentful_at timestamp with time zone, last_etag text, last_modified timestamp with time zone, looks double precision, changes double precision, seconds double precision, failures integer, due_at timestamp with time zone, version_id bigint, content_hash bytea, variant bytea)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
BEGIN
    RETURN QUERY
    SELECT
        wanted.position, s.id, c.last_visit_at, c.last_contentful_at, c.last_etag, c.last_modified,
        coalesce(c.looks, 0), coalesce(c.changes, 0), coalesce(c.seconds, 0),
        coalesce(c.failures, 0), c.due_at, p.version_id, p.content_hash, p.variant
    FROM unnest(p_organisations, p_sites, p_origins, p_variants, p_hashes) WITH ORDINALITY
        AS wanted (organisation_id, site_id, origin, variant, hash, position)
    LEFT JOIN LATERAL (
        SELECT wanted.site_id AS id WHERE wanted.site_id IS NOT NULL
        UNION ALL
        SELECT i.id FROM store.site i
        WHERE wanted.site_id IS NULL AND i.organisation_id = wanted.organisation_id
            AND i.base_url = wanted.origin AND i.variant = wanted.variant
            AND i.implicit AND i.deleted_at IS NULL
    ) s ON true
    LEFT JOIN LATERAL (
        SELECT u.id FROM frontier.url u
        WHERE u.organisation_id = wanted.organisation_id AND u.hash = wanted.hash OFFSET 0
    ) u ON true
    LEFT JOIN LATERAL (
        SELECT c.* FROM frontier.candidate c WHERE c.site_id = s.id AND c.url_id = u.id OFFSET 0
    ) c ON true
    LEFT JOIN LATERAL (
        SELECT p.version_id, p.content_hash, p.variant FROM store.page p
        WHERE p.site_id = c.site_id AND p.url_id = c.url_id OFFSET 0
    ) p ON true;
END
$$;

CREATE FUNCTION store.move_pages(come bigint[], gone bigint[]) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO store.duplicate_group AS g (group_id, organisation_id, site_id, pages)
    SELECT c.id, c.organisation_id, c.site_id, sum(moved.by)
    FROM (
        SELECT unnest(come) AS group_id, 1 AS by UNION ALL SELECT unnest(gone), -1
    ) moved
    JOIN store.content_hash c ON c.id = moved.group_id
    GROUP BY c.id HAVING sum(moved.by) <> 0
    -- In one order, so that two who move pages do not wait for each other.
    ORDER BY c.id
    ON CONFLICT (group_id) DO UPDATE SET pages = g.pages + excluded.pages
$$;

CREATE FUNCTION store.record_pages(p_sightings store.new_sighting[]) RETURNS SETOF store.seen
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
DECLARE
    finds store.find[];
    inserted bigint;
BEGIN
    -- The present pages, locked, and the effect of each sighting on its page.
    finds := ARRAY(
        SELECT ROW(
            coalesce(p.id, (x.s).page_id), p.id IS NULL, p.version_id,
            CASE WHEN c.change = 1 THEN p.version_id ELSE nextval('store.version_id_seq') END,
            coalesce(p.version_number, 0) + CASE WHEN c.change = 1 THEN 0 ELSE 1 END,
            c.change, p.gone_at IS NOT NULL, (x.s).content_hash <> p.content_hash
        )::store.find
        FROM (SELECT unnest(p_sightings) AS s OFFSET 0) x
        LEFT JOIN LATERAL (
            SELECT p.* FROM store.page p
            WHERE p.site_id = (x.s).site_id AND p.url_id = (x.s).url_id
            FOR NO KEY UPDATE OFFSET 0) p ON true
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN (x.s).content_hash IS NULL THEN 1
                WHEN p.version_id IS NULL THEN 0
                WHEN (x.s).variant <> p.variant
                    AND (p.variant <> '\x00' OR (x.s).content_hash = p.content_hash) THEN 0
                WHEN (x.s).content_hash = p.content_hash THEN 1
                WHEN (x.s).alike AND (x.s).compared_with = p.version_id THEN 1
                ELSE 2 END AS change
            OFFSET 0) c);

    -- One write for each page.
    INSERT INTO store.page (
        id, organisation_id, site_id, url_id, first_seen_at, last_seen_at, version_id,
        version_number, content_hash, extractor_version, changed_at, variant)
    SELECT (x.f).page_id, (x.s).organisation_id, (x.s).site_id, (x.s).url_id, (x.s).seen_at,
           (x.s).seen_at, (x.f).version_id, (x.f).number, (x.s).content_hash,
           CASE WHEN (x.f).change = 0 THEN (x.s).extractor_version END,
           CASE WHEN (x.f).change = 0 THEN (x.s).seen_at END, (x.s).variant
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).is_new
    ON CONFLICT (site_id, url_id) DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted < (SELECT count(*) FROM unnest(finds) f WHERE f.is_new) THEN
        RAISE EXCEPTION 'another visit inserted the page meanwhile'
        USING ERRCODE = 'serialization_failure';
    END IF;
    IF inserted < cardinality(finds) THEN
        UPDATE store.page p
        SET last_seen_at = greatest(p.last_seen_at, (x.s).seen_at),
            returned_at = CASE WHEN p.gone_at IS NULL THEN p.returned_at ELSE (x.s).seen_at END,
            gone_at = NULL, version_id = (x.f).version_id, version_number = (x.f).number,
            content_hash =
                CASE WHEN (x.f).change = 1 THEN p.content_hash ELSE (x.s).content_hash END,
            extractor_version = CASE
                WHEN (x.f).change = 1 THEN p.extractor_version ELSE (x.s).extractor_version END,
            changed_at = CASE WHEN (x.f).change = 1 THEN p.changed_at ELSE (x.s).seen_at END,
            variant = CASE WHEN (x.f).change = 1 THEN p.variant ELSE (x.s).variant END
        FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
        WHERE p.id = (x.f).page_id AND NOT (x.f).is_new;
    END IF;

    INSERT INTO store.version (
        id, organisation_id, page_id, number, visit_id, job_id, fetched_at, content_hash,
        extractor_version, status, content_type, title, language, page_type, text, markdown,
        metadata, links, warning, sha256, variant)
    OVERRIDING SYSTEM VALUE
    SELECT (x.f).version_id, (x.s).organisation_id, (x.f).page_id, (x.f).number, (x.s).visit_id,
           (x.s).job_id, (x.s).seen_at, (x.s).content_hash, (x.s).extractor_version, (x.s).status,
           (x.s).content_type, (x.s).title, (x.s).language, (x.s).page_type, (x.s).text,
           (x.s).markdown, (x.s).metadata::jsonb, (x.s).links::jsonb, (x.s).warning, (x.s).sha256,
           (x.s).variant
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).change <> 1;

    -- Change events: new, changed and returned pages; not the first version of another variant, and not
    -- a page that differs only in what its site ignores.
    INSERT INTO store.change (
        organisation_id, site_id, page_id, url_id, status, source, detected_at, version_id,
        previous_version_id, job_id, added_lines, removed_lines, added_words, removed_words)
    SELECT
        (x.s).organisation_id, (x.s).site_id, (x.f).page_id, (x.s).url_id,
        -- A page that was reported as removed is reported as new when it returns.
        CASE WHEN (x.f).returned OR (x.f).change = 0 THEN 'new'
            WHEN (x.f).change = 1 THEN 'same' ELSE 'changed' END,
        'visit', (x.s).seen_at, (x.f).version_id, (x.f).before_id, (x.s).job_id,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).added_lines END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).removed_lines END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).added_words END,
        CASE WHEN (x.s).compared_with = (x.f).before_id THEN (x.s).removed_words END
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    WHERE (x.f).returned OR (x.f).change = 2 OR (x.f).change = 0 AND (x.f).before_id IS NULL;

    INSERT INTO store.sighting (organisation_id, site_id, page_id, version_id, seen_at)
    SELECT (x.s).organisation_id, (x.s).site_id, (x.f).page_id, (x.f).version_id, (x.s).seen_at
    FROM (SELECT unnest(p_sightings) AS s, unnest(finds) AS f OFFSET 0) x
    CROSS JOIN LATERAL generate_series(1, (x.s).times)
    WHERE (x.f).version_id IS NOT NULL;

    RETURN QUERY SELECT f.page_id, f.version_id, f.number, f.change FROM unnest(finds) f;
END
$$;

CREATE FUNCTION tenancy.current_organisation() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('trapline.organisation_id'::text, true), ''::text))::uuid;

COMMENT ON FUNCTION tenancy.current_organisation() IS 'The organisation of this transaction; null outside of one, so that no row matches.';

CREATE FUNCTION tenancy.isolate(target regclass, predicate text DEFAULT 'organisation_id = (SELECT tenancy.current_organisation())'::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY tenant ON %s TO trapline_tenant USING (%s)', target, predicate);
    -- The owner inherits this one from its membership, or migrations and backups would see nothing.
    EXECUTE format('CREATE POLICY worker ON %s TO trapline_worker USING (true)', target);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO trapline_tenant, trapline_worker', target);
END
$$;

COMMENT ON FUNCTION tenancy.isolate(target regclass, predicate text) IS 'Give a table that belongs to organisations its row-level security and its grants.';

CREATE FUNCTION tenancy.share(target regclass) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO trapline_worker', target);
    EXECUTE format('GRANT SELECT ON %s TO trapline_tenant', target);
END
$$;

COMMENT ON FUNCTION tenancy.share(target regclass) IS 'Grant a table that belongs to no organisation: workers write it, tenants read it.';

CREATE FUNCTION tenancy.write_denial(p_key uuid, p_organisation uuid) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    SELECT CASE
        WHEN p_key IS NULL THEN
            CASE WHEN EXISTS (SELECT FROM tenancy.api_key)
                THEN 'caller' END
        WHEN NOT EXISTS (
            SELECT FROM tenancy.api_key a
            WHERE a.id = p_key AND a.organisation_id = p_organisation AND a.revoked_at IS NULL
                AND 'write' = ANY (a.scopes))
        THEN 'caller' END
$$;

CREATE FUNCTION unobtanium.part_of(visit bigint, number smallint) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ((visit * 32768) + number);

CREATE FUNCTION unobtanium.seconds(moment timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (floor(EXTRACT(epoch FROM moment)))::bigint;

CREATE FUNCTION webhook.moment(given text) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
    AS $$
BEGIN
    RETURN given::timestamptz;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

CREATE TABLE knowledge.application (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    rescrape_every interval,
    created_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT application_name_check CHECK (((name <> ''::text) AND (length(name) <= 300))),
    CONSTRAINT application_rescrape_every_check CHECK ((rescrape_every >= '00:01:00'::interval))
);

ALTER TABLE ONLY knowledge.application FORCE ROW LEVEL SECURITY;

CREATE VIEW app.applications WITH (security_invoker='true') AS
 SELECT id,
    name,
    organisation_id,
    created_by AS user_id,
    created_at,
    updated_at
   FROM knowledge.application a;

CREATE TABLE archive.file_default (
    visit_id bigint CONSTRAINT file_visit_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT file_started_at_not_null NOT NULL,
    organisation_id uuid CONSTRAINT file_organisation_id_not_null NOT NULL,
    request_number smallint,
    url_id bigint CONSTRAINT file_url_id_not_null NOT NULL,
    last_modified timestamp with time zone,
    size bigint,
    mimetype_id integer CONSTRAINT file_mimetype_id_not_null NOT NULL,
    canonical_url_id bigint,
    charset text,
    headers jsonb,
    sha256 bytea
);

ALTER TABLE ONLY archive.file_default FORCE ROW LEVEL SECURITY;

ALTER TABLE archive.mimetype ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME archive.mimetype_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE archive.redirect (
    visit_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    number smallint NOT NULL,
    organisation_id uuid NOT NULL,
    request_number smallint,
    url_id bigint NOT NULL,
    to_url_id bigint NOT NULL,
    source smallint NOT NULL,
    is_permanent boolean NOT NULL,
    by_security_policy boolean NOT NULL,
    last_modified timestamp with time zone
)
PARTITION BY RANGE (started_at);

ALTER TABLE ONLY archive.redirect FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.redirect_default (
    visit_id bigint CONSTRAINT redirect_visit_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT redirect_started_at_not_null NOT NULL,
    number smallint CONSTRAINT redirect_number_not_null NOT NULL,
    organisation_id uuid CONSTRAINT redirect_organisation_id_not_null NOT NULL,
    request_number smallint,
    url_id bigint CONSTRAINT redirect_url_id_not_null NOT NULL,
    to_url_id bigint CONSTRAINT redirect_to_url_id_not_null NOT NULL,
    source smallint CONSTRAINT redirect_source_not_null NOT NULL,
    is_permanent boolean CONSTRAINT redirect_is_permanent_not_null NOT NULL,
    by_security_policy boolean CONSTRAINT redirect_by_security_policy_not_null NOT NULL,
    last_modified timestamp with time zone
);

ALTER TABLE ONLY archive.redirect_default FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.request_default (
    visit_id bigint CONSTRAINT request_visit_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT request_started_at_not_null NOT NULL,
    number smallint CONSTRAINT request_number_not_null NOT NULL,
    organisation_id uuid CONSTRAINT request_organisation_id_not_null NOT NULL,
    url_id bigint CONSTRAINT request_url_id_not_null NOT NULL,
    sent_at timestamp with time zone CONSTRAINT request_sent_at_not_null NOT NULL,
    total_ms real,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    robots_approved boolean CONSTRAINT request_robots_approved_not_null NOT NULL,
    exit_code smallint CONSTRAINT request_exit_code_not_null NOT NULL,
    status smallint,
    etag text,
    last_modified timestamp with time zone,
    remote_address text
);

ALTER TABLE ONLY archive.request_default FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.visit_day (
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    day date NOT NULL,
    crawl_type smallint NOT NULL,
    exit_code smallint NOT NULL,
    visits bigint NOT NULL,
    took_ms bigint NOT NULL
);

ALTER TABLE ONLY archive.visit_day FORCE ROW LEVEL SECURITY;

CREATE TABLE archive.visit_default (
    id bigint CONSTRAINT visit_id_not_null NOT NULL,
    organisation_id uuid CONSTRAINT visit_organisation_id_not_null NOT NULL,
    uuid uuid CONSTRAINT visit_uuid_not_null NOT NULL,
    agent_id bigint,
    job_id uuid,
    task_id bigint,
    site_id uuid CONSTRAINT visit_site_id_not_null NOT NULL,
    url_id bigint CONSTRAINT visit_url_id_not_null NOT NULL,
    crawl_type smallint CONSTRAINT visit_crawl_type_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT visit_started_at_not_null NOT NULL,
    took_ms integer CONSTRAINT visit_took_ms_not_null NOT NULL,
    exit_code smallint CONSTRAINT visit_exit_code_not_null NOT NULL,
    message text
);

ALTER TABLE ONLY archive.visit_default FORCE ROW LEVEL SECURITY;

ALTER TABLE archive.visit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME archive.visit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW bee.domains WITH (security_invoker='true') AS
 SELECT id,
    (name)::character varying AS name,
    created_at
   FROM frontier.host h;

CREATE TABLE queue.done (
    task_id bigint NOT NULL,
    status smallint NOT NULL,
    code smallint,
    attempts smallint NOT NULL,
    stalls smallint NOT NULL,
    agent_id bigint,
    started_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT now() NOT NULL,
    error text,
    result jsonb,
    CONSTRAINT done_check CHECK (((status <> 1) OR (error IS NOT NULL))),
    CONSTRAINT done_status_check CHECK (((status >= 0) AND (status <= 3)))
);
ALTER TABLE ONLY queue.done ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE ONLY queue.done ALTER COLUMN result SET STATISTICS 0;

ALTER TABLE ONLY queue.done FORCE ROW LEVEL SECURITY;

CREATE VIEW bee.jobs WITH (security_invoker='true') AS
 SELECT (j.id_text)::text AS id,
    bee.domain_of(j.organisation_id, (j.options ->> 'url'::text)) AS domain_id,
    (j.member_id)::text AS user_id,
    (j.organisation_id)::text AS organisation_id,
        CASE j.status
            WHEN 'paused'::text THEN 'pending'::text
            ELSE j.status
        END AS status,
    (
        CASE
            WHEN (j.status = 'completed'::text) THEN 100.0
            WHEN ((j.total - u.total) > 0) THEN ((100.0 * ((((j.completed + j.failed) + j.skipped) - u.ended))::numeric) / ((j.total - u.total))::numeric)
            ELSE 0.0
        END)::real AS progress,
    ((j.total - u.total))::integer AS total_tasks,
    ((j.completed - u.completed))::integer AS completed_tasks,
    ((j.failed - u.failed))::integer AS failed_tasks,
    (j.skipped)::integer AS skipped_tasks,
    (((j.total - u.total) - LEAST(j.from_sitemap, (j.total - u.total))))::integer AS found_tasks,
    (LEAST(j.from_sitemap, (j.total - u.total)))::integer AS sitemap_tasks,
    j.created_at,
    j.started_at,
    j.finished_at AS completed_at,
    COALESCE(j.max_active, 1) AS concurrency,
    (j.kind = 'crawl'::text) AS find_links,
    (LEAST(j.task_limit, (2147483647)::bigint))::integer AS max_pages,
    (NULLIF((j.options -> 'include'::text), '[]'::jsonb))::text AS include_paths,
    (NULLIF((j.options -> 'exclude'::text), '[]'::jsonb))::text AS exclude_paths,
    j.required_workers
   FROM (queue.job j
     LEFT JOIN LATERAL ( SELECT count(*) AS total,
            count(d.task_id) AS ended,
            count(*) FILTER (WHERE (d.status = 0)) AS completed,
            count(*) FILTER (WHERE (d.status = 1)) AS failed
           FROM (queue.task t
             LEFT JOIN queue.done d ON ((d.task_id = t.id)))
          WHERE ((j.kind <> 'scrape'::text) AND (t.job_id = j.id) AND (NOT t.counted))) u ON (true))
  WHERE (NOT j.standing);

CREATE TABLE tenancy.organisation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    foreign_id text,
    max_concurrency integer,
    max_pages_per_day bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT organisation_max_concurrency_check CHECK ((max_concurrency > 0)),
    CONSTRAINT organisation_max_pages_per_day_check CHECK ((max_pages_per_day > 0)),
    CONSTRAINT organisation_name_check CHECK (((name <> ''::text) AND (length(name) <= 200)))
);

ALTER TABLE ONLY tenancy.organisation FORCE ROW LEVEL SECURITY;

CREATE VIEW bee.organisations WITH (security_invoker='true') AS
 SELECT (id)::text AS id,
    name,
    created_at,
    updated_at
   FROM tenancy.organisation o;

CREATE VIEW bee.pages WITH (security_invoker='true') AS
 SELECT id,
    host_id AS domain_id,
    path,
    created_at
   FROM frontier.url u;

CREATE TABLE queue.agent (
    id bigint NOT NULL,
    uuid uuid NOT NULL,
    name text NOT NULL,
    user_agent text,
    host text NOT NULL,
    pid integer NOT NULL,
    capacity integer NOT NULL,
    kinds text[] NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    heartbeat_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    died boolean DEFAULT false NOT NULL
);

CREATE TABLE queue.lane (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    gate_id bigint NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    open boolean DEFAULT true NOT NULL,
    awake boolean DEFAULT true NOT NULL,
    gap interval,
    bound integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT lane_bound_check CHECK ((bound > 0)),
    CONSTRAINT lane_gap_check CHECK ((gap >= '00:00:00'::interval))
)
WITH (fillfactor='80');

ALTER TABLE ONLY queue.lane FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.lease (
    id bigint NOT NULL,
    agent_id bigint NOT NULL,
    claimed_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01');

CREATE TABLE queue.leased (
    lease_id bigint NOT NULL,
    task_id bigint NOT NULL,
    lane_id bigint NOT NULL,
    priority smallint NOT NULL,
    attempts smallint NOT NULL,
    stalls smallint NOT NULL,
    slots smallint DEFAULT 0 NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='1');

ALTER TABLE ONLY queue.leased FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.quota (
    organisation_id uuid NOT NULL,
    active integer DEFAULT 0 NOT NULL,
    day date DEFAULT '1970-01-01'::date NOT NULL,
    pages bigint DEFAULT 0 NOT NULL,
    kept_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY queue.quota FORCE ROW LEVEL SECURITY;

ALTER TABLE queue.task ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.task_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.ready (
    lane_id bigint NOT NULL,
    priority smallint NOT NULL,
    turn bigint DEFAULT nextval('queue.task_id_seq'::regclass) NOT NULL,
    task_id bigint NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    stalls smallint DEFAULT 0 NOT NULL,
    deadline timestamp with time zone
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='1');

ALTER TABLE ONLY queue.ready FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.waiting (
    task_id bigint NOT NULL,
    lane_id bigint NOT NULL,
    priority smallint NOT NULL,
    run_at timestamp with time zone NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    stalls smallint DEFAULT 0 NOT NULL,
    deadline timestamp with time zone
)
WITH (autovacuum_vacuum_scale_factor='0.01');

ALTER TABLE ONLY queue.waiting FORCE ROW LEVEL SECURITY;

CREATE VIEW queue.place WITH (security_invoker='true') AS
 SELECT 'completed'::text AS state,
    t.*::queue.task AS task,
    j.*::queue.job AS job,
    (d.attempts)::integer AS attempts,
    (d.stalls)::integer AS stalls,
    d.started_at,
    d.finished_at,
    d.error,
    d.result,
    NULL::bigint AS lease_id,
    NULL::timestamp with time zone AS heartbeat_at,
    NULL::timestamp with time zone AS deadline,
    false AS held
   FROM ((queue.done d
     JOIN queue.task t ON ((t.id = d.task_id)))
     LEFT JOIN queue.job j ON ((j.id = t.job_id)))
  WHERE (d.status = 0)
UNION ALL
 SELECT 'failed'::text AS state,
    t.*::queue.task AS task,
    j.*::queue.job AS job,
    d.attempts,
    d.stalls,
    d.started_at,
    d.finished_at,
    d.error,
    d.result,
    NULL::bigint AS lease_id,
    NULL::timestamp with time zone AS heartbeat_at,
    NULL::timestamp with time zone AS deadline,
    false AS held
   FROM ((queue.done d
     JOIN queue.task t ON ((t.id = d.task_id)))
     LEFT JOIN queue.job j ON ((j.id = t.job_id)))
  WHERE (d.status = 1)
UNION ALL
 SELECT 'skipped'::text AS state,
    t.*::queue.task AS task,
    j.*::queue.job AS job,
    d.attempts,
    d.stalls,
    d.started_at,
    d.finished_at,
    COALESCE(d.error,
        CASE d.status
            WHEN 2 THEN 'skipped'::text
            ELSE 'cancelled'::text
        END) AS error,
    d.result,
    NULL::bigint AS lease_id,
    NULL::timestamp with time zone AS heartbeat_at,
    NULL::timestamp with time zone AS deadline,
    false AS held
   FROM ((queue.done d
     JOIN queue.task t ON ((t.id = d.task_id)))
     LEFT JOIN queue.job j ON ((j.id = t.job_id)))
  WHERE (d.status = ANY (ARRAY[2, 3]))
UNION ALL
 SELECT 'running'::text AS state,
    t.*::queue.task AS task,
    j.*::queue.job AS job,
    r.attempts,
    r.stalls,
    e.claimed_at AS started_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::text AS error,
    NULL::jsonb AS result,
    e.id AS lease_id,
    GREATEST(a.heartbeat_at, e.claimed_at) AS heartbeat_at,
    NULL::timestamp with time zone AS deadline,
    false AS held
   FROM ((((queue.leased r
     JOIN queue.lease e ON ((e.id = r.lease_id)))
     LEFT JOIN queue.agent a ON ((a.id = e.agent_id)))
     JOIN queue.task t ON ((t.id = r.task_id)))
     LEFT JOIN queue.job j ON ((j.id = t.job_id)))
UNION ALL
 SELECT 'queued'::text AS state,
    t.*::queue.task AS task,
    j.*::queue.job AS job,
    r.attempts,
    r.stalls,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::text AS error,
    NULL::jsonb AS result,
    NULL::bigint AS lease_id,
    NULL::timestamp with time zone AS heartbeat_at,
    r.deadline,
    (COALESCE((j.active >= j.max_active), false) OR (EXISTS ( SELECT
           FROM (queue.quota q
             JOIN tenancy.organisation o ON ((o.id = q.organisation_id)))
          WHERE ((q.organisation_id = t.organisation_id) AND (q.active >= o.max_concurrency))))) AS held
   FROM (((queue.ready r
     JOIN queue.lane l ON ((l.id = r.lane_id)))
     JOIN queue.job j ON ((j.id = l.job_id)))
     JOIN queue.task t ON (((t.id = r.task_id) AND (t.job_id = l.job_id))))
  WHERE (j.status = ANY (ARRAY['pending'::text, 'running'::text, 'paused'::text]))
UNION ALL
 SELECT 'queued'::text AS state,
    t.*::queue.task AS task,
    j.*::queue.job AS job,
    r.attempts,
    r.stalls,
    NULL::timestamp with time zone AS started_at,
    NULL::timestamp with time zone AS finished_at,
    NULL::text AS error,
    NULL::jsonb AS result,
    NULL::bigint AS lease_id,
    NULL::timestamp with time zone AS heartbeat_at,
    r.deadline,
    (COALESCE((j.active >= j.max_active), false) OR (EXISTS ( SELECT
           FROM (queue.quota q
             JOIN tenancy.organisation o ON ((o.id = q.organisation_id)))
          WHERE ((q.organisation_id = t.organisation_id) AND (q.active >= o.max_concurrency))))) AS held
   FROM (((queue.waiting r
     JOIN queue.lane l ON ((l.id = r.lane_id)))
     JOIN queue.job j ON ((j.id = l.job_id)))
     JOIN queue.task t ON (((t.id = r.task_id) AND (t.job_id = l.job_id))))
  WHERE (j.status = ANY (ARRAY['pending'::text, 'running'::text, 'paused'::text]));

CREATE VIEW bee.tasks WITH (security_invoker='true') AS
 SELECT ((task).id)::text AS id,
    ((job).id_text)::text AS job_id,
    bee.domain_of((task).organisation_id, ((task).payload ->> 'url'::text)) AS domain_id,
    bee.page_of((task).organisation_id, ((task).payload ->> 'url'::text)) AS page_id,
        CASE state
            WHEN 'queued'::text THEN 'pending'::text
            ELSE state
        END AS status,
        CASE (task).source
            WHEN 1 THEN 'link'::text
            WHEN 2 THEN 'sitemap'::text
            ELSE 'manual'::text
        END AS source_type,
    ((task).payload ->> 'found_on'::text) AS source_url,
    (task).created_at AS created_at,
    started_at,
    finished_at AS completed_at,
    ((result ->> 'status'::text))::integer AS status_code,
    bee.response_time((task).job_id, ((result ->> 'visit_id'::text))::bigint) AS response_time,
    bee.cache_status((task).job_id, ((result ->> 'visit_id'::text))::bigint) AS cache_status,
    bee.content_type((task).job_id, ((result ->> 'visit_id'::text))::bigint) AS content_type,
    error,
    GREATEST((attempts - 1), 0) AS retry_count,
    ((((1000 - (task).priority))::numeric / 1000.0))::real AS priority_score
   FROM queue.place p
  WHERE ((task).kind = 'single_urls'::text);

CREATE TABLE tenancy.member (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    email text NOT NULL,
    full_name text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT member_email_check CHECK (((email ~~ '%_@_%'::text) AND (length(email) <= 320)))
);

ALTER TABLE ONLY tenancy.member FORCE ROW LEVEL SECURITY;

CREATE VIEW bee.users WITH (security_invoker='true') AS
 SELECT (id)::text AS id,
    email,
    full_name,
    (organisation_id)::text AS organisation_id,
    created_at,
    updated_at
   FROM tenancy.member m;

CREATE TABLE deliver.delivery (
    endpoint_id uuid NOT NULL,
    number bigint NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    first_attempt_at timestamp with time zone,
    last_attempt_at timestamp with time zone,
    delivered_at timestamp with time zone,
    answer smallint,
    error text,
    took_ms integer,
    CONSTRAINT delivery_check CHECK (((state = ANY (ARRAY['pending'::text, 'delivered'::text])) OR (error IS NOT NULL))),
    CONSTRAINT delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'aside'::text, 'delivered'::text, 'dead'::text])))
)
WITH (fillfactor='80');

ALTER TABLE ONLY deliver.delivery FORCE ROW LEVEL SECURITY;

CREATE TABLE deliver.inbox (
    organisation_id uuid NOT NULL,
    message_id uuid NOT NULL,
    sender text NOT NULL,
    type text NOT NULL,
    subject text NOT NULL,
    sha256 bytea,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT inbox_sha256_check CHECK ((length(sha256) = 32))
);

ALTER TABLE ONLY deliver.inbox FORCE ROW LEVEL SECURITY;

CREATE TABLE frontier.candidate (
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    discovered_at timestamp with time zone DEFAULT now() NOT NULL,
    last_visit_at timestamp with time zone,
    last_exit_code smallint,
    last_contentful_at timestamp with time zone,
    last_etag text,
    last_modified timestamp with time zone,
    looks double precision DEFAULT 0 NOT NULL,
    changes double precision DEFAULT 0 NOT NULL,
    seconds double precision DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    declared text,
    due_at timestamp with time zone
)
WITH (fillfactor='80');

ALTER TABLE ONLY frontier.candidate FORCE ROW LEVEL SECURITY;

ALTER TABLE frontier.host ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME frontier.host_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frontier.robots (
    origin text NOT NULL,
    fetched_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    status integer,
    exit_code smallint NOT NULL,
    body bytea DEFAULT '\x'::bytea NOT NULL
);

ALTER TABLE frontier.url ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME frontier.url_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW frontier.url_text WITH (security_invoker='true') AS
 SELECT u.id,
    u.organisation_id,
    u.hash,
    ((
        CASE
            WHEN u.secure THEN 'https://'::text
            ELSE 'http://'::text
        END || h.name) || u.path) AS url
   FROM (frontier.url u
     JOIN frontier.host h ON ((h.id = u.host_id)));

CREATE TABLE knowledge.chunk (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    source_id uuid NOT NULL,
    entry_id bigint NOT NULL,
    ordinal integer NOT NULL,
    starts_at integer NOT NULL,
    ends_at integer NOT NULL,
    headings text[] NOT NULL,
    words text NOT NULL,
    tokens integer NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT chunk_hash_check CHECK ((length(hash) = 32))
);

ALTER TABLE ONLY knowledge.chunk FORCE ROW LEVEL SECURITY;

ALTER TABLE knowledge.chunk ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME knowledge.chunk_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE knowledge.entry (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    source_id uuid NOT NULL,
    generation integer NOT NULL,
    uri text NOT NULL,
    path text DEFAULT ''::text NOT NULL,
    title text,
    language text DEFAULT 'xx'::text NOT NULL,
    content_type text,
    page_id uuid,
    version_id bigint,
    content_hash bytea NOT NULL,
    markdown text,
    dated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT entry_content_hash_check CHECK ((length(content_hash) = 32))
);

ALTER TABLE ONLY knowledge.entry FORCE ROW LEVEL SECURITY;

ALTER TABLE knowledge.entry ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME knowledge.entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE knowledge.generation (
    source_id uuid NOT NULL,
    generation integer NOT NULL,
    organisation_id uuid NOT NULL,
    model_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY knowledge.generation FORCE ROW LEVEL SECURITY;

CREATE TABLE knowledge.intake (
    organisation_id uuid NOT NULL,
    crawl text NOT NULL,
    source_id uuid NOT NULL,
    job_id uuid NOT NULL,
    task_id bigint NOT NULL,
    ended text,
    error text,
    pages bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT intake_crawl_check CHECK (((crawl <> ''::text) AND (length(crawl) <= 300))),
    CONSTRAINT intake_ended_check CHECK ((ended = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])))
);

ALTER TABLE ONLY knowledge.intake FORCE ROW LEVEL SECURITY;

CREATE TABLE knowledge.mirror (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    alone boolean DEFAULT true NOT NULL,
    url text NOT NULL,
    copied_to bigint DEFAULT 0 NOT NULL,
    whole_at timestamp with time zone,
    tended_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT mirror_alone_check CHECK (alone)
);

CREATE TABLE knowledge.mirror_change (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    model_id integer NOT NULL,
    chunk_id bigint NOT NULL,
    noted_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY knowledge.mirror_change FORCE ROW LEVEL SECURITY;

ALTER TABLE knowledge.mirror_change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME knowledge.mirror_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE knowledge.model (
    id integer NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    dimension integer NOT NULL,
    digest text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT model_dimension_check CHECK (((dimension >= 1) AND (dimension <= 4000)))
);

ALTER TABLE ONLY knowledge.model FORCE ROW LEVEL SECURITY;

ALTER TABLE knowledge.model ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME knowledge.model_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE knowledge.posting (
    organisation_id uuid NOT NULL,
    segment_id bigint NOT NULL,
    term text NOT NULL COLLATE pg_catalog."C",
    part integer NOT NULL,
    texts integer NOT NULL,
    most smallint NOT NULL,
    shortest smallint NOT NULL,
    starts bytea,
    postings bytea NOT NULL
);
ALTER TABLE ONLY knowledge.posting ALTER COLUMN postings SET STORAGE MAIN;

ALTER TABLE ONLY knowledge.posting FORCE ROW LEVEL SECURITY;

CREATE TABLE knowledge.segment (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    language text NOT NULL,
    analysis_version smallint NOT NULL,
    texts integer NOT NULL,
    length bigint NOT NULL,
    chunk_ids bytea NOT NULL,
    entry_ids bytea NOT NULL
);

ALTER TABLE ONLY knowledge.segment FORCE ROW LEVEL SECURITY;

ALTER TABLE knowledge.segment ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME knowledge.segment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE knowledge.source (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    application_id uuid,
    kind text NOT NULL,
    name text NOT NULL,
    uri text NOT NULL,
    site_id uuid,
    status text DEFAULT 'pending'::text NOT NULL,
    error text,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    generation integer DEFAULT 0 NOT NULL,
    rescrape_every interval,
    fetching jsonb DEFAULT '{}'::jsonb NOT NULL,
    provider text DEFAULT 'trapline'::text NOT NULL,
    job_id uuid,
    renewal_job_id uuid,
    sha256 bytea,
    size bigint,
    content_type text,
    created_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT source_kind_check CHECK ((kind = ANY (ARRAY['file'::text, 'url'::text, 'site'::text]))),
    CONSTRAINT source_name_check CHECK (((name <> ''::text) AND (length(name) <= 300))),
    CONSTRAINT source_provider_check CHECK ((provider = ANY (ARRAY['trapline'::text, 'firecrawl'::text]))),
    CONSTRAINT source_rescrape_every_check CHECK ((rescrape_every >= '00:01:00'::interval)),
    CONSTRAINT source_sha256_check CHECK ((length(sha256) = 32)),
    CONSTRAINT source_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'processing'::text, 'completed'::text, 'failed'::text, 'cancelled'::text])))
);

ALTER TABLE ONLY knowledge.source FORCE ROW LEVEL SECURITY;

CREATE TABLE knowledge.tally (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    scope uuid NOT NULL,
    job_id uuid,
    minute timestamp with time zone NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    cancelled bigint DEFAULT 0 NOT NULL,
    folded boolean DEFAULT false NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE ONLY knowledge.tally FORCE ROW LEVEL SECURITY;

ALTER TABLE knowledge.tally ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME knowledge.tally_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE knowledge.vector (
    chunk_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    model_id integer NOT NULL,
    entry_id bigint NOT NULL,
    embedding public.halfvec NOT NULL
);
ALTER TABLE ONLY knowledge.vector ALTER COLUMN embedding SET STORAGE PLAIN;

ALTER TABLE ONLY knowledge.vector FORCE ROW LEVEL SECURITY;

CREATE TABLE store.content_hash (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    content_hash bytea NOT NULL,
    first_seen_page_id uuid NOT NULL,
    first_version_id bigint NOT NULL,
    occurrence_count bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    title text,
    words integer DEFAULT 0 NOT NULL,
    group_id bigint,
    similarity smallint,
    CONSTRAINT content_hash_content_hash_check CHECK ((length(content_hash) = 32)),
    CONSTRAINT content_hash_similarity_check CHECK (((similarity >= 0) AND (similarity <= 100)))
)
WITH (fillfactor='80');

ALTER TABLE ONLY store.content_hash FORCE ROW LEVEL SECURITY;

CREATE VIEW lexicon.content_hash WITH (security_invoker='true') AS
 SELECT (encode(content_hash, 'hex'::text))::character varying AS content_hash,
    first_seen_page_id,
    (occurrence_count)::integer AS occurrence_count,
    last_seen_at,
    created_at
   FROM store.content_hash c;

CREATE TABLE queue.schedule (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    name_key text GENERATED ALWAYS AS (lower(name)) STORED NOT NULL,
    kind text NOT NULL,
    cron text,
    every interval,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    site_id uuid,
    application_id uuid,
    template jsonb NOT NULL,
    importance smallint DEFAULT 5 NOT NULL,
    overlap boolean DEFAULT false NOT NULL,
    catch_up interval,
    paused_at timestamp with time zone,
    next_at timestamp with time zone,
    last_tick timestamp with time zone,
    last_job_id uuid,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT schedule_catch_up_check CHECK ((catch_up >= '00:00:00'::interval)),
    CONSTRAINT schedule_check CHECK (((kind = 'recurring'::text) = (num_nonnulls(cron, every) = 1))),
    CONSTRAINT schedule_check1 CHECK (((kind <> 'scheduled'::text) OR (starts_at IS NOT NULL))),
    CONSTRAINT schedule_check2 CHECK (((paused_at IS NULL) OR (next_at IS NULL))),
    CONSTRAINT schedule_cron_check CHECK ((length(cron) <= 200)),
    CONSTRAINT schedule_every_check CHECK ((every > '00:00:00'::interval)),
    CONSTRAINT schedule_importance_check CHECK (((importance >= 1) AND (importance <= 10))),
    CONSTRAINT schedule_kind_check CHECK ((kind = ANY (ARRAY['one_time'::text, 'scheduled'::text, 'recurring'::text]))),
    CONSTRAINT schedule_name_check CHECK (((name <> ''::text) AND (length(name) <= 200)))
)
WITH (fillfactor='80');

ALTER TABLE ONLY queue.schedule FORCE ROW LEVEL SECURITY;

CREATE TABLE store.site (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    name_key text GENERATED ALWAYS AS (lower(name)) STORED NOT NULL,
    base_url text NOT NULL,
    implicit boolean DEFAULT false NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    config_number integer DEFAULT 1 NOT NULL,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    purge boolean DEFAULT false NOT NULL,
    variant bytea DEFAULT '\x'::bytea NOT NULL,
    CONSTRAINT site_check CHECK (((NOT purge) OR (deleted_at IS NOT NULL))),
    CONSTRAINT site_created_by_check CHECK ((length(created_by) <= 300)),
    CONSTRAINT site_name_check CHECK (((name <> ''::text) AND (length(name) <= 300))),
    CONSTRAINT site_status_check CHECK ((status = ANY (ARRAY['active'::text, 'inactive'::text])))
);

ALTER TABLE ONLY store.site FORCE ROW LEVEL SECURITY;

CREATE VIEW lexicon.crawl_job WITH (security_invoker='true') AS
 SELECT j.id,
    COALESCE(((j.options ->> 'site_id'::text))::uuid, ( SELECT s.id
           FROM store.site s
          WHERE ((s.organisation_id = j.organisation_id) AND s.implicit AND (s.deleted_at IS NULL) AND (s.base_url = "substring"((j.options ->> 'url'::text), '^https?://[^/]+'::text)))
          ORDER BY s.variant
         LIMIT 1)) AS website_id,
    (COALESCE(( SELECT h.kind
           FROM queue.schedule h
          WHERE ((h.id)::text = (j.metadata ->> 'schedule_id'::text))), 'one_time'::text))::lexicon.job_type_enum AS job_type,
    (COALESCE((j.options ->> 'url'::text), ( SELECT (t.payload ->> 'url'::text)
           FROM queue.task t
          WHERE (t.job_id = j.id)
          ORDER BY t.id
         LIMIT 1)))::character varying AS seed_url,
    j.options AS embedded_config,
    (
        CASE j.status
            WHEN 'paused'::text THEN 'pending'::text
            ELSE j.status
        END)::lexicon.status_enum AS status,
    LEAST(GREATEST((5 - j.priority), 1), 10) AS priority,
    j.scheduled_at,
    j.started_at,
        CASE
            WHEN (j.status <> 'cancelled'::text) THEN j.finished_at
            ELSE NULL::timestamp with time zone
        END AS completed_at,
        CASE
            WHEN (j.status = 'cancelled'::text) THEN j.finished_at
            ELSE NULL::timestamp with time zone
        END AS cancelled_at,
    (j.cancelled_by)::character varying AS cancelled_by,
    j.cancel_reason AS cancellation_reason,
    j.error AS error_message,
    j.retry_count,
    j.max_retries,
    j.metadata,
    j.variables,
    jsonb_build_object('pages_crawled', (j.completed - u.completed), 'pages_pending', (j.remaining - u.open), 'errors', (j.failed - u.failed), 'pages_skipped', j.skipped, 'total', (j.total - u.total), 'last_update', GREATEST(j.created_at, j.started_at, j.finished_at)) AS progress,
    j.created_at,
    GREATEST(j.created_at, j.started_at, j.finished_at) AS updated_at
   FROM (queue.job j
     LEFT JOIN LATERAL ( SELECT count(*) AS total,
            count(*) FILTER (WHERE (d.status = 0)) AS completed,
            count(*) FILTER (WHERE (d.status = 1)) AS failed,
            count(*) FILTER (WHERE ((d.task_id IS NULL) AND (j.finished_at IS NULL))) AS open
           FROM (queue.task t
             LEFT JOIN queue.done d ON ((d.task_id = t.id)))
          WHERE ((j.kind <> 'scrape'::text) AND (t.job_id = j.id) AND (NOT t.counted))) u ON (true))
  WHERE ((j.kind = ANY (ARRAY['crawl'::text, 'batch_scrape'::text, 'scrape'::text, 'ingest'::text, 'warm'::text])) AND (NOT j.standing));

CREATE TABLE queue.job_log (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    site_id uuid,
    step text NOT NULL,
    level text NOT NULL,
    message text NOT NULL,
    context jsonb DEFAULT '{}'::jsonb NOT NULL,
    trace_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT job_log_level_check CHECK ((level = ANY (ARRAY['DEBUG'::text, 'INFO'::text, 'WARNING'::text, 'ERROR'::text, 'CRITICAL'::text])))
)
PARTITION BY RANGE (created_at);

ALTER TABLE ONLY queue.job_log FORCE ROW LEVEL SECURITY;

CREATE VIEW lexicon.crawl_log WITH (security_invoker='true') AS
 SELECT id,
    job_id,
    site_id AS website_id,
    (step)::character varying AS step_name,
    (level)::lexicon.log_level_enum AS log_level,
    message,
    context,
    trace_id,
    created_at
   FROM queue.job_log l;

CREATE TABLE store.likeness (
    page_id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    version_id bigint NOT NULL,
    content_id bigint NOT NULL,
    group_id bigint,
    similarity smallint,
    by_hand boolean DEFAULT false NOT NULL
);

ALTER TABLE ONLY store.likeness FORCE ROW LEVEL SECURITY;

CREATE TABLE store.page (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    url_id bigint NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    version_id bigint,
    version_number integer DEFAULT 0 NOT NULL,
    content_hash bytea,
    extractor_version smallint,
    changed_at timestamp with time zone,
    gone_at timestamp with time zone,
    returned_at timestamp with time zone,
    variant bytea DEFAULT '\x'::bytea NOT NULL
)
WITH (fillfactor='80');

ALTER TABLE ONLY store.page FORCE ROW LEVEL SECURITY;

CREATE VIEW lexicon.crawled_page WITH (security_invoker='true') AS
 SELECT p.id,
    p.site_id AS website_id,
    v.job_id,
    (((
        CASE
            WHEN u.secure THEN 'https://'::text
            ELSE 'http://'::text
        END || h.name) || u.path))::character varying AS url,
    (encode(u.hash, 'hex'::text))::character varying AS url_hash,
    (encode(p.content_hash, 'hex'::text))::character varying AS content_hash,
    (v.title)::character varying AS title,
    v.text AS extracted_content,
    (v.metadata || jsonb_build_object('status_code', v.status, 'content_type', v.content_type, 'language', v.language)) AS metadata,
    (('sha256:'::text || encode(v.sha256, 'hex'::text)))::character varying AS gcs_html_path,
        CASE
            WHEN (v.page_type = 'document'::text) THEN jsonb_build_array(('sha256:'::text || encode(v.sha256, 'hex'::text)))
            ELSE '[]'::jsonb
        END AS gcs_documents,
    COALESCE((o.page_id <> p.id), false) AS is_duplicate,
    NULLIF(o.page_id, p.id) AS duplicate_of,
        CASE
            WHEN (o.page_id <> p.id) THEN (l.similarity)::integer
            ELSE NULL::integer
        END AS similarity_score,
    p.last_seen_at AS crawled_at,
    p.first_seen_at AS created_at
   FROM (((((store.page p
     JOIN frontier.url u ON ((u.id = p.url_id)))
     JOIN frontier.host h ON ((h.id = u.host_id)))
     LEFT JOIN store.version v ON ((v.id = p.version_id)))
     LEFT JOIN store.likeness l ON ((l.page_id = p.id)))
     LEFT JOIN LATERAL ( SELECT g.page_id
           FROM store.likeness g
          WHERE ((g.site_id = l.site_id) AND (g.group_id = l.group_id))
          ORDER BY g.by_hand, g.page_id
         LIMIT 1) o ON (true));

CREATE VIEW lexicon.website WITH (security_invoker='true') AS
 SELECT id,
    (name)::character varying AS name,
    (base_url)::character varying AS base_url,
    config,
    (status)::lexicon.status_enum AS status,
    created_at,
    updated_at,
    (created_by)::character varying AS created_by
   FROM store.site s
  WHERE (deleted_at IS NULL);

CREATE TABLE measure.job_time (
    job_id uuid NOT NULL,
    type text NOT NULL,
    organisation_id uuid NOT NULL,
    operations bigint NOT NULL,
    failures bigint NOT NULL,
    milliseconds double precision NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE ONLY measure.job_time FORCE ROW LEVEL SECURITY;

CREATE TABLE measure.operation (
    id bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    organisation_id uuid NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    milliseconds double precision NOT NULL,
    error text,
    request_id uuid,
    job_id uuid,
    task_id bigint,
    document_url text,
    extra jsonb
)
PARTITION BY RANGE (recorded_at);

ALTER TABLE ONLY measure.operation FORCE ROW LEVEL SECURITY;

CREATE TABLE measure.operation_day (
    organisation_id uuid NOT NULL,
    day date NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    operations bigint NOT NULL,
    failures bigint NOT NULL,
    milliseconds double precision NOT NULL,
    slowest double precision NOT NULL
);

ALTER TABLE ONLY measure.operation_day FORCE ROW LEVEL SECURITY;

CREATE TABLE measure.operation_default (
    id bigint CONSTRAINT operation_id_not_null NOT NULL,
    recorded_at timestamp with time zone CONSTRAINT operation_recorded_at_not_null NOT NULL,
    organisation_id uuid CONSTRAINT operation_organisation_id_not_null NOT NULL,
    type text CONSTRAINT operation_type_not_null NOT NULL,
    name text CONSTRAINT operation_name_not_null NOT NULL,
    milliseconds double precision CONSTRAINT operation_milliseconds_not_null NOT NULL,
    error text,
    request_id uuid,
    job_id uuid,
    task_id bigint,
    document_url text,
    extra jsonb
);

ALTER TABLE ONLY measure.operation_default FORCE ROW LEVEL SECURITY;

ALTER TABLE measure.operation ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME measure.operation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE measure.request (
    id bigint NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    organisation_id uuid,
    method text NOT NULL,
    path text NOT NULL,
    route text NOT NULL,
    status smallint NOT NULL,
    milliseconds double precision NOT NULL,
    request_id uuid NOT NULL,
    client text,
    user_agent text,
    extra jsonb
)
PARTITION BY RANGE (recorded_at);

ALTER TABLE ONLY measure.request FORCE ROW LEVEL SECURITY;

CREATE TABLE measure.request_day (
    organisation_id uuid,
    day date NOT NULL,
    method text NOT NULL,
    route text NOT NULL,
    status smallint NOT NULL,
    requests bigint NOT NULL,
    milliseconds double precision NOT NULL,
    slowest double precision NOT NULL
);

ALTER TABLE ONLY measure.request_day FORCE ROW LEVEL SECURITY;

CREATE TABLE measure.request_default (
    id bigint CONSTRAINT request_id_not_null NOT NULL,
    recorded_at timestamp with time zone CONSTRAINT request_recorded_at_not_null NOT NULL,
    organisation_id uuid,
    method text CONSTRAINT request_method_not_null NOT NULL,
    path text CONSTRAINT request_path_not_null NOT NULL,
    route text CONSTRAINT request_route_not_null NOT NULL,
    status smallint CONSTRAINT request_status_not_null NOT NULL,
    milliseconds double precision CONSTRAINT request_milliseconds_not_null NOT NULL,
    request_id uuid CONSTRAINT request_request_id_not_null NOT NULL,
    client text,
    user_agent text,
    extra jsonb
);

ALTER TABLE ONLY measure.request_default FORCE ROW LEVEL SECURITY;

ALTER TABLE measure.request ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME measure.request_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW nuq.group_crawl WITH (security_invoker='true') AS
 SELECT id,
    (
        CASE status
            WHEN 'completed'::text THEN 'completed'::text
            WHEN 'failed'::text THEN 'completed'::text
            WHEN 'cancelled'::text THEN 'cancelled'::text
            ELSE 'active'::text
        END)::nuq.group_status AS status,
    created_at,
    organisation_id AS owner_id,
    ((EXTRACT(epoch FROM ttl) * (1000)::numeric))::bigint AS ttl,
    expires_at
   FROM queue.job j
  WHERE ((kind = ANY (ARRAY['crawl'::text, 'batch_scrape'::text, 'ingest'::text, 'warm'::text])) AND (NOT standing));

CREATE VIEW nuq.queue_crawl_finished WITH (security_invoker='true') AS
 SELECT id,
    'completed'::nuq.job_status AS status,
    (priority)::integer AS priority,
    finished_at AS created_at,
    finished_at,
    NULL::uuid AS lock,
    NULL::timestamp with time zone AS locked_at,
    0 AS stalls,
    jsonb_build_object('mode', 'crawl_finished', 'team_id', organisation_id, 'crawl_id', id, 'url', (options -> 'url'::text)) AS data,
    jsonb_build_object('status', status, 'total', total, 'completed', completed, 'failed', failed, 'skipped', skipped, 'cancelled', cancelled) AS returnvalue,
    error AS failedreason,
    organisation_id AS owner_id,
    id AS group_id,
    'trapline_job'::text AS listen_channel_id
   FROM queue.job j
  WHERE ((kind = ANY (ARRAY['crawl'::text, 'batch_scrape'::text, 'ingest'::text, 'warm'::text])) AND (NOT standing) AND (status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])));

CREATE VIEW nuq.queue_scrape WITH (security_invoker='true') AS
 SELECT queue.uuid_of((p.task).id) AS id,
    nuq.status_of(p.state) AS status,
    ((p.task).priority)::integer AS priority,
    (p.task).created_at AS created_at,
    p.finished_at,
    queue.uuid_of(p.lease_id) AS lock,
        CASE
            WHEN (p.state = 'running'::text) THEN p.started_at
            ELSE NULL::timestamp with time zone
        END AS locked_at,
    p.stalls,
    (nuq.data_of(p.task, p.job) || COALESCE(( SELECT nuq.webhook_of(e.*) AS webhook_of
           FROM deliver.endpoint e
          WHERE (e.job_id = (p.task).job_id)
         LIMIT 1), '{}'::jsonb)) AS data,
        CASE
            WHEN (p.state = 'completed'::text) THEN nuq.document_of(p.task, p.result, p.finished_at, v.*)
            ELSE NULL::jsonb
        END AS returnvalue,
    p.error AS failedreason,
    (p.task).organisation_id AS owner_id,
    (p.task).job_id AS group_id,
        CASE
            WHEN (p.state = ANY (ARRAY['running'::text, 'queued'::text])) THEN 'trapline_job'::text
            ELSE NULL::text
        END AS listen_channel_id
   FROM (queue.place p
     LEFT JOIN store.version v ON ((v.id = ((p.result ->> 'version_id'::text))::bigint)))
  WHERE (((p.task).kind = ANY (ARRAY['single_urls'::text, 'kickoff'::text, 'kickoff_sitemap'::text])) AND ((p.job).kind = ANY (ARRAY['crawl'::text, 'batch_scrape'::text, 'ingest'::text, 'warm'::text])) AND (NOT p.held))
UNION ALL
 SELECT (p.job).id AS id,
    nuq.status_of(p.state) AS status,
    (p.task).priority AS priority,
    (p.task).created_at AS created_at,
    p.finished_at,
    queue.uuid_of(p.lease_id) AS lock,
        CASE
            WHEN (p.state = 'running'::text) THEN p.started_at
            ELSE NULL::timestamp with time zone
        END AS locked_at,
    p.stalls,
    nuq.data_of(p.task, p.job) AS data,
        CASE
            WHEN (p.state = 'completed'::text) THEN nuq.document_of(p.task, p.result, p.finished_at, v.*)
            ELSE NULL::jsonb
        END AS returnvalue,
    p.error AS failedreason,
    (p.job).organisation_id AS owner_id,
    NULL::uuid AS group_id,
        CASE
            WHEN (p.state = ANY (ARRAY['running'::text, 'queued'::text])) THEN 'trapline_job'::text
            ELSE NULL::text
        END AS listen_channel_id
   FROM (queue.place p
     LEFT JOIN store.version v ON ((v.id = ((p.result ->> 'version_id'::text))::bigint)))
  WHERE (((p.task).kind = 'single_urls'::text) AND ((p.job).kind = 'scrape'::text));

CREATE VIEW nuq.queue_scrape_backlog WITH (security_invoker='true') AS
 SELECT queue.uuid_of((task).id) AS id,
    ((nuq.data_of(task, job) || COALESCE(( SELECT nuq.webhook_of(e.*) AS webhook_of
           FROM deliver.endpoint e
          WHERE (e.job_id = (p.task).job_id)
         LIMIT 1), '{}'::jsonb)) || '{"concurrencyLimited": true}'::jsonb) AS data,
    (task).created_at AS created_at,
    ((task).priority)::integer AS priority,
    'trapline_job'::text AS listen_channel_id,
    (task).organisation_id AS owner_id,
    (task).job_id AS group_id,
    deadline AS times_out_at
   FROM queue.place p
  WHERE (((task).kind = ANY (ARRAY['single_urls'::text, 'kickoff'::text, 'kickoff_sitemap'::text])) AND held);

CREATE VIEW observability.pg_stat_statements_top_total_time WITH (security_invoker='true') AS
 SELECT queryid,
    query,
    calls,
    total_exec_time,
    mean_exec_time,
    min_exec_time,
    max_exec_time,
    stddev_exec_time,
    rows,
    shared_blks_hit,
    shared_blks_read,
    temp_blks_written
   FROM public.pg_stat_statements s
  WHERE (dbid = ( SELECT d.oid
           FROM pg_database d
          WHERE (d.datname = current_database())))
  ORDER BY total_exec_time DESC
 LIMIT 50;

ALTER TABLE queue.agent ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.agent_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.consumer (
    name text NOT NULL,
    xid xid8 DEFAULT '0'::xid8 NOT NULL,
    event_id bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE queue.dead_letter (
    task_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    kind text NOT NULL,
    code smallint,
    error text NOT NULL,
    failed_at timestamp with time zone DEFAULT now() NOT NULL,
    resolved_at timestamp with time zone,
    resolved_by text,
    resolution text,
    retried_in uuid,
    CONSTRAINT dead_letter_resolution_check CHECK ((resolution = ANY (ARRAY['retried'::text, 'resolved'::text])))
);
ALTER TABLE ONLY queue.dead_letter ALTER COLUMN error SET STATISTICS 0;

ALTER TABLE ONLY queue.dead_letter FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.duty (
    name text NOT NULL,
    ran_at timestamp with time zone DEFAULT now() NOT NULL,
    took interval NOT NULL,
    did bigint NOT NULL,
    error text
);

CREATE TABLE queue.event (
    job_id uuid NOT NULL,
    number bigint NOT NULL,
    organisation_id uuid NOT NULL,
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    type text NOT NULL,
    task_id bigint,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY queue.event ALTER COLUMN data SET STATISTICS 0;

ALTER TABLE ONLY queue.event FORCE ROW LEVEL SECURITY;

ALTER TABLE queue.event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.gate (
    id bigint NOT NULL,
    name text NOT NULL,
    gap interval DEFAULT '00:00:00'::interval NOT NULL,
    floor interval DEFAULT '00:00:00'::interval NOT NULL,
    bound integer,
    ready_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    in_flight integer DEFAULT 0 NOT NULL,
    pressure smallint DEFAULT 0 NOT NULL,
    kept_until timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT gate_bound_check CHECK ((bound > 0)),
    CONSTRAINT gate_floor_check CHECK ((floor >= '00:00:00'::interval)),
    CONSTRAINT gate_gap_check CHECK ((gap >= '00:00:00'::interval)),
    CONSTRAINT gate_name_check CHECK ((name <> ''::text))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE queue.gate ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.gate_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.job_log_day (
    organisation_id uuid NOT NULL,
    day date NOT NULL,
    step text NOT NULL,
    level text NOT NULL,
    lines bigint NOT NULL
);

ALTER TABLE ONLY queue.job_log_day FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.job_log_default (
    id bigint CONSTRAINT job_log_id_not_null NOT NULL,
    organisation_id uuid CONSTRAINT job_log_organisation_id_not_null NOT NULL,
    job_id uuid CONSTRAINT job_log_job_id_not_null NOT NULL,
    site_id uuid,
    step text CONSTRAINT job_log_step_not_null NOT NULL,
    level text CONSTRAINT job_log_level_not_null NOT NULL,
    message text CONSTRAINT job_log_message_not_null NOT NULL,
    context jsonb DEFAULT '{}'::jsonb CONSTRAINT job_log_context_not_null NOT NULL,
    trace_id uuid,
    created_at timestamp with time zone DEFAULT now() CONSTRAINT job_log_created_at_not_null NOT NULL,
    CONSTRAINT job_log_level_check CHECK ((level = ANY (ARRAY['DEBUG'::text, 'INFO'::text, 'WARNING'::text, 'ERROR'::text, 'CRITICAL'::text])))
);

ALTER TABLE ONLY queue.job_log_default FORCE ROW LEVEL SECURITY;

ALTER TABLE queue.job_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.job_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.job_tally (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    jobs bigint NOT NULL,
    folded boolean DEFAULT false NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE ONLY queue.job_tally FORCE ROW LEVEL SECURITY;

ALTER TABLE queue.job_tally ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.job_tally_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE queue.lane ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.lane_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE queue.lease ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME queue.lease_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.overflow (
    job_id uuid NOT NULL,
    task_id bigint NOT NULL
);

ALTER TABLE ONLY queue.overflow FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.past_job (
    id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    base_url text NOT NULL,
    total bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    indexed bigint NOT NULL,
    auto_index boolean NOT NULL,
    metadata jsonb NOT NULL,
    error text,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    expired_at timestamp with time zone,
    id_text character varying GENERATED ALWAYS AS ((id)::text) STORED NOT NULL
)
PARTITION BY RANGE (finished_at);

ALTER TABLE ONLY queue.past_job FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.past_job_default (
    id uuid CONSTRAINT past_job_id_not_null NOT NULL,
    organisation_id uuid CONSTRAINT past_job_organisation_id_not_null NOT NULL,
    kind text CONSTRAINT past_job_kind_not_null NOT NULL,
    status text CONSTRAINT past_job_status_not_null NOT NULL,
    base_url text CONSTRAINT past_job_base_url_not_null NOT NULL,
    total bigint CONSTRAINT past_job_total_not_null NOT NULL,
    completed bigint CONSTRAINT past_job_completed_not_null NOT NULL,
    failed bigint CONSTRAINT past_job_failed_not_null NOT NULL,
    indexed bigint CONSTRAINT past_job_indexed_not_null NOT NULL,
    auto_index boolean CONSTRAINT past_job_auto_index_not_null NOT NULL,
    metadata jsonb CONSTRAINT past_job_metadata_not_null NOT NULL,
    error text,
    created_at timestamp with time zone CONSTRAINT past_job_created_at_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT past_job_started_at_not_null NOT NULL,
    finished_at timestamp with time zone CONSTRAINT past_job_finished_at_not_null NOT NULL,
    expired_at timestamp with time zone,
    id_text character varying GENERATED ALWAYS AS ((id)::text) STORED CONSTRAINT past_job_id_text_not_null NOT NULL
);

ALTER TABLE ONLY queue.past_job_default FORCE ROW LEVEL SECURITY;

CREATE TABLE queue.schedule_run (
    id bigint NOT NULL,
    schedule_id uuid NOT NULL,
    organisation_id uuid NOT NULL,
    tick timestamp with time zone NOT NULL,
    manual boolean DEFAULT false NOT NULL,
    outcome text NOT NULL,
    job_id uuid,
    detail text,
    summary jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT schedule_run_check CHECK (((outcome = 'created'::text) = (job_id IS NOT NULL))),
    CONSTRAINT schedule_run_check1 CHECK (((outcome = 'created'::text) OR (detail IS NOT NULL))),
    CONSTRAINT schedule_run_outcome_check CHECK ((outcome = ANY (ARRAY['created'::text, 'missed'::text, 'overlapped'::text, 'failed'::text])))
);

ALTER TABLE ONLY queue.schedule_run FORCE ROW LEVEL SECURITY;

ALTER TABLE queue.schedule_run ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.schedule_run_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.statistic (
    id bigint NOT NULL,
    kind text NOT NULL,
    minute timestamp with time zone NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    retried bigint DEFAULT 0 NOT NULL,
    stalled bigint DEFAULT 0 NOT NULL,
    seconds double precision DEFAULT 0 NOT NULL,
    folded boolean DEFAULT false NOT NULL
)
PARTITION BY RANGE (minute);

CREATE TABLE queue.statistic_day (
    day date NOT NULL,
    kind text NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    skipped bigint NOT NULL,
    retried bigint NOT NULL,
    stalled bigint NOT NULL,
    seconds double precision NOT NULL
);

CREATE TABLE queue.statistic_default (
    id bigint CONSTRAINT statistic_id_not_null NOT NULL,
    kind text CONSTRAINT statistic_kind_not_null NOT NULL,
    minute timestamp with time zone CONSTRAINT statistic_minute_not_null NOT NULL,
    completed bigint DEFAULT 0 CONSTRAINT statistic_completed_not_null NOT NULL,
    failed bigint DEFAULT 0 CONSTRAINT statistic_failed_not_null NOT NULL,
    skipped bigint DEFAULT 0 CONSTRAINT statistic_skipped_not_null NOT NULL,
    retried bigint DEFAULT 0 CONSTRAINT statistic_retried_not_null NOT NULL,
    stalled bigint DEFAULT 0 CONSTRAINT statistic_stalled_not_null NOT NULL,
    seconds double precision DEFAULT 0 CONSTRAINT statistic_seconds_not_null NOT NULL,
    folded boolean DEFAULT false CONSTRAINT statistic_folded_not_null NOT NULL
);

ALTER TABLE queue.statistic ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME queue.statistic_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE queue.unique_key (
    scope uuid NOT NULL,
    key uuid NOT NULL,
    job_id uuid NOT NULL,
    task_id bigint NOT NULL,
    expires_at timestamp with time zone
);

ALTER TABLE ONLY queue.unique_key FORCE ROW LEVEL SECURITY;

CREATE VIEW rag.knowledge_sources WITH (security_invoker='true') AS
 SELECT id,
    application_id,
    (
        CASE kind
            WHEN 'site'::text THEN 'site_crawl'::text
            ELSE kind
        END)::character varying AS type,
    name,
    uri AS url,
    (status)::character varying AS status,
    error,
    config AS embedding_config,
    created_by AS user_id,
    created_at,
    updated_at
   FROM knowledge.source s;

CREATE VIEW rag.processing_jobs WITH (security_invoker='true') AS
 SELECT queue.uuid_of((p.task).id) AS id,
    (((p.task).payload ->> 'application_id'::text))::uuid AS application_id,
    (((p.task).payload ->> 'source_id'::text))::uuid AS knowledge_source_id,
    (
        CASE COALESCE(s.kind, (p.task).kind)
            WHEN 'site'::text THEN 'crawl_page'::text
            WHEN 'file'::text THEN 'file'::text
            ELSE 'url'::text
        END)::character varying AS type,
    (
        CASE p.state
            WHEN 'queued'::text THEN 'pending'::text
            WHEN 'running'::text THEN 'processing'::text
            WHEN 'skipped'::text THEN 'cancelled'::text
            ELSE p.state
        END)::character varying AS status,
    (- ((p.task).priority)::integer) AS priority,
    (p.task).payload AS payload,
    p.attempts,
    ((p.task).max_attempts)::integer AS max_attempts,
    p.error AS last_error,
    (p.task).created_at AS created_at,
    p.started_at,
    p.finished_at AS completed_at,
    p.heartbeat_at,
    s.config AS embedding_config,
    (p.job).member_id AS user_id
   FROM (queue.place p
     LEFT JOIN knowledge.source s ON ((s.id = (((p.task).payload ->> 'source_id'::text))::uuid)))
  WHERE ((p.task).kind = ANY (ARRAY['file'::text, 'index'::text]));

CREATE TABLE store.blob (
    sha256 bytea NOT NULL,
    size bigint NOT NULL,
    place text DEFAULT 'db'::text NOT NULL,
    compressed boolean NOT NULL,
    data bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    used_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT blob_check CHECK (((place = 'db'::text) = (data IS NOT NULL))),
    CONSTRAINT blob_sha256_check CHECK ((length(sha256) = 32))
);
ALTER TABLE ONLY store.blob ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE ONLY store.blob FORCE ROW LEVEL SECURITY;

CREATE VIEW store.blob_use WITH (security_invoker='true') AS
 SELECT v.sha256
   FROM store.version v
  WHERE (v.sha256 IS NOT NULL)
UNION ALL
 SELECT f.sha256
   FROM archive.file f
  WHERE (f.sha256 IS NOT NULL)
UNION ALL
 SELECT s.sha256
   FROM knowledge.source s
  WHERE (s.sha256 IS NOT NULL)
UNION ALL
 SELECT i.sha256
   FROM deliver.inbox i
  WHERE (i.sha256 IS NOT NULL);

CREATE TABLE store.change (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    site_id uuid,
    page_id uuid,
    url_id bigint,
    status text NOT NULL,
    source text NOT NULL,
    detected_at timestamp with time zone NOT NULL,
    version_id bigint,
    previous_version_id bigint,
    job_id uuid,
    added_lines integer,
    removed_lines integer,
    added_words integer,
    removed_words integer,
    watch_id text,
    watch_url text,
    diff_summary text,
    snapshot_url text,
    report bytea,
    rescrape_job_id uuid,
    rescrape_status text,
    indexed_at timestamp with time zone,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT change_check CHECK (((source = 'changedetection'::text) = ((watch_id IS NOT NULL) AND (watch_url IS NOT NULL)))),
    CONSTRAINT change_check1 CHECK (((source = 'changedetection'::text) = (report IS NOT NULL))),
    CONSTRAINT change_check2 CHECK (((source = 'changedetection'::text) OR ((site_id IS NOT NULL) AND (page_id IS NOT NULL)))),
    CONSTRAINT change_report_check CHECK ((length(report) = 32)),
    CONSTRAINT change_rescrape_status_check CHECK ((rescrape_status = ANY (ARRAY['queued'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))),
    CONSTRAINT change_source_check CHECK ((source = ANY (ARRAY['visit'::text, 'sweep'::text, 'changedetection'::text]))),
    CONSTRAINT change_status_check CHECK ((status = ANY (ARRAY['new'::text, 'same'::text, 'changed'::text, 'removed'::text])))
);

ALTER TABLE ONLY store.change FORCE ROW LEVEL SECURITY;

ALTER TABLE store.change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME store.change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE store.content_hash ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME store.content_hash_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE store.duplicate_group (
    group_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    pages integer NOT NULL
)
WITH (fillfactor='80');

ALTER TABLE ONLY store.duplicate_group FORCE ROW LEVEL SECURITY;

CREATE TABLE store.fingerprint (
    content_id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    algorithm smallint NOT NULL,
    signature bytea NOT NULL,
    bands bigint[] NOT NULL
);

ALTER TABLE ONLY store.fingerprint FORCE ROW LEVEL SECURITY;

CREATE TABLE store.fleeting (
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    task_id bigint NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    url text NOT NULL,
    status smallint,
    content_type text,
    title text,
    language text,
    page_type text,
    text text NOT NULL,
    markdown text NOT NULL,
    metadata jsonb NOT NULL,
    links jsonb NOT NULL,
    warning text,
    body bytea NOT NULL,
    compressed boolean NOT NULL
)
PARTITION BY RANGE (stored_at);
ALTER TABLE ONLY store.fleeting ALTER COLUMN url SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting ALTER COLUMN title SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting ALTER COLUMN markdown SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting ALTER COLUMN links SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting ALTER COLUMN body SET STATISTICS 0;

ALTER TABLE ONLY store.fleeting FORCE ROW LEVEL SECURITY;

CREATE TABLE store.fleeting_default (
    organisation_id uuid CONSTRAINT fleeting_organisation_id_not_null NOT NULL,
    job_id uuid CONSTRAINT fleeting_job_id_not_null NOT NULL,
    task_id bigint CONSTRAINT fleeting_task_id_not_null NOT NULL,
    stored_at timestamp with time zone CONSTRAINT fleeting_stored_at_not_null NOT NULL,
    url text CONSTRAINT fleeting_url_not_null NOT NULL,
    status smallint,
    content_type text,
    title text,
    language text,
    page_type text,
    text text CONSTRAINT fleeting_text_not_null NOT NULL,
    markdown text CONSTRAINT fleeting_markdown_not_null NOT NULL,
    metadata jsonb CONSTRAINT fleeting_metadata_not_null NOT NULL,
    links jsonb CONSTRAINT fleeting_links_not_null NOT NULL,
    warning text,
    body bytea CONSTRAINT fleeting_body_not_null NOT NULL,
    compressed boolean CONSTRAINT fleeting_compressed_not_null NOT NULL
);
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN url SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN title SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN markdown SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN links SET STATISTICS 0;
ALTER TABLE ONLY store.fleeting_default ALTER COLUMN body SET STATISTICS 0;

ALTER TABLE ONLY store.fleeting_default FORCE ROW LEVEL SECURITY;

CREATE TABLE store.sighting (
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    page_id uuid NOT NULL,
    version_id bigint NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY store.sighting FORCE ROW LEVEL SECURITY;

CREATE TABLE store.site_config (
    site_id uuid NOT NULL,
    number integer CONSTRAINT site_config_number_not_null1 NOT NULL,
    organisation_id uuid NOT NULL,
    config jsonb NOT NULL,
    created_by text,
    note text,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY store.site_config FORCE ROW LEVEL SECURITY;

CREATE TABLE store.snapshot (
    organisation_id uuid NOT NULL,
    url_hash bytea NOT NULL,
    tag text NOT NULL,
    scraped_at timestamp with time zone NOT NULL,
    markdown text NOT NULL,
    extracted jsonb,
    gone boolean DEFAULT false NOT NULL,
    variant bytea DEFAULT '\x'::bytea NOT NULL,
    CONSTRAINT snapshot_url_hash_check CHECK ((length(url_hash) = 32))
);

ALTER TABLE ONLY store.snapshot FORCE ROW LEVEL SECURITY;

CREATE TABLE store.sweep (
    site_id uuid NOT NULL,
    plan bytea NOT NULL,
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    CONSTRAINT sweep_plan_check CHECK ((length(plan) = 32))
);

ALTER TABLE ONLY store.sweep FORCE ROW LEVEL SECURITY;

ALTER TABLE store.version ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME store.version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tenancy.api_key (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    created_by uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_key_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT api_key_name_check CHECK (((name <> ''::text) AND (length(name) <= 200))),
    CONSTRAINT api_key_scopes_check CHECK (((scopes <@ ARRAY['read'::text, 'write'::text, 'admin'::text]) AND (scopes <> '{}'::text[])))
);

ALTER TABLE ONLY tenancy.api_key FORCE ROW LEVEL SECURITY;

CREATE TABLE tenancy.audit_entry (
    id bigint NOT NULL,
    organisation_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    actor text NOT NULL,
    api_key_id uuid,
    channel text NOT NULL,
    action text NOT NULL,
    target text,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    client text,
    CONSTRAINT audit_entry_action_check CHECK ((action <> ''::text)),
    CONSTRAINT audit_entry_channel_check CHECK ((channel = ANY (ARRAY['api'::text, 'dashboard'::text])))
);

ALTER TABLE ONLY tenancy.audit_entry FORCE ROW LEVEL SECURITY;

ALTER TABLE tenancy.audit_entry ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tenancy.audit_entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE tenancy.session (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    api_key_id uuid,
    admin_hash bytea,
    hash bytea NOT NULL,
    previous_hash bytea,
    rotated_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    client text,
    user_agent text,
    CONSTRAINT session_admin_hash_check CHECK ((length(admin_hash) = 32)),
    CONSTRAINT session_check CHECK (((api_key_id IS NULL) <> (admin_hash IS NULL))),
    CONSTRAINT session_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT session_previous_hash_check CHECK ((length(previous_hash) = 32))
);

ALTER TABLE ONLY tenancy.session FORCE ROW LEVEL SECURITY;

CREATE TABLE tenancy.share_link (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    organisation_id uuid NOT NULL,
    hash bytea NOT NULL,
    path text NOT NULL,
    title text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT share_link_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT share_link_path_check CHECK ((path ~~ '/%'::text))
);

ALTER TABLE ONLY tenancy.share_link FORCE ROW LEVEL SECURITY;

CREATE TABLE tenancy.usage (
    organisation_id uuid NOT NULL,
    day date NOT NULL,
    api_key text DEFAULT ''::text NOT NULL,
    pages bigint DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY tenancy.usage FORCE ROW LEVEL SECURITY;

CREATE VIEW unobtanium.agent WITH (security_invoker='true') AS
 SELECT id AS agent_id,
    unobtanium.seconds(started_at) AS time_started_unix_utc,
    unobtanium.seconds(
        CASE
            WHEN (NOT died) THEN finished_at
            ELSE NULL::timestamp with time zone
        END) AS time_finished_unix_utc,
    uuid AS agent_uuid,
    name,
    user_agent AS http_user_agent
   FROM queue.agent a;

CREATE VIEW unobtanium.crawl_candidate WITH (security_invoker='true') AS
 SELECT url_id,
    unobtanium.seconds(last_visit_at) AS last_crawl_time_unix_utc,
    (last_exit_code)::integer AS last_crawl_exit_code,
    unobtanium.seconds(last_contentful_at) AS last_contentful_crawl_time_unix_utc,
    last_etag AS last_contentful_http_etag
   FROM frontier.candidate c;

CREATE VIEW unobtanium.crawl_log WITH (security_invoker='true') AS
 SELECT id AS crawl_log_id,
    agent_id,
    url_id,
    (crawl_type)::integer AS crawl_type,
    uuid AS crawl_uuid,
    unobtanium.seconds(started_at) AS time_started_unix_utc,
    took_ms AS time_taken_ms,
    (exit_code)::integer AS exit_code,
    message
   FROM archive.visit v;

CREATE VIEW unobtanium.file WITH (security_invoker='true') AS
 SELECT visit_id AS file_id,
    visit_id AS crawl_log_id,
    unobtanium.part_of(visit_id, request_number) AS request_id,
    url_id,
    unobtanium.seconds(last_modified) AS last_modified_unix_utc,
    size AS file_size,
    mimetype_id,
    canonical_url_id
   FROM archive.file f;

CREATE VIEW unobtanium.file_text WITH (security_invoker='true') AS
 SELECT f.visit_id AS file_id,
    v.text
   FROM (archive.file f
     JOIN LATERAL ( SELECT s.markdown AS text
           FROM store.version s
          WHERE ((s.sha256 = f.sha256) AND (s.organisation_id = f.organisation_id))
          ORDER BY s.id
         LIMIT 1) v ON (true));

CREATE VIEW unobtanium.mimetype WITH (security_invoker='true') AS
 SELECT id AS mimetype_id,
    name AS mimetype
   FROM archive.mimetype m;

CREATE VIEW unobtanium.redirect WITH (security_invoker='true') AS
 SELECT unobtanium.part_of(visit_id, number) AS redirect_id,
    visit_id AS crawl_log_id,
    unobtanium.part_of(visit_id, request_number) AS request_id,
    url_id,
    unobtanium.seconds(last_modified) AS last_modified_unix_utc,
    to_url_id,
    (source)::integer AS information_source,
    is_permanent,
    by_security_policy
   FROM archive.redirect r;

CREATE VIEW unobtanium.request WITH (security_invoker='true') AS
 SELECT unobtanium.part_of(visit_id, number) AS request_id,
    visit_id AS crawl_log_id,
    url_id,
    unobtanium.seconds(sent_at) AS time_sent_unix_utc,
    (round((total_ms)::double precision))::integer AS request_duration_ms,
    robots_approved AS robotstxt_approved,
    (exit_code)::integer AS exit_code,
    unobtanium.seconds(last_modified) AS server_last_modified_unix_utc,
    (status)::integer AS http_status_code,
    (etag)::character varying AS http_etag
   FROM archive.request r;

CREATE VIEW unobtanium.url WITH (security_invoker='true') AS
 SELECT id AS url_id,
    url
   FROM frontier.url_text u;

CREATE VIEW webhook.change_events WITH (security_invoker='true') AS
 SELECT c.id,
    (COALESCE(c.watch_id, (c.page_id)::text))::character varying AS watch_id,
    COALESCE(c.watch_url, u.url) AS watch_url,
    c.detected_at,
    COALESCE(c.diff_summary, format('%s: +%s -%s lines'::text, c.status, COALESCE(c.added_lines, 0), COALESCE(c.removed_lines, 0))) AS diff_summary,
    c.snapshot_url,
    ((c.rescrape_job_id)::text)::character varying AS rescrape_job_id,
    (c.rescrape_status)::character varying AS rescrape_status,
    c.indexed_at,
    c.metadata,
    c.created_at
   FROM (store.change c
     LEFT JOIN frontier.url_text u ON ((u.id = c.url_id)))
  WHERE (c.status <> 'same'::text);

CREATE VIEW webhook.crawl_sessions WITH (security_invoker='true') AS
 SELECT id,
    job_id,
    (COALESCE(url, ( SELECT (t.payload ->> 'url'::text)
           FROM queue.task t
          WHERE (t.job_id = s.id)
          ORDER BY t.id
         LIMIT 1), ''::text))::character varying AS base_url,
    (
        CASE kind
            WHEN 'batch_scrape'::text THEN 'scrape_batch'::text
            ELSE kind
        END)::character varying AS operation_type,
    started_at,
    finished_at AS completed_at,
    (
        CASE
            WHEN (finished_at IS NULL) THEN 'in_progress'::text
            ELSE status
        END)::character varying AS status,
        CASE
            WHEN (finished_at IS NOT NULL) THEN (status = 'completed'::text)
            ELSE NULL::boolean
        END AS success,
    ((total - beside[1]))::integer AS total_urls,
    ((completed - beside[2]))::integer AS completed_urls,
    ((failed - beside[3]))::integer AS failed_urls,
    ((total - beside[1]))::integer AS total_pages,
    (
        CASE kind
            WHEN 'ingest'::text THEN (completed - beside[2])
            ELSE beside[4]
        END)::integer AS pages_indexed,
    ((failed - beside[3]))::integer AS pages_failed,
    COALESCE(( SELECT x.milliseconds
           FROM measure.job_time x
          WHERE ((x.job_id = s.id) AND (x.type = 'chunking'::text))), (0.0)::double precision) AS total_chunking_ms,
    COALESCE(( SELECT x.milliseconds
           FROM measure.job_time x
          WHERE ((x.job_id = s.id) AND (x.type = 'embedding'::text))), (0.0)::double precision) AS total_embedding_ms,
    COALESCE(( SELECT x.milliseconds
           FROM measure.job_time x
          WHERE ((x.job_id = s.id) AND (x.type = 'vector'::text))), (0.0)::double precision) AS total_qdrant_ms,
    COALESCE(( SELECT x.milliseconds
           FROM measure.job_time x
          WHERE ((x.job_id = s.id) AND (x.type = 'bm25'::text))), (0.0)::double precision) AS total_bm25_ms,
    ((EXTRACT(epoch FROM (finished_at - started_at)) * (1000)::numeric))::double precision AS duration_ms,
    COALESCE(webhook.moment((metadata ->> 'initiated_at'::text)), created_at) AS initiated_at,
    ((EXTRACT(epoch FROM (finished_at - COALESCE(webhook.moment((metadata ->> 'initiated_at'::text)), created_at))) * (1000)::numeric))::double precision AS e2e_duration_ms,
    auto_index,
    expires_at,
    metadata AS extra_metadata,
    error AS error_message,
    created_at,
    GREATEST(created_at, started_at, finished_at) AS updated_at
   FROM ( SELECT j.id,
            j.id_text AS job_id,
            (j.options ->> 'url'::text) AS url,
            j.kind,
            j.begun_at AS started_at,
            j.finished_at,
            j.status,
            j.total,
            j.completed,
            j.failed,
                CASE
                    WHEN (j.kind = 'scrape'::text) THEN '{0,0,0,0}'::bigint[]
                    ELSE ( SELECT ARRAY[count(*), count(*) FILTER (WHERE (d.status = 0)), count(*) FILTER (WHERE (d.status = 1)), count(*) FILTER (WHERE ((d.status = 0) AND (t.kind = ANY (ARRAY['index'::text, 'file'::text]))))] AS "array"
                       FROM (queue.task t
                         LEFT JOIN queue.done d ON ((d.task_id = t.id)))
                      WHERE ((t.job_id = j.id) AND (NOT t.counted)))
                END AS beside,
            j.metadata,
            COALESCE(((j.options -> 'index'::text) = 'true'::jsonb), false) AS auto_index,
            j.expires_at,
            j.error,
            j.created_at,
            j.standing,
            false AS past
           FROM queue.job j
        UNION ALL
         SELECT p.id,
            p.id_text,
            p.base_url,
            p.kind,
            p.started_at,
            p.finished_at,
            p.status,
            p.total,
            p.completed,
            p.failed,
            ARRAY[(0)::bigint, (0)::bigint, (0)::bigint, p.indexed] AS "array",
            p.metadata,
            p.auto_index,
            p.expired_at,
            p.error,
            p.created_at,
            false,
            true
           FROM queue.past_job p) s
  WHERE ((NOT standing) AND (NOT ((NOT past) AND (expires_at <= now()) AND (EXISTS ( SELECT
           FROM queue.past_job p
          WHERE (p.id = s.id))))));

CREATE VIEW webhook.operation_metrics WITH (security_invoker='true') AS
 SELECT queue.uuid_of(id) AS id,
    recorded_at AS "timestamp",
    (
        CASE type
            WHEN 'vector'::text THEN 'qdrant'::text
            ELSE type
        END)::character varying AS operation_type,
    (name)::character varying AS operation_name,
    milliseconds AS duration_ms,
    (error IS NULL) AS success,
    error AS error_message,
    ((request_id)::text)::character varying AS request_id,
    ((queue.uuid_of(task_id))::text)::character varying AS job_id,
    ((job_id)::text)::character varying AS crawl_id,
    (document_url)::character varying AS document_url,
    extra AS extra_metadata,
    recorded_at AS created_at
   FROM measure.operation o;

CREATE VIEW webhook.request_metrics WITH (security_invoker='true') AS
 SELECT queue.uuid_of(id) AS id,
    recorded_at AS "timestamp",
    (method)::character varying AS method,
    (path)::character varying AS path,
    (status)::integer AS status_code,
    milliseconds AS duration_ms,
    ((request_id)::text)::character varying AS request_id,
    (client)::character varying AS client_ip,
    (user_agent)::character varying AS user_agent,
    extra AS extra_metadata,
    recorded_at AS created_at
   FROM measure.request r;

ALTER TABLE ONLY archive.file ATTACH PARTITION archive.file_default DEFAULT;

ALTER TABLE ONLY archive.redirect ATTACH PARTITION archive.redirect_default DEFAULT;

ALTER TABLE ONLY archive.request ATTACH PARTITION archive.request_default DEFAULT;

ALTER TABLE ONLY archive.visit ATTACH PARTITION archive.visit_default DEFAULT;

ALTER TABLE ONLY measure.operation ATTACH PARTITION measure.operation_default DEFAULT;

ALTER TABLE ONLY measure.request ATTACH PARTITION measure.request_default DEFAULT;

ALTER TABLE ONLY queue.job_log ATTACH PARTITION queue.job_log_default DEFAULT;

ALTER TABLE ONLY queue.past_job ATTACH PARTITION queue.past_job_default DEFAULT;

ALTER TABLE ONLY queue.statistic ATTACH PARTITION queue.statistic_default DEFAULT;

ALTER TABLE ONLY store.fleeting ATTACH PARTITION store.fleeting_default DEFAULT;

ALTER TABLE ONLY archive.file
    ADD CONSTRAINT file_pkey PRIMARY KEY (started_at, visit_id);

ALTER TABLE ONLY archive.file_default
    ADD CONSTRAINT file_default_pkey PRIMARY KEY (started_at, visit_id);

ALTER TABLE ONLY archive.mimetype
    ADD CONSTRAINT mimetype_name_key UNIQUE (name);

ALTER TABLE ONLY archive.mimetype
    ADD CONSTRAINT mimetype_pkey PRIMARY KEY (id);

ALTER TABLE ONLY archive.redirect
    ADD CONSTRAINT redirect_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.redirect_default
    ADD CONSTRAINT redirect_default_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.request_default
    ADD CONSTRAINT request_default_pkey PRIMARY KEY (started_at, visit_id, number);

ALTER TABLE ONLY archive.visit_day
    ADD CONSTRAINT visit_day_pkey PRIMARY KEY (organisation_id, site_id, day, crawl_type, exit_code);

ALTER TABLE ONLY archive.visit
    ADD CONSTRAINT visit_pkey PRIMARY KEY (started_at, id);

ALTER TABLE ONLY archive.visit_default
    ADD CONSTRAINT visit_default_pkey PRIMARY KEY (started_at, id);

ALTER TABLE ONLY deliver.delivery
    ADD CONSTRAINT delivery_id_key UNIQUE (id);

ALTER TABLE ONLY deliver.delivery
    ADD CONSTRAINT delivery_pkey PRIMARY KEY (endpoint_id, number);

ALTER TABLE ONLY deliver.endpoint
    ADD CONSTRAINT endpoint_owner_key UNIQUE (organisation_id, id);

ALTER TABLE ONLY deliver.endpoint
    ADD CONSTRAINT endpoint_pkey PRIMARY KEY (id);

ALTER TABLE ONLY deliver.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (organisation_id, message_id);

ALTER TABLE ONLY frontier.candidate
    ADD CONSTRAINT candidate_pkey PRIMARY KEY (site_id, url_id);

ALTER TABLE ONLY frontier.host
    ADD CONSTRAINT host_organisation_id_name_key UNIQUE (organisation_id, name);

ALTER TABLE ONLY frontier.host
    ADD CONSTRAINT host_pkey PRIMARY KEY (id);

ALTER TABLE ONLY frontier.robots
    ADD CONSTRAINT robots_pkey PRIMARY KEY (origin);

ALTER TABLE ONLY frontier.url
    ADD CONSTRAINT url_organisation_id_hash_key UNIQUE (organisation_id, hash);

ALTER TABLE ONLY frontier.url
    ADD CONSTRAINT url_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.application
    ADD CONSTRAINT application_owner_key UNIQUE (organisation_id, id);

ALTER TABLE ONLY knowledge.application
    ADD CONSTRAINT application_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.chunk
    ADD CONSTRAINT chunk_entry_id_ordinal_key UNIQUE (entry_id, ordinal);

ALTER TABLE ONLY knowledge.chunk
    ADD CONSTRAINT chunk_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.entry
    ADD CONSTRAINT entry_source_id_generation_uri_key UNIQUE (source_id, generation, uri);

ALTER TABLE ONLY knowledge.generation
    ADD CONSTRAINT generation_pkey PRIMARY KEY (source_id, generation);

ALTER TABLE ONLY knowledge.intake
    ADD CONSTRAINT intake_pkey PRIMARY KEY (organisation_id, crawl);

ALTER TABLE ONLY knowledge.mirror
    ADD CONSTRAINT mirror_alone_key UNIQUE (alone);

ALTER TABLE ONLY knowledge.mirror_change
    ADD CONSTRAINT mirror_change_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.mirror
    ADD CONSTRAINT mirror_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.model
    ADD CONSTRAINT model_organisation_id_name_dimension_digest_key UNIQUE (organisation_id, name, dimension, digest);

ALTER TABLE ONLY knowledge.model
    ADD CONSTRAINT model_owner_key UNIQUE (organisation_id, id);

ALTER TABLE ONLY knowledge.model
    ADD CONSTRAINT model_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.posting
    ADD CONSTRAINT posting_pkey PRIMARY KEY (segment_id, term, part);

ALTER TABLE ONLY knowledge.segment
    ADD CONSTRAINT segment_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.source
    ADD CONSTRAINT source_owner_key UNIQUE (organisation_id, id);

ALTER TABLE ONLY knowledge.source
    ADD CONSTRAINT source_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (id);

ALTER TABLE ONLY knowledge.vector
    ADD CONSTRAINT vector_pkey PRIMARY KEY (chunk_id);

ALTER TABLE ONLY measure.job_time
    ADD CONSTRAINT job_time_pkey PRIMARY KEY (job_id, type);

ALTER TABLE ONLY measure.operation_day
    ADD CONSTRAINT operation_day_pkey PRIMARY KEY (organisation_id, day, type, name);

ALTER TABLE ONLY measure.operation
    ADD CONSTRAINT operation_pkey PRIMARY KEY (recorded_at, id);

ALTER TABLE ONLY measure.operation_default
    ADD CONSTRAINT operation_default_pkey PRIMARY KEY (recorded_at, id);

ALTER TABLE ONLY measure.request_day
    ADD CONSTRAINT request_day_key UNIQUE NULLS NOT DISTINCT (organisation_id, day, method, route, status);

ALTER TABLE ONLY measure.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (recorded_at, id);

ALTER TABLE ONLY measure.request_default
    ADD CONSTRAINT request_default_pkey PRIMARY KEY (recorded_at, id);

ALTER TABLE ONLY queue.agent
    ADD CONSTRAINT agent_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.agent
    ADD CONSTRAINT agent_uuid_key UNIQUE (uuid);

ALTER TABLE ONLY queue.consumer
    ADD CONSTRAINT consumer_pkey PRIMARY KEY (name);

ALTER TABLE ONLY queue.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY queue.done
    ADD CONSTRAINT done_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY queue.duty
    ADD CONSTRAINT duty_pkey PRIMARY KEY (name);

ALTER TABLE ONLY queue.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (job_id, number);

ALTER TABLE ONLY queue.gate
    ADD CONSTRAINT gate_name_key UNIQUE (name);

ALTER TABLE ONLY queue.gate
    ADD CONSTRAINT gate_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.job_log_day
    ADD CONSTRAINT job_log_day_pkey PRIMARY KEY (organisation_id, day, step, level);

ALTER TABLE ONLY queue.job_log
    ADD CONSTRAINT job_log_pkey PRIMARY KEY (created_at, id);

ALTER TABLE ONLY queue.job_log_default
    ADD CONSTRAINT job_log_default_pkey PRIMARY KEY (created_at, id);

ALTER TABLE ONLY queue.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.job_tally
    ADD CONSTRAINT job_tally_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.lane
    ADD CONSTRAINT lane_job_id_gate_id_key UNIQUE (job_id, gate_id);

ALTER TABLE ONLY queue.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.leased
    ADD CONSTRAINT leased_pkey PRIMARY KEY (lease_id, task_id);

ALTER TABLE ONLY queue.overflow
    ADD CONSTRAINT overflow_pkey PRIMARY KEY (job_id, task_id);

ALTER TABLE ONLY queue.past_job
    ADD CONSTRAINT past_job_pkey PRIMARY KEY (finished_at, id);

ALTER TABLE ONLY queue.past_job_default
    ADD CONSTRAINT past_job_default_pkey PRIMARY KEY (finished_at, id);

ALTER TABLE ONLY queue.quota
    ADD CONSTRAINT quota_pkey PRIMARY KEY (organisation_id);

ALTER TABLE ONLY queue.ready
    ADD CONSTRAINT ready_pkey PRIMARY KEY (lane_id, priority, turn);

ALTER TABLE ONLY queue.schedule
    ADD CONSTRAINT schedule_owner_key UNIQUE (organisation_id, id);

ALTER TABLE ONLY queue.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.schedule_run
    ADD CONSTRAINT schedule_run_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.statistic_day
    ADD CONSTRAINT statistic_day_pkey PRIMARY KEY (day, kind);

ALTER TABLE ONLY queue.statistic
    ADD CONSTRAINT statistic_pkey PRIMARY KEY (minute, id);

ALTER TABLE ONLY queue.statistic_default
    ADD CONSTRAINT statistic_default_pkey PRIMARY KEY (minute, id);

ALTER TABLE ONLY queue.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (id);

ALTER TABLE ONLY queue.unique_key
    ADD CONSTRAINT unique_key_pkey PRIMARY KEY (scope, key);

ALTER TABLE ONLY queue.waiting
    ADD CONSTRAINT waiting_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY store.blob
    ADD CONSTRAINT blob_pkey PRIMARY KEY (sha256);

ALTER TABLE ONLY store.change
    ADD CONSTRAINT change_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.content_hash
    ADD CONSTRAINT content_hash_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.content_hash
    ADD CONSTRAINT content_hash_site_id_content_hash_key UNIQUE (site_id, content_hash);

ALTER TABLE ONLY store.duplicate_group
    ADD CONSTRAINT duplicate_group_pkey PRIMARY KEY (group_id);

ALTER TABLE ONLY store.fingerprint
    ADD CONSTRAINT fingerprint_pkey PRIMARY KEY (content_id);

ALTER TABLE ONLY store.fleeting
    ADD CONSTRAINT fleeting_pkey PRIMARY KEY (stored_at, task_id);

ALTER TABLE ONLY store.fleeting_default
    ADD CONSTRAINT fleeting_default_pkey PRIMARY KEY (stored_at, task_id);

ALTER TABLE ONLY store.likeness
    ADD CONSTRAINT likeness_pkey PRIMARY KEY (page_id);

ALTER TABLE ONLY store.page
    ADD CONSTRAINT page_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.page
    ADD CONSTRAINT page_site_id_url_id_key UNIQUE (site_id, url_id);

ALTER TABLE ONLY store.site_config
    ADD CONSTRAINT site_config_pkey PRIMARY KEY (site_id, number);

ALTER TABLE ONLY store.site
    ADD CONSTRAINT site_owner_key UNIQUE (organisation_id, id);

ALTER TABLE ONLY store.site
    ADD CONSTRAINT site_pkey PRIMARY KEY (id);

ALTER TABLE ONLY store.snapshot
    ADD CONSTRAINT snapshot_pkey PRIMARY KEY (organisation_id, url_hash, tag, variant);

ALTER TABLE ONLY store.sweep
    ADD CONSTRAINT sweep_pkey PRIMARY KEY (site_id, plan);

ALTER TABLE ONLY store.version
    ADD CONSTRAINT version_page_id_number_key UNIQUE (page_id, number);

ALTER TABLE ONLY store.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_hash_key UNIQUE (hash);

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.member
    ADD CONSTRAINT member_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.organisation
    ADD CONSTRAINT organisation_foreign_id_key UNIQUE (foreign_id);

ALTER TABLE ONLY tenancy.organisation
    ADD CONSTRAINT organisation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.session
    ADD CONSTRAINT session_hash_key UNIQUE (hash);

ALTER TABLE ONLY tenancy.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.session
    ADD CONSTRAINT session_previous_hash_key UNIQUE (previous_hash);

ALTER TABLE ONLY tenancy.share_link
    ADD CONSTRAINT share_link_hash_key UNIQUE (hash);

ALTER TABLE ONLY tenancy.share_link
    ADD CONSTRAINT share_link_pkey PRIMARY KEY (id);

ALTER TABLE ONLY tenancy.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (organisation_id, day, api_key);

CREATE INDEX file_sha256_idx ON ONLY archive.file USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX file_default_sha256_idx ON archive.file_default USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX visit_job_idx ON ONLY archive.visit USING btree (job_id, id);

CREATE INDEX visit_default_job_id_id_idx ON archive.visit_default USING btree (job_id, id);

CREATE INDEX visit_site_idx ON ONLY archive.visit USING btree (site_id, started_at, id);

CREATE INDEX visit_default_site_id_started_at_id_idx ON archive.visit_default USING btree (site_id, started_at, id);

CREATE INDEX visit_quickinfo_idx ON ONLY archive.visit USING btree (url_id, started_at, exit_code);

CREATE INDEX visit_default_url_id_started_at_exit_code_idx ON archive.visit_default USING btree (url_id, started_at, exit_code);

CREATE INDEX delivery_created_idx ON deliver.delivery USING btree (created_at);

CREATE INDEX delivery_dead_idx ON deliver.delivery USING btree (organisation_id, created_at) WHERE (state = 'dead'::text);

CREATE INDEX delivery_open_idx ON deliver.delivery USING btree (endpoint_id, state, number) WHERE (state = ANY (ARRAY['pending'::text, 'aside'::text]));

CREATE INDEX delivery_organisation_idx ON deliver.delivery USING btree (organisation_id, created_at);

CREATE INDEX endpoint_due_idx ON deliver.endpoint USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX endpoint_job_idx ON deliver.endpoint USING btree (job_id);

CREATE INDEX endpoint_organisation_idx ON deliver.endpoint USING btree (organisation_id, created_at);

CREATE INDEX inbox_received_idx ON deliver.inbox USING btree (received_at);

CREATE INDEX inbox_sha256_idx ON deliver.inbox USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX candidate_due_idx ON frontier.candidate USING btree (site_id, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX url_host_idx ON frontier.url USING btree (host_id);

CREATE UNIQUE INDEX application_name_key ON knowledge.application USING btree (organisation_id, lower(name));

CREATE INDEX chunk_hash_idx ON knowledge.chunk USING hash (hash);

CREATE INDEX chunk_source_idx ON knowledge.chunk USING btree (source_id);

CREATE INDEX entry_dated_idx ON knowledge.entry USING btree (organisation_id, dated_at);

CREATE INDEX entry_language_idx ON knowledge.entry USING btree (organisation_id, language);

CREATE INDEX entry_page_idx ON knowledge.entry USING btree (page_id) WHERE (page_id IS NOT NULL);

CREATE INDEX entry_path_idx ON knowledge.entry USING btree (organisation_id, path text_pattern_ops);

CREATE INDEX entry_type_idx ON knowledge.entry USING btree (organisation_id, content_type);

CREATE INDEX entry_uri_idx ON knowledge.entry USING hash (uri);

CREATE INDEX generation_model_idx ON knowledge.generation USING btree (model_id);

CREATE INDEX intake_job_idx ON knowledge.intake USING btree (job_id);

CREATE INDEX intake_source_idx ON knowledge.intake USING btree (source_id);

CREATE INDEX mirror_change_model_idx ON knowledge.mirror_change USING btree (model_id);

CREATE INDEX segment_organisation_idx ON knowledge.segment USING btree (organisation_id, language);

CREATE INDEX source_application_idx ON knowledge.source USING btree (application_id, created_at, id);

CREATE INDEX source_job_idx ON knowledge.source USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX source_organisation_idx ON knowledge.source USING btree (organisation_id, created_at, id);

CREATE INDEX source_sha256_idx ON knowledge.source USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE UNIQUE INDEX source_site_key ON knowledge.source USING btree (organisation_id, site_id) WHERE ((site_id IS NOT NULL) AND (application_id IS NULL));

CREATE INDEX source_uri_idx ON knowledge.source USING btree (organisation_id, md5(uri));

CREATE INDEX tally_job_idx ON knowledge.tally USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX tally_scope_idx ON knowledge.tally USING btree (scope, minute);

CREATE INDEX tally_unfolded_idx ON knowledge.tally USING btree (id) WHERE (NOT folded);

CREATE INDEX vector_entry_idx ON knowledge.vector USING btree (entry_id);

CREATE INDEX vector_model_idx ON knowledge.vector USING btree (model_id);

CREATE INDEX job_time_created_idx ON measure.job_time USING btree (created_at);

CREATE INDEX operation_job_idx ON ONLY measure.operation USING btree (job_id, recorded_at) WHERE (job_id IS NOT NULL);

CREATE INDEX operation_default_job_id_recorded_at_idx ON measure.operation_default USING btree (job_id, recorded_at) WHERE (job_id IS NOT NULL);

CREATE INDEX operation_organisation_idx ON ONLY measure.operation USING btree (organisation_id, recorded_at, id);

CREATE INDEX operation_default_organisation_id_recorded_at_id_idx ON measure.operation_default USING btree (organisation_id, recorded_at, id);

CREATE INDEX request_organisation_idx ON ONLY measure.request USING btree (organisation_id, recorded_at, id);

CREATE INDEX request_default_organisation_id_recorded_at_id_idx ON measure.request_default USING btree (organisation_id, recorded_at, id);

CREATE INDEX agent_alive_idx ON queue.agent USING btree (id) WHERE (finished_at IS NULL);

CREATE INDEX dead_letter_job_idx ON queue.dead_letter USING btree (job_id, task_id);

CREATE INDEX dead_letter_open_idx ON queue.dead_letter USING btree (organisation_id, failed_at) WHERE (resolved_at IS NULL);

CREATE INDEX done_started_idx ON queue.done USING brin (started_at) WITH (autosummarize='on');

CREATE INDEX event_feed_idx ON queue.event USING btree (xid, id);

CREATE INDEX job_begun_idx ON queue.job USING btree (begun_at);

CREATE INDEX job_created_idx ON queue.job USING brin (created_at) WITH (pages_per_range='16');

CREATE INDEX job_expires_idx ON queue.job USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX job_log_job_idx ON ONLY queue.job_log USING btree (job_id, created_at);

CREATE INDEX job_log_default_job_id_created_at_idx ON queue.job_log_default USING btree (job_id, created_at);

CREATE INDEX job_log_site_idx ON ONLY queue.job_log USING btree (site_id, created_at) WHERE (site_id IS NOT NULL);

CREATE INDEX job_log_default_site_id_created_at_idx ON queue.job_log_default USING btree (site_id, created_at) WHERE (site_id IS NOT NULL);

CREATE INDEX job_log_trace_idx ON ONLY queue.job_log USING btree (trace_id) WHERE (trace_id IS NOT NULL);

CREATE INDEX job_log_default_trace_id_idx ON queue.job_log_default USING btree (trace_id) WHERE (trace_id IS NOT NULL);

CREATE INDEX job_open_idx ON queue.job USING btree (kind) WHERE (status = ANY (ARRAY['pending'::text, 'running'::text, 'paused'::text]));

CREATE INDEX job_organisation_idx ON queue.job USING btree (organisation_id, created_at DESC, id DESC);

CREATE INDEX job_organisation_status_idx ON queue.job USING btree (organisation_id, status, created_at DESC, id DESC);

CREATE INDEX job_retry_of_idx ON queue.job USING btree (retry_of) WHERE (retry_of IS NOT NULL);

CREATE UNIQUE INDEX job_standing_key ON queue.job USING btree (organisation_id, kind) WHERE standing;

CREATE INDEX job_tally_organisation_idx ON queue.job_tally USING btree (organisation_id, hour);

CREATE INDEX job_tally_unfolded_idx ON queue.job_tally USING btree (id) WHERE (NOT folded);

CREATE INDEX job_text_idx ON queue.job USING btree (id_text);

CREATE INDEX lane_served_idx ON queue.lane USING btree (organisation_id, priority, id) WHERE (open AND awake);

CREATE INDEX lease_agent_idx ON queue.lease USING btree (agent_id);

CREATE INDEX lease_expires_idx ON queue.lease USING btree (expires_at);

CREATE INDEX past_job_id_idx ON ONLY queue.past_job USING btree (id);

CREATE INDEX past_job_default_id_idx ON queue.past_job_default USING btree (id);

CREATE INDEX past_job_text_idx ON ONLY queue.past_job USING btree (id_text);

CREATE INDEX past_job_default_id_text_idx ON queue.past_job_default USING btree (id_text);

CREATE INDEX past_job_started_idx ON ONLY queue.past_job USING btree (started_at);

CREATE INDEX past_job_default_started_at_idx ON queue.past_job_default USING btree (started_at);

CREATE INDEX ready_deadline_idx ON queue.ready USING btree (deadline) WHERE (deadline IS NOT NULL);

CREATE INDEX ready_task_idx ON queue.ready USING btree (task_id);

CREATE INDEX schedule_due_idx ON queue.schedule USING btree (next_at) WHERE (next_at IS NOT NULL);

CREATE UNIQUE INDEX schedule_name_key ON queue.schedule USING btree (organisation_id, name_key);

CREATE INDEX schedule_next_idx ON queue.schedule USING btree (organisation_id, (
CASE
    WHEN (next_at IS NULL) THEN '9000-01-01 00:00:00+00'::timestamp with time zone
    ELSE next_at
END), id);

CREATE INDEX schedule_organisation_idx ON queue.schedule USING btree (organisation_id, created_at DESC, id DESC);

CREATE INDEX schedule_run_created_idx ON queue.schedule_run USING btree (created_at);

CREATE INDEX schedule_run_recent_idx ON queue.schedule_run USING btree (schedule_id, id DESC);

CREATE UNIQUE INDEX schedule_run_tick_key ON queue.schedule_run USING btree (schedule_id, tick) WHERE (NOT manual);

CREATE INDEX schedule_site_idx ON queue.schedule USING btree (site_id) WHERE (site_id IS NOT NULL);

CREATE INDEX statistic_unfolded_idx ON ONLY queue.statistic USING btree (minute) WHERE (NOT folded);

CREATE INDEX statistic_default_minute_idx ON queue.statistic_default USING btree (minute) WHERE (NOT folded);

CREATE INDEX task_created_idx ON queue.task USING brin (created_at) WITH (autosummarize='on');

CREATE INDEX task_job_idx ON queue.task USING btree (job_id, id);

CREATE INDEX task_text_idx ON queue.task USING btree (created_at) WHERE (kind = ANY (ARRAY['file'::text, 'index'::text]));

CREATE INDEX task_uncounted_idx ON queue.task USING btree (job_id) WHERE (NOT counted);

CREATE INDEX unique_key_expires_idx ON queue.unique_key USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX unique_key_job_idx ON queue.unique_key USING btree (job_id) WHERE (scope <> job_id);

CREATE INDEX waiting_deadline_idx ON queue.waiting USING btree (deadline) WHERE (deadline IS NOT NULL);

CREATE INDEX waiting_lane_idx ON queue.waiting USING btree (lane_id);

CREATE INDEX waiting_run_at_idx ON queue.waiting USING btree (run_at);

CREATE INDEX blob_used_idx ON store.blob USING btree (used_at);

CREATE INDEX change_detected_idx ON store.change USING btree (organisation_id, detected_at);

CREATE INDEX change_feed_idx ON store.change USING btree (organisation_id, id);

CREATE INDEX change_page_idx ON store.change USING btree (page_id, id) WHERE (page_id IS NOT NULL);

CREATE UNIQUE INDEX change_report_key ON store.change USING btree (organisation_id, report) WHERE (report IS NOT NULL);

CREATE INDEX change_rescrape_idx ON store.change USING btree (rescrape_job_id) WHERE ((rescrape_job_id IS NOT NULL) AND (rescrape_status = 'queued'::text));

CREATE INDEX change_site_idx ON store.change USING btree (site_id, id) WHERE (site_id IS NOT NULL);

CREATE INDEX change_sweep_idx ON store.change USING btree (job_id, id) WHERE (source = 'sweep'::text);

CREATE INDEX content_hash_count_idx ON store.content_hash USING btree (site_id, occurrence_count) WHERE (occurrence_count > 1);

CREATE INDEX content_hash_last_seen_idx ON store.content_hash USING btree (site_id, last_seen_at);

CREATE INDEX duplicate_group_pages_idx ON store.duplicate_group USING btree (site_id, pages, group_id) WHERE (pages > 1);

CREATE INDEX duplicate_group_site_idx ON store.duplicate_group USING btree (site_id, group_id) WHERE (pages > 1);

CREATE INDEX fingerprint_bands_idx ON store.fingerprint USING gin (bands) WITH (fastupdate=off);

CREATE INDEX fleeting_job_idx ON ONLY store.fleeting USING btree (job_id, task_id);

CREATE INDEX fleeting_default_job_id_task_id_idx ON store.fleeting_default USING btree (job_id, task_id);

CREATE INDEX likeness_group_idx ON store.likeness USING btree (site_id, group_id, by_hand, page_id) WHERE (group_id IS NOT NULL);

CREATE INDEX page_changed_idx ON store.page USING btree (organisation_id, (
CASE
    WHEN (changed_at IS NULL) THEN first_seen_at
    ELSE changed_at
END), id);

CREATE INDEX page_organisation_idx ON store.page USING btree (organisation_id, id);

CREATE INDEX page_site_changed_idx ON store.page USING btree (site_id, (
CASE
    WHEN (changed_at IS NULL) THEN first_seen_at
    ELSE changed_at
END), id);

CREATE INDEX page_url_idx ON store.page USING btree (url_id);

CREATE INDEX site_config_idx ON store.site USING gin (config jsonb_path_ops);

CREATE UNIQUE INDEX site_implicit_key ON store.site USING btree (organisation_id, base_url, variant) WHERE (implicit AND (deleted_at IS NULL));

CREATE INDEX site_listing_idx ON store.site USING btree (organisation_id, created_at, id) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX site_name_key ON store.site USING btree (organisation_id, name_key) WHERE (deleted_at IS NULL);

CREATE INDEX site_purge_idx ON store.site USING btree (id) WHERE purge;

CREATE INDEX site_status_idx ON store.site USING btree (organisation_id, status, created_at, id) WHERE (deleted_at IS NULL);

CREATE INDEX site_updated_idx ON store.site USING btree (organisation_id, updated_at, id) WHERE (deleted_at IS NULL);

CREATE INDEX version_content_hash_idx ON store.version USING btree (content_hash);

CREATE INDEX version_job_idx ON store.version USING btree (job_id, id);

CREATE INDEX version_sha256_idx ON store.version USING btree (sha256) WHERE (sha256 IS NOT NULL);

CREATE INDEX api_key_organisation_id_idx ON tenancy.api_key USING btree (organisation_id, created_at);

CREATE INDEX audit_entry_created_idx ON tenancy.audit_entry USING brin (created_at);

CREATE INDEX audit_entry_organisation_idx ON tenancy.audit_entry USING btree (organisation_id, id);

CREATE UNIQUE INDEX member_email_key ON tenancy.member USING btree (organisation_id, lower(email));

CREATE INDEX member_organisation_id_idx ON tenancy.member USING btree (organisation_id);

CREATE UNIQUE INDEX organisation_name_key ON tenancy.organisation USING btree (lower(name));

CREATE INDEX session_api_key_idx ON tenancy.session USING btree (api_key_id) WHERE (api_key_id IS NOT NULL);

CREATE INDEX session_expires_idx ON tenancy.session USING btree (expires_at);

CREATE INDEX session_organisation_idx ON tenancy.session USING btree (organisation_id, created_at);

CREATE INDEX share_link_expires_idx ON tenancy.share_link USING btree (expires_at);

CREATE INDEX share_link_organisation_idx ON tenancy.share_link USING btree (organisation_id, created_at);

ALTER INDEX archive.file_pkey ATTACH PARTITION archive.file_default_pkey;

ALTER INDEX archive.file_sha256_idx ATTACH PARTITION archive.file_default_sha256_idx;

ALTER INDEX archive.redirect_pkey ATTACH PARTITION archive.redirect_default_pkey;

ALTER INDEX archive.request_pkey ATTACH PARTITION archive.request_default_pkey;

ALTER INDEX archive.visit_job_idx ATTACH PARTITION archive.visit_default_job_id_id_idx;

ALTER INDEX archive.visit_pkey ATTACH PARTITION archive.visit_default_pkey;

ALTER INDEX archive.visit_site_idx ATTACH PARTITION archive.visit_default_site_id_started_at_id_idx;

ALTER INDEX archive.visit_quickinfo_idx ATTACH PARTITION archive.visit_default_url_id_started_at_exit_code_idx;

ALTER INDEX measure.operation_job_idx ATTACH PARTITION measure.operation_default_job_id_recorded_at_idx;

ALTER INDEX measure.operation_organisation_idx ATTACH PARTITION measure.operation_default_organisation_id_recorded_at_id_idx;

ALTER INDEX measure.operation_pkey ATTACH PARTITION measure.operation_default_pkey;

ALTER INDEX measure.request_organisation_idx ATTACH PARTITION measure.request_default_organisation_id_recorded_at_id_idx;

ALTER INDEX measure.request_pkey ATTACH PARTITION measure.request_default_pkey;

ALTER INDEX queue.job_log_job_idx ATTACH PARTITION queue.job_log_default_job_id_created_at_idx;

ALTER INDEX queue.job_log_pkey ATTACH PARTITION queue.job_log_default_pkey;

ALTER INDEX queue.job_log_site_idx ATTACH PARTITION queue.job_log_default_site_id_created_at_idx;

ALTER INDEX queue.job_log_trace_idx ATTACH PARTITION queue.job_log_default_trace_id_idx;

ALTER INDEX queue.past_job_id_idx ATTACH PARTITION queue.past_job_default_id_idx;

ALTER INDEX queue.past_job_text_idx ATTACH PARTITION queue.past_job_default_id_text_idx;

ALTER INDEX queue.past_job_pkey ATTACH PARTITION queue.past_job_default_pkey;

ALTER INDEX queue.past_job_started_idx ATTACH PARTITION queue.past_job_default_started_at_idx;

ALTER INDEX queue.statistic_unfolded_idx ATTACH PARTITION queue.statistic_default_minute_idx;

ALTER INDEX queue.statistic_pkey ATTACH PARTITION queue.statistic_default_pkey;

ALTER INDEX store.fleeting_job_idx ATTACH PARTITION store.fleeting_default_job_id_task_id_idx;

ALTER INDEX store.fleeting_pkey ATTACH PARTITION store.fleeting_default_pkey;

CREATE TRIGGER mirror_gone AFTER DELETE ON knowledge.vector REFERENCING OLD TABLE AS moved FOR EACH STATEMENT EXECUTE FUNCTION knowledge.note_vectors();

ALTER TABLE knowledge.vector DISABLE TRIGGER mirror_gone;

CREATE TRIGGER mirror_new AFTER INSERT ON knowledge.vector REFERENCING NEW TABLE AS moved FOR EACH STATEMENT EXECUTE FUNCTION knowledge.note_vectors();

ALTER TABLE knowledge.vector DISABLE TRIGGER mirror_new;

CREATE TRIGGER tally_new AFTER INSERT OR DELETE ON queue.job FOR EACH ROW EXECUTE FUNCTION queue.tally_job();

CREATE TRIGGER tally_status AFTER UPDATE OF status ON queue.job FOR EACH ROW WHEN ((old.status IS DISTINCT FROM new.status)) EXECUTE FUNCTION queue.tally_job();

CREATE TRIGGER count_gone_pages AFTER DELETE ON store.likeness REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION store.count_pages();

CREATE TRIGGER count_moved_pages AFTER UPDATE ON store.likeness REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION store.count_pages();

CREATE TRIGGER count_new_pages AFTER INSERT ON store.likeness REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION store.count_pages();

ALTER TABLE ONLY deliver.delivery
    ADD CONSTRAINT delivery_endpoint_id_fkey FOREIGN KEY (organisation_id, endpoint_id) REFERENCES deliver.endpoint(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY deliver.endpoint
    ADD CONSTRAINT endpoint_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY deliver.inbox
    ADD CONSTRAINT inbox_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY frontier.host
    ADD CONSTRAINT host_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.application
    ADD CONSTRAINT application_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.chunk
    ADD CONSTRAINT chunk_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES knowledge.entry(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.chunk
    ADD CONSTRAINT chunk_source_id_fkey FOREIGN KEY (source_id) REFERENCES knowledge.source(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.entry
    ADD CONSTRAINT entry_source_id_fkey FOREIGN KEY (organisation_id, source_id) REFERENCES knowledge.source(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.generation
    ADD CONSTRAINT generation_model_id_fkey FOREIGN KEY (organisation_id, model_id) REFERENCES knowledge.model(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.generation
    ADD CONSTRAINT generation_source_id_fkey FOREIGN KEY (organisation_id, source_id) REFERENCES knowledge.source(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.intake
    ADD CONSTRAINT intake_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.intake
    ADD CONSTRAINT intake_source_id_fkey FOREIGN KEY (organisation_id, source_id) REFERENCES knowledge.source(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.model
    ADD CONSTRAINT model_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.posting
    ADD CONSTRAINT posting_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES knowledge.segment(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.segment
    ADD CONSTRAINT segment_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.source
    ADD CONSTRAINT source_application_id_fkey FOREIGN KEY (organisation_id, application_id) REFERENCES knowledge.application(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.source
    ADD CONSTRAINT source_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.source
    ADD CONSTRAINT source_site_id_fkey FOREIGN KEY (organisation_id, site_id) REFERENCES store.site(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY knowledge.vector
    ADD CONSTRAINT vector_chunk_id_fkey FOREIGN KEY (chunk_id) REFERENCES knowledge.chunk(id) ON DELETE CASCADE;

ALTER TABLE ONLY queue.job
    ADD CONSTRAINT job_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY queue.schedule
    ADD CONSTRAINT schedule_application_id_fkey FOREIGN KEY (organisation_id, application_id) REFERENCES knowledge.application(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY queue.schedule
    ADD CONSTRAINT schedule_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY queue.schedule_run
    ADD CONSTRAINT schedule_run_schedule_id_fkey FOREIGN KEY (organisation_id, schedule_id) REFERENCES queue.schedule(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY queue.schedule
    ADD CONSTRAINT schedule_site_id_fkey FOREIGN KEY (organisation_id, site_id) REFERENCES store.site(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY store.duplicate_group
    ADD CONSTRAINT duplicate_group_group_id_fkey FOREIGN KEY (group_id) REFERENCES store.content_hash(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.fingerprint
    ADD CONSTRAINT fingerprint_content_id_fkey FOREIGN KEY (content_id) REFERENCES store.content_hash(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.likeness
    ADD CONSTRAINT likeness_page_id_fkey FOREIGN KEY (page_id) REFERENCES store.page(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.page
    ADD CONSTRAINT page_site_id_fkey FOREIGN KEY (organisation_id, site_id) REFERENCES store.site(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY store.site_config
    ADD CONSTRAINT site_config_site_id_fkey FOREIGN KEY (organisation_id, site_id) REFERENCES store.site(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY store.site
    ADD CONSTRAINT site_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY store.sweep
    ADD CONSTRAINT sweep_site_id_fkey FOREIGN KEY (organisation_id, site_id) REFERENCES store.site(organisation_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY store.version
    ADD CONSTRAINT version_page_id_fkey FOREIGN KEY (page_id) REFERENCES store.page(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES tenancy.member(id) ON DELETE SET NULL;

ALTER TABLE ONLY tenancy.api_key
    ADD CONSTRAINT api_key_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.audit_entry
    ADD CONSTRAINT audit_entry_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.member
    ADD CONSTRAINT member_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.session
    ADD CONSTRAINT session_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES tenancy.api_key(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.session
    ADD CONSTRAINT session_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.share_link
    ADD CONSTRAINT share_link_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE ONLY tenancy.usage
    ADD CONSTRAINT usage_organisation_id_fkey FOREIGN KEY (organisation_id) REFERENCES tenancy.organisation(id) ON DELETE CASCADE;

ALTER TABLE archive.file ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.file_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.redirect ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.redirect_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.request ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.request_default ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON archive.file TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.file_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.redirect TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.redirect_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.request TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.request_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.visit TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.visit_day TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON archive.visit_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE archive.visit ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.visit_day ENABLE ROW LEVEL SECURITY;

ALTER TABLE archive.visit_default ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON archive.file TO trapline_worker USING (true);

CREATE POLICY worker ON archive.file_default TO trapline_worker USING (true);

CREATE POLICY worker ON archive.redirect TO trapline_worker USING (true);

CREATE POLICY worker ON archive.redirect_default TO trapline_worker USING (true);

CREATE POLICY worker ON archive.request TO trapline_worker USING (true);

CREATE POLICY worker ON archive.request_default TO trapline_worker USING (true);

CREATE POLICY worker ON archive.visit TO trapline_worker USING (true);

CREATE POLICY worker ON archive.visit_day TO trapline_worker USING (true);

CREATE POLICY worker ON archive.visit_default TO trapline_worker USING (true);

ALTER TABLE deliver.delivery ENABLE ROW LEVEL SECURITY;

ALTER TABLE deliver.endpoint ENABLE ROW LEVEL SECURITY;

ALTER TABLE deliver.inbox ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON deliver.delivery TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON deliver.endpoint TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON deliver.inbox TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY worker ON deliver.delivery TO trapline_worker USING (true);

CREATE POLICY worker ON deliver.endpoint TO trapline_worker USING (true);

CREATE POLICY worker ON deliver.inbox TO trapline_worker USING (true);

ALTER TABLE frontier.candidate ENABLE ROW LEVEL SECURITY;

ALTER TABLE frontier.host ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON frontier.candidate TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON frontier.host TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON frontier.url TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE frontier.url ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON frontier.candidate TO trapline_worker USING (true);

CREATE POLICY worker ON frontier.host TO trapline_worker USING (true);

CREATE POLICY worker ON frontier.url TO trapline_worker USING (true);

ALTER TABLE knowledge.application ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.chunk ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.entry ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.generation ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.intake ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.mirror_change ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.model ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.posting ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.segment ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.source ENABLE ROW LEVEL SECURITY;

ALTER TABLE knowledge.tally ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON knowledge.application TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.chunk TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.entry TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.generation TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.intake TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.mirror_change TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.model TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.posting TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.segment TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.source TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.tally TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON knowledge.vector TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE knowledge.vector ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON knowledge.application TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.chunk TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.entry TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.generation TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.intake TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.mirror_change TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.model TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.posting TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.segment TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.source TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.tally TO trapline_worker USING (true);

CREATE POLICY worker ON knowledge.vector TO trapline_worker USING (true);

ALTER TABLE measure.job_time ENABLE ROW LEVEL SECURITY;

ALTER TABLE measure.operation ENABLE ROW LEVEL SECURITY;

ALTER TABLE measure.operation_day ENABLE ROW LEVEL SECURITY;

ALTER TABLE measure.operation_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE measure.request ENABLE ROW LEVEL SECURITY;

ALTER TABLE measure.request_day ENABLE ROW LEVEL SECURITY;

ALTER TABLE measure.request_default ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON measure.job_time TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON measure.operation TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON measure.operation_day TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON measure.operation_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON measure.request TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON measure.request_day TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON measure.request_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY worker ON measure.job_time TO trapline_worker USING (true);

CREATE POLICY worker ON measure.operation TO trapline_worker USING (true);

CREATE POLICY worker ON measure.operation_day TO trapline_worker USING (true);

CREATE POLICY worker ON measure.operation_default TO trapline_worker USING (true);

CREATE POLICY worker ON measure.request TO trapline_worker USING (true);

CREATE POLICY worker ON measure.request_day TO trapline_worker USING (true);

CREATE POLICY worker ON measure.request_default TO trapline_worker USING (true);

ALTER TABLE queue.dead_letter ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.done ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.event ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.job ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.job_log ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.job_log_day ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.job_log_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.job_tally ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.lane ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.leased ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.overflow ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.past_job ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.past_job_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.quota ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.ready ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.schedule ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.schedule_run ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.task ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON queue.dead_letter TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.done TO trapline_tenant USING ((EXISTS ( SELECT
   FROM queue.task t
  WHERE (t.id = done.task_id))));

CREATE POLICY tenant ON queue.event TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.job TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.job_log TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.job_log_day TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.job_log_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.job_tally TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.lane TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.leased TO trapline_tenant USING ((EXISTS ( SELECT
   FROM queue.lane l
  WHERE (l.id = leased.lane_id))));

CREATE POLICY tenant ON queue.overflow TO trapline_tenant USING ((EXISTS ( SELECT
   FROM queue.job j
  WHERE (j.id = overflow.job_id))));

CREATE POLICY tenant ON queue.past_job TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.past_job_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.quota TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.ready TO trapline_tenant USING ((lane_id IN ( SELECT l.id
   FROM queue.lane l)));

CREATE POLICY tenant ON queue.schedule TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.schedule_run TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.task TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON queue.unique_key TO trapline_tenant USING ((EXISTS ( SELECT
   FROM queue.job j
  WHERE (j.id = unique_key.job_id))));

CREATE POLICY tenant ON queue.waiting TO trapline_tenant USING ((lane_id IN ( SELECT l.id
   FROM queue.lane l)));

ALTER TABLE queue.unique_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE queue.waiting ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON queue.dead_letter TO trapline_worker USING (true);

CREATE POLICY worker ON queue.done TO trapline_worker USING (true);

CREATE POLICY worker ON queue.event TO trapline_worker USING (true);

CREATE POLICY worker ON queue.job TO trapline_worker USING (true);

CREATE POLICY worker ON queue.job_log TO trapline_worker USING (true);

CREATE POLICY worker ON queue.job_log_day TO trapline_worker USING (true);

CREATE POLICY worker ON queue.job_log_default TO trapline_worker USING (true);

CREATE POLICY worker ON queue.job_tally TO trapline_worker USING (true);

CREATE POLICY worker ON queue.lane TO trapline_worker USING (true);

CREATE POLICY worker ON queue.leased TO trapline_worker USING (true);

CREATE POLICY worker ON queue.overflow TO trapline_worker USING (true);

CREATE POLICY worker ON queue.past_job TO trapline_worker USING (true);

CREATE POLICY worker ON queue.past_job_default TO trapline_worker USING (true);

CREATE POLICY worker ON queue.quota TO trapline_worker USING (true);

CREATE POLICY worker ON queue.ready TO trapline_worker USING (true);

CREATE POLICY worker ON queue.schedule TO trapline_worker USING (true);

CREATE POLICY worker ON queue.schedule_run TO trapline_worker USING (true);

CREATE POLICY worker ON queue.task TO trapline_worker USING (true);

CREATE POLICY worker ON queue.unique_key TO trapline_worker USING (true);

CREATE POLICY worker ON queue.waiting TO trapline_worker USING (true);

ALTER TABLE store.blob ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.change ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.content_hash ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.duplicate_group ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.fingerprint ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.fleeting ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.fleeting_default ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.likeness ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.page ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.sighting ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.site ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.site_config ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.snapshot ENABLE ROW LEVEL SECURITY;

ALTER TABLE store.sweep ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON store.blob TO trapline_tenant USING (((EXISTS ( SELECT
   FROM store.version v
  WHERE (v.sha256 = blob.sha256))) OR (EXISTS ( SELECT
   FROM archive.file f
  WHERE (f.sha256 = blob.sha256)))));

CREATE POLICY tenant ON store.change TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.content_hash TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.duplicate_group TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.fingerprint TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.fleeting TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.fleeting_default TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.likeness TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.page TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.sighting TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.site TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.site_config TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.snapshot TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.sweep TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON store.version TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE store.version ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON store.blob TO trapline_worker USING (true);

CREATE POLICY worker ON store.change TO trapline_worker USING (true);

CREATE POLICY worker ON store.content_hash TO trapline_worker USING (true);

CREATE POLICY worker ON store.duplicate_group TO trapline_worker USING (true);

CREATE POLICY worker ON store.fingerprint TO trapline_worker USING (true);

CREATE POLICY worker ON store.fleeting TO trapline_worker USING (true);

CREATE POLICY worker ON store.fleeting_default TO trapline_worker USING (true);

CREATE POLICY worker ON store.likeness TO trapline_worker USING (true);

CREATE POLICY worker ON store.page TO trapline_worker USING (true);

CREATE POLICY worker ON store.sighting TO trapline_worker USING (true);

CREATE POLICY worker ON store.site TO trapline_worker USING (true);

CREATE POLICY worker ON store.site_config TO trapline_worker USING (true);

CREATE POLICY worker ON store.snapshot TO trapline_worker USING (true);

CREATE POLICY worker ON store.sweep TO trapline_worker USING (true);

CREATE POLICY worker ON store.version TO trapline_worker USING (true);

ALTER TABLE tenancy.api_key ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.audit_entry ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.member ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.organisation ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.session ENABLE ROW LEVEL SECURITY;

ALTER TABLE tenancy.share_link ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON tenancy.api_key TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.audit_entry TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.member TO trapline_tenant USING (((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)) AND ((( SELECT auth.uid() AS uid) IS NULL) OR (id = ( SELECT auth.uid() AS uid)))));

CREATE POLICY tenant ON tenancy.organisation TO trapline_tenant USING ((id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.session TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.share_link TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

CREATE POLICY tenant ON tenancy.usage TO trapline_tenant USING ((organisation_id = ( SELECT tenancy.current_organisation() AS current_organisation)));

ALTER TABLE tenancy.usage ENABLE ROW LEVEL SECURITY;

CREATE POLICY worker ON tenancy.api_key TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.audit_entry TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.member TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.organisation TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.session TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.share_link TO trapline_worker USING (true);

CREATE POLICY worker ON tenancy.usage TO trapline_worker USING (true);

GRANT USAGE ON SCHEMA app TO trapline_worker;
GRANT USAGE ON SCHEMA app TO trapline_tenant;

GRANT USAGE ON SCHEMA archive TO trapline_worker;
GRANT USAGE ON SCHEMA archive TO trapline_tenant;

GRANT USAGE ON SCHEMA auth TO trapline_worker;
GRANT USAGE ON SCHEMA auth TO trapline_tenant;

GRANT USAGE ON SCHEMA bee TO trapline_worker;
GRANT USAGE ON SCHEMA bee TO trapline_tenant;

GRANT USAGE ON SCHEMA deliver TO trapline_worker;
GRANT USAGE ON SCHEMA deliver TO trapline_tenant;

GRANT USAGE ON SCHEMA frontier TO trapline_worker;
GRANT USAGE ON SCHEMA frontier TO trapline_tenant;

GRANT USAGE ON SCHEMA knowledge TO trapline_worker;
GRANT USAGE ON SCHEMA knowledge TO trapline_tenant;

GRANT USAGE ON SCHEMA lexicon TO trapline_worker;
GRANT USAGE ON SCHEMA lexicon TO trapline_tenant;

GRANT USAGE ON SCHEMA measure TO trapline_worker;
GRANT USAGE ON SCHEMA measure TO trapline_tenant;

GRANT USAGE ON SCHEMA nuq TO trapline_worker;
GRANT USAGE ON SCHEMA nuq TO trapline_tenant;

GRANT USAGE ON SCHEMA queue TO trapline_worker;
GRANT USAGE ON SCHEMA queue TO trapline_tenant;

GRANT USAGE ON SCHEMA rag TO trapline_worker;
GRANT USAGE ON SCHEMA rag TO trapline_tenant;

GRANT USAGE ON SCHEMA store TO trapline_worker;
GRANT USAGE ON SCHEMA store TO trapline_tenant;

GRANT USAGE ON SCHEMA tenancy TO trapline_worker;
GRANT USAGE ON SCHEMA tenancy TO trapline_tenant;

GRANT USAGE ON SCHEMA unobtanium TO trapline_worker;
GRANT USAGE ON SCHEMA unobtanium TO trapline_tenant;

GRANT USAGE ON SCHEMA webhook TO trapline_worker;
GRANT USAGE ON SCHEMA webhook TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.mimetype TO trapline_worker;
GRANT SELECT ON TABLE archive.mimetype TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.host TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.host TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.url TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.url TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.task TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.task TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.version TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.version TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE deliver.endpoint TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE deliver.endpoint TO trapline_worker;

REVOKE ALL ON FUNCTION tenancy.isolate(target regclass, predicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION tenancy.share(target regclass) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.application TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.application TO trapline_worker;

GRANT SELECT ON TABLE app.applications TO trapline_worker;
GRANT SELECT ON TABLE app.applications TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.file_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.redirect_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.request_default TO trapline_worker;

GRANT SELECT ON TABLE archive.visit_day TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit_day TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE archive.visit_default TO trapline_worker;

GRANT USAGE ON SEQUENCE archive.visit_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE archive.visit_id_seq TO trapline_tenant;

GRANT SELECT ON TABLE bee.domains TO trapline_worker;
GRANT SELECT ON TABLE bee.domains TO trapline_tenant;

GRANT SELECT ON TABLE queue.done TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.done TO trapline_worker;

GRANT SELECT ON TABLE bee.jobs TO trapline_worker;
GRANT SELECT ON TABLE bee.jobs TO trapline_tenant;

GRANT SELECT ON TABLE tenancy.organisation TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.organisation TO trapline_worker;

GRANT UPDATE(name) ON TABLE tenancy.organisation TO trapline_tenant;

GRANT UPDATE(updated_at) ON TABLE tenancy.organisation TO trapline_tenant;

GRANT SELECT ON TABLE bee.organisations TO trapline_worker;
GRANT SELECT ON TABLE bee.organisations TO trapline_tenant;

GRANT SELECT ON TABLE bee.pages TO trapline_worker;
GRANT SELECT ON TABLE bee.pages TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.agent TO trapline_worker;
GRANT SELECT ON TABLE queue.agent TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.lane TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.lane TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.lease TO trapline_worker;
GRANT SELECT ON TABLE queue.lease TO trapline_tenant;

GRANT SELECT ON TABLE queue.leased TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.leased TO trapline_worker;

GRANT SELECT ON TABLE queue.quota TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.quota TO trapline_worker;

GRANT USAGE ON SEQUENCE queue.task_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.task_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.ready TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.ready TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.waiting TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.waiting TO trapline_worker;

GRANT SELECT ON TABLE queue.place TO trapline_worker;
GRANT SELECT ON TABLE queue.place TO trapline_tenant;

GRANT SELECT ON TABLE bee.tasks TO trapline_worker;
GRANT SELECT ON TABLE bee.tasks TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.member TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.member TO trapline_worker;

GRANT SELECT ON TABLE bee.users TO trapline_worker;
GRANT SELECT ON TABLE bee.users TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE deliver.delivery TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE deliver.delivery TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE deliver.inbox TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE deliver.inbox TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.candidate TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.candidate TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE frontier.robots TO trapline_worker;

GRANT SELECT ON TABLE frontier.url_text TO trapline_worker;
GRANT SELECT ON TABLE frontier.url_text TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.chunk TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.chunk TO trapline_worker;

GRANT USAGE ON SEQUENCE knowledge.chunk_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE knowledge.chunk_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.entry TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.entry TO trapline_worker;

GRANT USAGE ON SEQUENCE knowledge.entry_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE knowledge.entry_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.generation TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.generation TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.intake TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.intake TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.mirror TO trapline_worker;
GRANT SELECT ON TABLE knowledge.mirror TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.mirror_change TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.mirror_change TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.model TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.model TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.posting TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.posting TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.segment TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.segment TO trapline_worker;

GRANT USAGE ON SEQUENCE knowledge.segment_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE knowledge.segment_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.source TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.source TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.tally TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.tally TO trapline_worker;

GRANT USAGE ON SEQUENCE knowledge.tally_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE knowledge.tally_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.vector TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE knowledge.vector TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.content_hash TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.content_hash TO trapline_worker;

GRANT SELECT ON TABLE lexicon.content_hash TO trapline_worker;
GRANT SELECT ON TABLE lexicon.content_hash TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.schedule TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.schedule TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.site TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.site TO trapline_worker;

GRANT SELECT ON TABLE lexicon.crawl_job TO trapline_worker;
GRANT SELECT ON TABLE lexicon.crawl_job TO trapline_tenant;

GRANT SELECT,INSERT ON TABLE queue.job_log TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job_log TO trapline_worker;

GRANT SELECT ON TABLE lexicon.crawl_log TO trapline_worker;
GRANT SELECT ON TABLE lexicon.crawl_log TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.likeness TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.likeness TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.page TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.page TO trapline_worker;

GRANT SELECT ON TABLE lexicon.crawled_page TO trapline_worker;
GRANT SELECT ON TABLE lexicon.crawled_page TO trapline_tenant;

GRANT SELECT ON TABLE lexicon.website TO trapline_worker;
GRANT SELECT ON TABLE lexicon.website TO trapline_tenant;

GRANT SELECT ON TABLE measure.job_time TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.job_time TO trapline_worker;

GRANT SELECT ON TABLE measure.operation TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.operation TO trapline_worker;

GRANT SELECT ON TABLE measure.operation_day TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.operation_day TO trapline_worker;

GRANT SELECT ON TABLE measure.operation_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.operation_default TO trapline_worker;

GRANT USAGE ON SEQUENCE measure.operation_id_seq TO trapline_worker;

GRANT SELECT ON TABLE measure.request TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.request TO trapline_worker;

GRANT SELECT ON TABLE measure.request_day TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.request_day TO trapline_worker;

GRANT SELECT ON TABLE measure.request_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE measure.request_default TO trapline_worker;

GRANT USAGE ON SEQUENCE measure.request_id_seq TO trapline_worker;

GRANT SELECT ON TABLE nuq.group_crawl TO trapline_worker;
GRANT SELECT ON TABLE nuq.group_crawl TO trapline_tenant;

GRANT SELECT ON TABLE nuq.queue_crawl_finished TO trapline_worker;
GRANT SELECT ON TABLE nuq.queue_crawl_finished TO trapline_tenant;

GRANT SELECT ON TABLE nuq.queue_scrape TO trapline_worker;
GRANT SELECT ON TABLE nuq.queue_scrape TO trapline_tenant;

GRANT SELECT ON TABLE nuq.queue_scrape_backlog TO trapline_worker;
GRANT SELECT ON TABLE nuq.queue_scrape_backlog TO trapline_tenant;

GRANT USAGE ON SEQUENCE queue.agent_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.agent_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.consumer TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.dead_letter TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.dead_letter TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.duty TO trapline_worker;
GRANT SELECT ON TABLE queue.duty TO trapline_tenant;

GRANT SELECT,INSERT ON TABLE queue.event TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.event TO trapline_worker;

GRANT USAGE ON SEQUENCE queue.event_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.event_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.gate TO trapline_worker;
GRANT SELECT ON TABLE queue.gate TO trapline_tenant;

GRANT USAGE ON SEQUENCE queue.gate_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.gate_id_seq TO trapline_tenant;

GRANT SELECT ON TABLE queue.job_log_day TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job_log_day TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job_log_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job_log_default TO trapline_worker;

GRANT USAGE ON SEQUENCE queue.job_log_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.job_log_id_seq TO trapline_tenant;

GRANT SELECT,INSERT ON TABLE queue.job_tally TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.job_tally TO trapline_worker;

GRANT USAGE ON SEQUENCE queue.job_tally_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.job_tally_id_seq TO trapline_tenant;

GRANT USAGE ON SEQUENCE queue.lane_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.lane_id_seq TO trapline_tenant;

GRANT USAGE ON SEQUENCE queue.lease_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.lease_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.overflow TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.overflow TO trapline_worker;

GRANT SELECT ON TABLE queue.past_job TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.past_job TO trapline_worker;

GRANT SELECT ON TABLE queue.past_job_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.past_job_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.schedule_run TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.schedule_run TO trapline_worker;

GRANT USAGE ON SEQUENCE queue.schedule_run_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.schedule_run_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.statistic TO trapline_worker;
GRANT SELECT ON TABLE queue.statistic TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.statistic_day TO trapline_worker;
GRANT SELECT ON TABLE queue.statistic_day TO trapline_tenant;

GRANT USAGE ON SEQUENCE queue.statistic_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE queue.statistic_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.unique_key TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE queue.unique_key TO trapline_worker;

GRANT SELECT ON TABLE rag.knowledge_sources TO trapline_worker;
GRANT SELECT ON TABLE rag.knowledge_sources TO trapline_tenant;

GRANT SELECT ON TABLE rag.processing_jobs TO trapline_worker;
GRANT SELECT ON TABLE rag.processing_jobs TO trapline_tenant;

GRANT SELECT ON TABLE store.blob TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.blob TO trapline_worker;

GRANT SELECT ON TABLE store.blob_use TO trapline_worker;
GRANT SELECT ON TABLE store.blob_use TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.change TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.change TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.duplicate_group TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.duplicate_group TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.fingerprint TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.fingerprint TO trapline_worker;

GRANT SELECT ON TABLE store.fleeting TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.fleeting TO trapline_worker;

GRANT SELECT ON TABLE store.fleeting_default TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.fleeting_default TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.sighting TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.sighting TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.site_config TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.site_config TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.snapshot TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.snapshot TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.sweep TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE store.sweep TO trapline_worker;

GRANT USAGE ON SEQUENCE store.version_id_seq TO trapline_worker;
GRANT USAGE ON SEQUENCE store.version_id_seq TO trapline_tenant;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.api_key TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.api_key TO trapline_worker;

GRANT SELECT,INSERT ON TABLE tenancy.audit_entry TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.audit_entry TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.session TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.session TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.share_link TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.share_link TO trapline_worker;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.usage TO trapline_tenant;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE tenancy.usage TO trapline_worker;

GRANT SELECT ON TABLE unobtanium.agent TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.agent TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.crawl_candidate TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.crawl_candidate TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.crawl_log TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.crawl_log TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.file TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.file TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.file_text TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.file_text TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.mimetype TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.mimetype TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.redirect TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.redirect TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.request TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.request TO trapline_tenant;

GRANT SELECT ON TABLE unobtanium.url TO trapline_worker;
GRANT SELECT ON TABLE unobtanium.url TO trapline_tenant;

GRANT SELECT ON TABLE webhook.change_events TO trapline_worker;
GRANT SELECT ON TABLE webhook.change_events TO trapline_tenant;

GRANT SELECT ON TABLE webhook.crawl_sessions TO trapline_worker;
GRANT SELECT ON TABLE webhook.crawl_sessions TO trapline_tenant;

GRANT SELECT ON TABLE webhook.operation_metrics TO trapline_worker;
GRANT SELECT ON TABLE webhook.operation_metrics TO trapline_tenant;

GRANT SELECT ON TABLE webhook.request_metrics TO trapline_worker;
GRANT SELECT ON TABLE webhook.request_metrics TO trapline_tenant;
