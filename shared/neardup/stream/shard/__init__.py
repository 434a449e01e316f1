"""The shard service: one slice of a table per partition, which answers probes and stores them."""
