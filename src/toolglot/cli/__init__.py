"""The ``toolglot`` command, one module per subcommand."""
