DROP TABLE store.sweep, store.snapshot, store.likeness, store.duplicate_group, store.fingerprint,
    store.content_hash, store.sighting, store.change, store.site_config;
DROP FUNCTION store.count_pages(), store.move_pages(bigint[], bigint[]);
