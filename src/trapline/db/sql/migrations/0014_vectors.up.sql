-- Passages as vectors, and which model made those of each generation of a source.

-- One row for each model that an organisation uses: its id stands for both, so that an index over one
-- model's vectors holds one organisation's vectors and no others.
CREATE TABLE knowledge.model (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    name text NOT NULL,
    dimension integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    -- Tells weights apart that go by the same name.
    digest text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, name, dimension, digest)
);

-- What the passages of a source's generation were embedded with: all with the same.
CREATE TABLE knowledge.generation (
    source_id uuid NOT NULL REFERENCES knowledge.source (id) ON DELETE CASCADE,
    generation integer NOT NULL,
    organisation_id uuid NOT NULL,
    model_id integer NOT NULL REFERENCES knowledge.model (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source_id, generation)
);

CREATE INDEX generation_model_idx ON knowledge.generation (model_id);

-- Of length one, so that the inner product is the cosine. Models differ in dimension: the column has
-- none, and each model's index casts to its own (knowledge.build_vector_index).
CREATE TABLE knowledge.vector (
    chunk_id bigint PRIMARY KEY REFERENCES knowledge.chunk (id) ON DELETE CASCADE,
    organisation_id uuid NOT NULL,
    model_id integer NOT NULL,
    entry_id bigint NOT NULL,
    embedding halfvec NOT NULL
);

CREATE INDEX vector_model_idx ON knowledge.vector (model_id);
-- A vector is read with its row: 1,536 numbers are three thousand bytes.
ALTER TABLE knowledge.vector ALTER COLUMN embedding SET STORAGE PLAIN;

-- `example.com` of `https://example.com:8443/a`; empty for a file.
CREATE FUNCTION knowledge.host_of(uri text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(split_part(split_part(split_part(uri, '://', 2), '/', 1), ':', 1));

CREATE INDEX vector_entry_idx ON knowledge.vector (entry_id);

SELECT tenancy.isolate('knowledge.model');
SELECT tenancy.isolate('knowledge.generation');
SELECT tenancy.isolate('knowledge.vector');
