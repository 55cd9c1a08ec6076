"""Texts to vectors: one interface, a light model that is always there, better ones by setting."""
