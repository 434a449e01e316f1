"""Worker processes: the Faust application, the offline passes and the format of log lines."""
