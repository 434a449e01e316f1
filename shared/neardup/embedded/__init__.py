"""The whole stream in one process, as a library and behind `neardup dedup`, without a broker."""
