"""One Faust application per service, for starting workers with the `faust` command."""
