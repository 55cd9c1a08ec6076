DROP TRIGGER tally_status ON queue.job;
DROP TRIGGER tally_new ON queue.job;
DROP FUNCTION queue.tally_job();
DROP TABLE queue.job_tally;
