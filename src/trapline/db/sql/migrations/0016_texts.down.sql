-- trapline: no-transaction

DROP INDEX CONCURRENTLY IF EXISTS queue.task_text_idx;
