"""Sources, chunks, embeddings, the keyword index, search.

In: Documents and files. Out: ranked passages with the reason for their rank.
Owns the schema `knowledge`: application, source, generation, entry, chunk, segment, posting, model,
vector, mirror, mirror_change, tally, intake.
"""
