"""Building blocks shared by all tables: levels of sorted runs, lookups, key directories, counters and array pools."""
