-- Rows that refer to a row of an organisation carry the organisation in the foreign key, so that the
-- database refuses a reference to another organisation's row. Only references to small tables: a second
-- unique index on pages, texts or passages would slow down every crawl, and their children are written in
-- the same statement as they are.
--
-- Large tables are checked by a later migration, which blocks nobody. The others are small: their locks
-- are short.
-- squawk-ignore-file adding-foreign-key-constraint, ban-drop-constraint, constraint-missing-not-valid
-- squawk-ignore-file disallowed-unique-constraint, require-concurrent-index-creation
-- squawk-ignore-file require-concurrent-index-deletion
SET LOCAL lock_timeout = '1min';

ALTER TABLE store.site ADD CONSTRAINT site_owner_key UNIQUE (organisation_id, id);
ALTER TABLE knowledge.application ADD CONSTRAINT application_owner_key UNIQUE (organisation_id, id);
ALTER TABLE knowledge.source ADD CONSTRAINT source_owner_key UNIQUE (organisation_id, id);
ALTER TABLE knowledge.model ADD CONSTRAINT model_owner_key UNIQUE (organisation_id, id);
ALTER TABLE queue.schedule ADD CONSTRAINT schedule_owner_key UNIQUE (organisation_id, id);
ALTER TABLE deliver.endpoint ADD CONSTRAINT endpoint_owner_key UNIQUE (organisation_id, id);

-- What earlier versions let in: rows of one organisation that refer to a site of another, and sources
-- and schedules of sites and applications that are gone.
DELETE FROM store.page AS p USING store.site AS s
WHERE p.site_id = s.id AND p.organisation_id <> s.organisation_id;
DELETE FROM store.sweep AS w
WHERE NOT EXISTS (
    SELECT FROM store.site AS s WHERE s.id = w.site_id AND s.organisation_id = w.organisation_id
);
DELETE FROM knowledge.source AS k
WHERE k.site_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM store.site AS s WHERE s.id = k.site_id AND s.organisation_id = k.organisation_id
);
UPDATE knowledge.source AS k SET application_id = NULL
FROM knowledge.application AS a
WHERE k.application_id = a.id AND k.organisation_id <> a.organisation_id;
DELETE FROM queue.schedule AS q
WHERE (
    q.site_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM store.site AS s WHERE s.id = q.site_id AND s.organisation_id = q.organisation_id
    )
) OR (
    q.application_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM knowledge.application AS a
        WHERE a.id = q.application_id AND a.organisation_id = q.organisation_id
    )
);

ALTER TABLE store.page DROP CONSTRAINT page_site_id_fkey;
ALTER TABLE store.page ADD CONSTRAINT page_site_id_fkey FOREIGN KEY (organisation_id, site_id)
REFERENCES store.site (organisation_id, id) ON DELETE CASCADE NOT VALID;

ALTER TABLE store.site_config DROP CONSTRAINT site_config_site_id_fkey;
ALTER TABLE store.site_config ADD CONSTRAINT site_config_site_id_fkey FOREIGN KEY (organisation_id, site_id)
REFERENCES store.site (organisation_id, id) ON DELETE CASCADE;

ALTER TABLE store.sweep ADD CONSTRAINT sweep_site_id_fkey FOREIGN KEY (organisation_id, site_id)
REFERENCES store.site (organisation_id, id) ON DELETE CASCADE;

ALTER TABLE knowledge.source DROP CONSTRAINT source_application_id_fkey;
ALTER TABLE knowledge.source ADD CONSTRAINT source_application_id_fkey FOREIGN KEY (organisation_id, application_id)
REFERENCES knowledge.application (organisation_id, id) ON DELETE CASCADE;
ALTER TABLE knowledge.source ADD CONSTRAINT source_site_id_fkey FOREIGN KEY (organisation_id, site_id)
REFERENCES store.site (organisation_id, id) ON DELETE CASCADE;

ALTER TABLE knowledge.generation DROP CONSTRAINT generation_source_id_fkey;
ALTER TABLE knowledge.generation ADD CONSTRAINT generation_source_id_fkey FOREIGN KEY (organisation_id, source_id)
REFERENCES knowledge.source (organisation_id, id) ON DELETE CASCADE;
ALTER TABLE knowledge.generation DROP CONSTRAINT generation_model_id_fkey;
ALTER TABLE knowledge.generation ADD CONSTRAINT generation_model_id_fkey FOREIGN KEY (organisation_id, model_id)
REFERENCES knowledge.model (organisation_id, id) ON DELETE CASCADE;

ALTER TABLE knowledge.entry DROP CONSTRAINT entry_source_id_fkey;
ALTER TABLE knowledge.entry ADD CONSTRAINT entry_source_id_fkey FOREIGN KEY (organisation_id, source_id)
REFERENCES knowledge.source (organisation_id, id) ON DELETE CASCADE NOT VALID;

ALTER TABLE knowledge.intake DROP CONSTRAINT intake_source_id_fkey;
ALTER TABLE knowledge.intake ADD CONSTRAINT intake_source_id_fkey FOREIGN KEY (organisation_id, source_id)
REFERENCES knowledge.source (organisation_id, id) ON DELETE CASCADE;

ALTER TABLE queue.schedule ADD CONSTRAINT schedule_site_id_fkey FOREIGN KEY (organisation_id, site_id)
REFERENCES store.site (organisation_id, id) ON DELETE CASCADE;
ALTER TABLE queue.schedule ADD CONSTRAINT schedule_application_id_fkey FOREIGN KEY (organisation_id, application_id)
REFERENCES knowledge.application (organisation_id, id) ON DELETE CASCADE;
ALTER TABLE queue.schedule_run DROP CONSTRAINT schedule_run_schedule_id_fkey;
ALTER TABLE queue.schedule_run ADD CONSTRAINT schedule_run_schedule_id_fkey FOREIGN KEY (organisation_id, schedule_id)
REFERENCES queue.schedule (organisation_id, id) ON DELETE CASCADE;

ALTER TABLE deliver.delivery DROP CONSTRAINT delivery_endpoint_id_fkey;
ALTER TABLE deliver.delivery ADD CONSTRAINT delivery_endpoint_id_fkey FOREIGN KEY (organisation_id, endpoint_id)
REFERENCES deliver.endpoint (organisation_id, id) ON DELETE CASCADE NOT VALID;

-- An address is unique within its organisation: a refusal must not tell the members of another one.
DROP INDEX tenancy.member_email_key;
CREATE UNIQUE INDEX member_email_key ON tenancy.member (organisation_id, lower(email));
