DROP INDEX tenancy.member_email_key;
-- An address was unique in the whole database; of several members the first one stays.
DELETE FROM tenancy.member AS m USING tenancy.member AS e
WHERE lower(m.email) = lower(e.email) AND (m.created_at, m.id) > (e.created_at, e.id);
CREATE UNIQUE INDEX member_email_key ON tenancy.member (lower(email));

ALTER TABLE deliver.delivery DROP CONSTRAINT delivery_endpoint_id_fkey;
ALTER TABLE deliver.delivery ADD FOREIGN KEY (endpoint_id) REFERENCES deliver.endpoint (id) ON DELETE CASCADE;
ALTER TABLE queue.schedule_run DROP CONSTRAINT schedule_run_schedule_id_fkey;
ALTER TABLE queue.schedule_run ADD FOREIGN KEY (schedule_id) REFERENCES queue.schedule (id) ON DELETE CASCADE;
ALTER TABLE queue.schedule DROP CONSTRAINT schedule_site_id_fkey;
ALTER TABLE queue.schedule DROP CONSTRAINT schedule_application_id_fkey;
ALTER TABLE knowledge.intake DROP CONSTRAINT intake_source_id_fkey;
ALTER TABLE knowledge.intake ADD FOREIGN KEY (source_id) REFERENCES knowledge.source (id) ON DELETE CASCADE;
ALTER TABLE knowledge.entry DROP CONSTRAINT entry_source_id_fkey;
ALTER TABLE knowledge.entry ADD FOREIGN KEY (source_id) REFERENCES knowledge.source (id) ON DELETE CASCADE;
ALTER TABLE knowledge.generation DROP CONSTRAINT generation_model_id_fkey;
ALTER TABLE knowledge.generation ADD FOREIGN KEY (model_id) REFERENCES knowledge.model (id) ON DELETE CASCADE;
ALTER TABLE knowledge.generation DROP CONSTRAINT generation_source_id_fkey;
ALTER TABLE knowledge.generation ADD FOREIGN KEY (source_id) REFERENCES knowledge.source (id) ON DELETE CASCADE;
ALTER TABLE knowledge.source DROP CONSTRAINT source_site_id_fkey;
ALTER TABLE knowledge.source DROP CONSTRAINT source_application_id_fkey;
ALTER TABLE knowledge.source ADD FOREIGN KEY (application_id)
REFERENCES knowledge.application (id) ON DELETE CASCADE;
ALTER TABLE store.sweep DROP CONSTRAINT sweep_site_id_fkey;
ALTER TABLE store.site_config DROP CONSTRAINT site_config_site_id_fkey;
ALTER TABLE store.site_config ADD FOREIGN KEY (site_id) REFERENCES store.site (id) ON DELETE CASCADE;
ALTER TABLE store.page DROP CONSTRAINT page_site_id_fkey;
ALTER TABLE store.page ADD FOREIGN KEY (site_id) REFERENCES store.site (id) ON DELETE CASCADE;

ALTER TABLE store.site DROP CONSTRAINT site_owner_key;
ALTER TABLE knowledge.application DROP CONSTRAINT application_owner_key;
ALTER TABLE knowledge.source DROP CONSTRAINT source_owner_key;
ALTER TABLE knowledge.model DROP CONSTRAINT model_owner_key;
ALTER TABLE queue.schedule DROP CONSTRAINT schedule_owner_key;
ALTER TABLE deliver.endpoint DROP CONSTRAINT endpoint_owner_key;
