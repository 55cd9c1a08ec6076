"""Trains the main-content model on WCXB and measures it: pages, labels, vocabulary, network."""
