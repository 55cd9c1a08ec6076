DROP TABLE store.sweep, store.snapshot, store.likeness, store.fingerprint, store.content_hash,
    store.sighting, store.change, store.site_config;
