-- trapline: no-transaction

-- Texts that were given lately, among all that is queued and done: progress of ingestion is asked for
-- again and again. The queue itself knows nothing of texts.
CREATE INDEX CONCURRENTLY IF NOT EXISTS task_text_idx ON queue.task (created_at)
WHERE kind IN ('file', 'index');
