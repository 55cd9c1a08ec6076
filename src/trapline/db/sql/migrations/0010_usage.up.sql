-- What organisations use, by day and API key: pages that were fetched, tokens of a language model.
CREATE TABLE tenancy.usage (
    organisation_id uuid NOT NULL REFERENCES tenancy.organisation (id) ON DELETE CASCADE,
    day date NOT NULL,
    -- The id of the API key that asked; empty where none was needed.
    api_key text NOT NULL DEFAULT '',
    pages bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (organisation_id, day, api_key)
) WITH (fillfactor = 50);

SELECT tenancy.isolate('tenancy.usage');
