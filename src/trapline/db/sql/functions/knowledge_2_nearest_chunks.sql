-- The p_most chunks nearest to a vector that match a filter, by a model's HNSW index. The iterative scan
-- continues until enough of them match or it has read p_scanned. The index expression contains the
-- model's dimension, so the statement is built here.
-- Sorting is off, because it would read every vector instead of the index. OFFSET 0 keeps the filter a
-- lookup of the one entry of each vector; as a join it would read all entries.
CREATE OR REPLACE FUNCTION knowledge.nearest_chunks(
    p_model_id integer,
    p_dimension integer,
    p_numbers real[],
    p_most integer,
    p_scanned integer,
    p_organisation_id uuid,
    p_sources uuid[],
    p_sites uuid[],
    p_applications uuid[],
    p_kinds text[],
    p_languages text[],
    p_types text[],
    p_hosts text[],
    p_not_hosts text[],
    p_path text,
    p_since timestamptz,
    p_until timestamptz
) RETURNS TABLE (chunk_id bigint, entry_id bigint, score real)
LANGUAGE plpgsql STABLE
SET enable_sort = off SET jit = off AS $$
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
$$;

-- The same among the chunks of listed entries: a list of ids needs no lookup for each vector.
CREATE OR REPLACE FUNCTION knowledge.nearest_chunks_in_entries(
    p_model_id integer,
    p_dimension integer,
    p_numbers real[],
    p_most integer,
    p_scanned integer,
    p_entry_ids bigint[]
) RETURNS TABLE (chunk_id bigint, score real)
LANGUAGE plpgsql STABLE
SET enable_sort = off SET jit = off AS $$
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
$$;
