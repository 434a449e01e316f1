"""Worker processes: the Faust application, its recluster passes and its log format."""
