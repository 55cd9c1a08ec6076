-- Names of the numbers that the functions of the queue compare with: see README.md.

-- The outcome of an attempt (`verdict` in the types), as TaskOutcome in trapline.queue.retry_policy. The
-- first four are also the status of a row of queue.done: the task has ended. After the others it runs again.
CREATE OR REPLACE FUNCTION queue.outcome_completed() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 0::smallint;
CREATE OR REPLACE FUNCTION queue.outcome_failed() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1::smallint;
CREATE OR REPLACE FUNCTION queue.outcome_skipped() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 2::smallint;
CREATE OR REPLACE FUNCTION queue.outcome_cancelled() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 3::smallint;
CREATE OR REPLACE FUNCTION queue.outcome_retry() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 4::smallint;
CREATE OR REPLACE FUNCTION queue.outcome_stalled() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 5::smallint;
CREATE OR REPLACE FUNCTION queue.outcome_released() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 6::smallint;

-- What a claimed task holds, as bits of queue.leased.slots: a slot of its gate, of its job, of its
-- organisation; a page of the organisation's daily quota. An inline task is run by its caller.
CREATE OR REPLACE FUNCTION queue.slot_gate() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1::smallint;
CREATE OR REPLACE FUNCTION queue.slot_job() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 2::smallint;
CREATE OR REPLACE FUNCTION queue.slot_organisation() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 4::smallint;
CREATE OR REPLACE FUNCTION queue.slot_inline() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 8::smallint;
CREATE OR REPLACE FUNCTION queue.slot_pages() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 16::smallint;

-- Where a task came from, as TaskSource in trapline.queue.tasks; 0 is submitted.
CREATE OR REPLACE FUNCTION queue.source_found() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 1::smallint;
CREATE OR REPLACE FUNCTION queue.source_sitemap() RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 2::smallint;
