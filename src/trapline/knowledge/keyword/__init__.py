"""BM25 over immutable segments: texts to terms, terms to postings, postings to scores."""
