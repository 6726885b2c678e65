"""The shells around `core`: the engine's thread, the asyncio service, the voices that are installed."""
