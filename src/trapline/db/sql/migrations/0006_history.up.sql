-- What became of sites and their pages: configs, changes, duplicates, and what trackers saw last.

CREATE TABLE store.site_config (
    site_id uuid NOT NULL REFERENCES store.site (id) ON DELETE CASCADE,
    number integer NOT NULL,
    organisation_id uuid NOT NULL,
    config jsonb NOT NULL,
    created_by text,
    note text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (site_id, number)
);

-- A page was seen to change: by a visit, by its absence from a whole crawl, or by someone who
-- watches it for us. Written with every visit that finds something, so without foreign keys.
CREATE TABLE store.change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    site_id uuid,
    page_id uuid,
    url_id bigint,
    status text NOT NULL CHECK (status IN ('new', 'same', 'changed', 'removed')),
    source text NOT NULL CHECK (source IN ('visit', 'sweep', 'changedetection')),
    detected_at timestamptz NOT NULL,
    -- The version that it led to, and the one before; the difference is computed when it is read.
    version_id bigint,
    previous_version_id bigint,
    job_id uuid,
    added_lines integer,
    removed_lines integer,
    added_words integer,
    removed_words integer,
    -- What a watcher reported, and what came of looking again.
    watch_id text,
    watch_url text,
    diff_summary text,
    snapshot_url text,
    -- SHA-256 of the report: one that is sent again is the same event.
    report bytea CHECK (length(report) = 32),
    rescrape_job_id uuid,
    rescrape_status text
        CHECK (rescrape_status IN ('queued', 'completed', 'failed', 'cancelled')),
    indexed_at timestamptz,
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((source = 'changedetection') = (watch_id IS NOT NULL AND watch_url IS NOT NULL)),
    CHECK ((source = 'changedetection') = (report IS NOT NULL)),
    CHECK (source = 'changedetection' OR (site_id IS NOT NULL AND page_id IS NOT NULL))
);

CREATE INDEX change_feed_idx ON store.change (organisation_id, id);
CREATE INDEX change_site_idx ON store.change (site_id, id) WHERE site_id IS NOT NULL;
CREATE INDEX change_page_idx ON store.change (page_id, id) WHERE page_id IS NOT NULL;
CREATE INDEX change_sweep_idx ON store.change (job_id, id) WHERE source = 'sweep';
CREATE INDEX change_detected_idx ON store.change (organisation_id, detected_at);
CREATE UNIQUE INDEX change_report_key ON store.change (organisation_id, report)
WHERE report IS NOT NULL;
CREATE INDEX change_rescrape_idx ON store.change (rescrape_job_id)
WHERE rescrape_job_id IS NOT NULL AND rescrape_status = 'queued';

-- Pages as visits saw them, until maintenance has counted them and looked for duplicates.
CREATE TABLE store.sighting (
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    page_id uuid NOT NULL,
    version_id bigint NOT NULL,
    seen_at timestamptz NOT NULL
);

-- Each content of a site once: who had it first, how often and when last it was seen.
CREATE TABLE store.content_hash (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    content_hash bytea NOT NULL CHECK (length(content_hash) = 32),
    -- The page may be gone by now.
    first_seen_page_id uuid NOT NULL,
    first_version_id bigint NOT NULL,
    occurrence_count bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    -- Of the page that had it first: short texts are duplicates only under one title.
    title text,
    words integer NOT NULL DEFAULT 0,
    -- The content that stands for all that are like it: itself, one that was there before, or
    -- null where there is too little text to tell.
    group_id bigint,
    similarity smallint CHECK (similarity BETWEEN 0 AND 100),
    UNIQUE (site_id, content_hash)
) WITH (fillfactor = 80);

CREATE INDEX content_hash_last_seen_idx ON store.content_hash (site_id, last_seen_at);
CREATE INDEX content_hash_count_idx ON store.content_hash (site_id, occurrence_count)
WHERE occurrence_count > 1;

-- The MinHash of a content that stands for a group. Its bands carry their site, so that one index
-- finds everything that may be alike, however many there are.
CREATE TABLE store.fingerprint (
    content_id bigint PRIMARY KEY REFERENCES store.content_hash (id) ON DELETE CASCADE,
    organisation_id uuid NOT NULL,
    algorithm smallint NOT NULL,
    signature bytea NOT NULL,
    bands bigint[] NOT NULL
);

CREATE INDEX fingerprint_bands_idx ON store.fingerprint USING gin (bands) WITH (fastupdate = off);

-- Which group a page's latest content belongs to. The first page of a group is its original.
CREATE TABLE store.likeness (
    page_id uuid PRIMARY KEY REFERENCES store.page (id) ON DELETE CASCADE,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    version_id bigint NOT NULL,
    content_id bigint NOT NULL,
    group_id bigint,
    similarity smallint,
    -- Someone decided; nothing that is found later changes it. Comes after those that were found.
    by_hand boolean NOT NULL DEFAULT false
);

CREATE INDEX likeness_group_idx ON store.likeness (site_id, group_id, by_hand, page_id)
WHERE group_id IS NOT NULL;

-- How many pages a group has, so that a list of groups reads those with several and nothing else.
CREATE TABLE store.duplicate_group (
    group_id bigint PRIMARY KEY REFERENCES store.content_hash (id) ON DELETE CASCADE,
    organisation_id uuid NOT NULL,
    site_id uuid NOT NULL,
    pages integer NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX duplicate_group_site_idx ON store.duplicate_group (site_id, group_id)
WHERE pages > 1;
CREATE INDEX duplicate_group_pages_idx ON store.duplicate_group (site_id, pages, group_id)
WHERE pages > 1;

CREATE FUNCTION store.move_pages(come bigint[], gone bigint[]) RETURNS void
LANGUAGE sql AS $$
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

CREATE FUNCTION store.count_pages() RETURNS trigger
LANGUAGE plpgsql AS $$
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

CREATE TRIGGER count_new_pages AFTER INSERT ON store.likeness
REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION store.count_pages();
CREATE TRIGGER count_moved_pages AFTER UPDATE ON store.likeness
REFERENCING OLD TABLE AS gone NEW TABLE AS come
FOR EACH STATEMENT EXECUTE FUNCTION store.count_pages();
CREATE TRIGGER count_gone_pages AFTER DELETE ON store.likeness
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION store.count_pages();

-- The last scrape of a URL for each tag, which the next one is compared with.
CREATE TABLE store.snapshot (
    organisation_id uuid NOT NULL,
    url_hash bytea NOT NULL CHECK (length(url_hash) = 32),
    tag text NOT NULL,
    scraped_at timestamptz NOT NULL,
    markdown text NOT NULL,
    extracted jsonb,
    gone boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organisation_id, url_hash, tag)
);

-- The last crawl that saw a whole site, for each way to crawl it: what the next one does not see
-- again has been removed.
CREATE TABLE store.sweep (
    site_id uuid NOT NULL,
    plan bytea NOT NULL CHECK (length(plan) = 32),
    organisation_id uuid NOT NULL,
    job_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    PRIMARY KEY (site_id, plan)
);

SELECT tenancy.isolate(t)
FROM unnest(ARRAY[
    'store.site_config', 'store.change', 'store.sighting', 'store.content_hash',
    'store.fingerprint', 'store.likeness', 'store.duplicate_group', 'store.snapshot',
    'store.sweep'
]::regclass[]) AS t;
