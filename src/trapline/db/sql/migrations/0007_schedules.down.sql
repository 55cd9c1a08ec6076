DROP TABLE queue.schedule_run, queue.schedule;
