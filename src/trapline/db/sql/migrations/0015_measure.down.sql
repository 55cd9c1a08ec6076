DROP TABLE queue.past_job;
DROP TABLE measure.request_day, measure.operation_day, measure.job_time, measure.request,
measure.operation;
DROP SCHEMA measure;
