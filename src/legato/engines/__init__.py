"""One file per engine. Nobody imports this package: the registry finds engines through entry points."""
