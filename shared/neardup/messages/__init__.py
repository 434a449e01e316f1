"""Message formats: one reader and one writer for each kind of record on the log."""
