-- Made again by the functions of whoever comes after.
DROP VIEW IF EXISTS store.blob_use;
DROP TABLE knowledge.intake;
DROP TABLE deliver.inbox;
DROP TABLE knowledge.tally;
