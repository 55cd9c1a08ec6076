DROP INDEX knowledge.entry_page_idx, knowledge.entry_dated_idx, knowledge.entry_language_idx,
knowledge.entry_type_idx, knowledge.entry_path_idx, knowledge.entry_uri_idx;
DROP TABLE knowledge.vector, knowledge.generation, knowledge.model;
DROP FUNCTION knowledge.host_of(text);
