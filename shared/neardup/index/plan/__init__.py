"""The plan of an index: its tables, their permutations and slices, and the routing of keys to partitions."""
