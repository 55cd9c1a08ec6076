-- The applications that knowledge sources belong to.

CREATE OR REPLACE VIEW app.applications WITH (security_invoker = true) AS
SELECT
    a.id,
    a.name,
    a.organisation_id,
    a.created_by AS user_id,
    a.created_at,
    a.updated_at
FROM knowledge.application a;
