-- name: progress
SELECT
    COUNT(*) FILTER (WHERE status = 'completed') as completed,
    COUNT(*) FILTER (WHERE status = 'failed') as failed,
    COUNT(*) FILTER (WHERE status = 'processing') as processing,
    COUNT(*) FILTER (WHERE status = 'pending') as pending,
    COUNT(*) as total
FROM rag.processing_jobs
WHERE application_id = $1
  AND created_at > NOW() - INTERVAL '24 hours';
