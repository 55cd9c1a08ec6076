-- Compatibility views have UUIDs where our ids are numbers: the number is the last twelve digits.
CREATE OR REPLACE FUNCTION queue.uuid_of(number bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ('00000000-0000-8000-8000-' || lpad(to_hex(number), 12, '0'))::uuid;

CREATE OR REPLACE FUNCTION queue.number_of(id uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ('x' || right(id::text, 12))::bit(48)::bigint;
