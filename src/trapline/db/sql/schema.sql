-- The whole schema, made by `make sql` from migrations/ and functions/: not edited.


