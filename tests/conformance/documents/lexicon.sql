-- name: health
SELECT 1
