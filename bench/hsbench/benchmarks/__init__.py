"""One file per benchmark: a line of documentation and `run(settings, report)`."""
