-- All references to blobs, which protect them from garbage collection: a table that refers to blobs adds
-- a branch.
CREATE OR REPLACE VIEW store.blob_use WITH (security_invoker = true) AS
SELECT v.sha256 FROM store.version v WHERE v.sha256 IS NOT NULL
UNION ALL
SELECT f.sha256 FROM archive.file f WHERE f.sha256 IS NOT NULL
UNION ALL
SELECT s.sha256 FROM knowledge.source s WHERE s.sha256 IS NOT NULL
UNION ALL
SELECT i.sha256 FROM deliver.inbox i WHERE i.sha256 IS NOT NULL;

GRANT SELECT ON store.blob_use TO trapline_worker, trapline_tenant;
