-- How many jobs there are, by the hour they were made in, their kind and status. Whoever changes a
-- job adds what changed; maintenance makes one row of it. So a count reads a few rows however many
-- jobs there are, and nobody waits for a shared counter.

CREATE TABLE queue.job_tally (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    jobs bigint NOT NULL,
    folded boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX job_tally_organisation_idx ON queue.job_tally (organisation_id, hour);
CREATE INDEX job_tally_unfolded_idx ON queue.job_tally (id) WHERE NOT folded;

CREATE FUNCTION queue.tally_job() RETURNS trigger
LANGUAGE plpgsql AS $$
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

CREATE TRIGGER tally_new AFTER INSERT OR DELETE ON queue.job
FOR EACH ROW EXECUTE FUNCTION queue.tally_job();
-- Every finished batch updates the row; the function runs only when the status is another one.
CREATE TRIGGER tally_status AFTER UPDATE OF status ON queue.job
FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION queue.tally_job();

SELECT tenancy.isolate('queue.job_tally');
REVOKE UPDATE, DELETE ON queue.job_tally FROM trapline_tenant;
GRANT USAGE ON SEQUENCE queue.job_tally_id_seq TO trapline_worker, trapline_tenant;
