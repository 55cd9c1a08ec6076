-- The queue goes with everything in it.
DROP SCHEMA queue CASCADE;
