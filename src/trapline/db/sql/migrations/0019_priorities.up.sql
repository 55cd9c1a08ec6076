-- One sequence numbers tasks and their turns: the turn of a first attempt is the id of its task, so
-- that a task found again with a better priority has its row found by the primary key.
SELECT setval('queue.task_id_seq', greatest(
    (SELECT last_value FROM queue.task_id_seq), (SELECT last_value FROM queue.turn_number)));
ALTER TABLE queue.ready ALTER COLUMN turn SET DEFAULT nextval('queue.task_id_seq');
-- squawk-ignore ban-drop-sequence
DROP SEQUENCE queue.turn_number;
