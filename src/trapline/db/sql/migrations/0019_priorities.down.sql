CREATE SEQUENCE queue.turn_number;
GRANT USAGE ON SEQUENCE queue.turn_number TO trapline_worker, trapline_tenant;
SELECT setval('queue.turn_number', (SELECT last_value FROM queue.task_id_seq));
ALTER TABLE queue.ready ALTER COLUMN turn SET DEFAULT nextval('queue.turn_number');
