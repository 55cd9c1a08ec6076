DROP TABLE tenancy.usage;
