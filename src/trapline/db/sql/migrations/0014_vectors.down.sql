DROP TABLE knowledge.vector, knowledge.generation, knowledge.model;
DROP FUNCTION knowledge.host_of(text);
