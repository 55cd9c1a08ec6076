ALTER TABLE queue.job ALTER COLUMN options SET STATISTICS -1,
    ALTER COLUMN variables SET STATISTICS -1, ALTER COLUMN metadata SET STATISTICS -1;
ALTER TABLE queue.event ALTER COLUMN data SET STATISTICS -1;
ALTER TABLE queue.dead_letter ALTER COLUMN error SET STATISTICS -1;
ALTER TABLE queue.done ALTER COLUMN result SET STATISTICS -1, ALTER COLUMN error SET STATISTICS -1;
ALTER TABLE queue.task ALTER COLUMN payload SET STATISTICS -1;
DROP TABLE store.fleeting, archive.visit_day, queue.statistic_day, queue.job_log_day;
