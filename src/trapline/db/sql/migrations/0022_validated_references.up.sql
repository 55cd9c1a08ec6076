-- Check the references that 0020 added to large tables: readers and writers go on meanwhile.
ALTER TABLE store.page VALIDATE CONSTRAINT page_site_id_fkey;
ALTER TABLE knowledge.entry VALIDATE CONSTRAINT entry_source_id_fkey;
ALTER TABLE deliver.delivery VALIDATE CONSTRAINT delivery_endpoint_id_fkey;
