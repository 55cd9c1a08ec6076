DROP TRIGGER mirror_gone ON knowledge.vector;
DROP TRIGGER mirror_new ON knowledge.vector;
DROP FUNCTION knowledge.note_vectors();
DROP TABLE knowledge.mirror_change;
DROP TABLE knowledge.mirror;
