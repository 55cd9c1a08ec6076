"""Named queries, and the typed functions that `make sql` makes of them."""
