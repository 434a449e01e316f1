"""One module a service, for those who start workers with the `faust` command."""
