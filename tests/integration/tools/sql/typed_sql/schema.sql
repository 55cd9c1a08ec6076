-- A schema that is as hard as a queue's.
CREATE SCHEMA queue;
CREATE TYPE queue.state AS ENUM ('queued', 'active', 'done');
CREATE TYPE queue.child AS (url text, hash bytea, depth int);
CREATE DOMAIN queue.priority AS smallint CHECK (VALUE > 0);
CREATE TABLE queue.job (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL,
    state queue.state NOT NULL DEFAULT 'queued',
    priority queue.priority NOT NULL DEFAULT 5,
    remaining bigint NOT NULL DEFAULT 0,
    options jsonb NOT NULL DEFAULT '{}',
    tags text[] NOT NULL DEFAULT '{}',
    retry_of uuid REFERENCES queue.job (id),
    finished_at timestamptz,
    done boolean NOT NULL GENERATED ALWAYS AS (remaining = 0) STORED
);
CREATE TABLE queue.ready (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid NOT NULL REFERENCES queue.job (id),
    url text NOT NULL UNIQUE,
    lane text
);
CREATE TABLE queue.leased (
    id bigint PRIMARY KEY,
    job_id uuid NOT NULL,
    url text NOT NULL,
    lease bigint NOT NULL,
    expires timestamptz NOT NULL
);
CREATE TABLE queue.event (
    job_id uuid NOT NULL, number bigint NOT NULL, at timestamptz NOT NULL, body jsonb
) PARTITION BY RANGE (at);
CREATE TABLE queue.event_all PARTITION OF queue.event DEFAULT;
CREATE VIEW queue.status AS
    SELECT j.id, j.state, r.url, count(*) OVER () AS n
    FROM queue.job j LEFT JOIN queue.ready r ON r.job_id = j.id;
CREATE FUNCTION queue.finish(ids bigint[], OUT task_id bigint, OUT job_id uuid)
    RETURNS SETOF record LANGUAGE sql AS 'SELECT id, job_id FROM queue.leased';
CREATE FUNCTION queue.bump(job uuid) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
