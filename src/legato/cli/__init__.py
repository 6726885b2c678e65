"""The command `legato`: one file per subcommand."""
