DROP TABLE tenancy.share_link;
DROP TABLE tenancy.audit_entry;
DROP TABLE tenancy.session;
