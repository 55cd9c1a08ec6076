-- A copy of the vectors in a vector database beside PostgreSQL, whose own rows remain what is true.

-- At most one row: where the copy is, and how far it has got.
CREATE TABLE knowledge.mirror (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    alone boolean NOT NULL DEFAULT true UNIQUE CHECK (alone),
    url text NOT NULL,
    -- Vectors up to this chunk have been copied; what changed since the copy began is noted below.
    copied_to bigint NOT NULL DEFAULT 0,
    whole_at timestamptz,
    tended_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Vectors that came or went since they were last copied. What is to be done with one is seen by
-- looking whether it is there, so that neither order nor repetition matters.
CREATE TABLE knowledge.mirror_change (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL,
    model_id integer NOT NULL,
    chunk_id bigint NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX mirror_change_model_idx ON knowledge.mirror_change (model_id);

CREATE FUNCTION knowledge.note_vectors() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO knowledge.mirror_change (organisation_id, model_id, chunk_id)
    SELECT v.organisation_id, v.model_id, v.chunk_id FROM moved AS v;
    RETURN NULL;
END
$$;

CREATE TRIGGER mirror_new AFTER INSERT ON knowledge.vector
REFERENCING NEW TABLE AS moved FOR EACH STATEMENT EXECUTE FUNCTION knowledge.note_vectors();
CREATE TRIGGER mirror_gone AFTER DELETE ON knowledge.vector
REFERENCING OLD TABLE AS moved FOR EACH STATEMENT EXECUTE FUNCTION knowledge.note_vectors();

-- They cost nothing until a mirror begins, which turns them on.
ALTER TABLE knowledge.vector DISABLE TRIGGER mirror_new;
ALTER TABLE knowledge.vector DISABLE TRIGGER mirror_gone;

SELECT tenancy.share('knowledge.mirror');
SELECT tenancy.isolate('knowledge.mirror_change');
