DROP TABLE knowledge.vector, knowledge.generation, knowledge.model;
