"""The HTTP server: thin adapters between the wire formats and the runtime. Needs the extra `serve`."""
