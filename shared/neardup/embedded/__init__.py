"""The whole stream in one process without a broker: the library and `neardup dedup`."""
