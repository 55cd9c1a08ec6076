DROP TABLE knowledge.intake;
DROP TABLE deliver.inbox;
DROP TABLE knowledge.tally;
