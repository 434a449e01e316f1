"""The featurizer service: a process pool that turns pages into registrations and probes."""
