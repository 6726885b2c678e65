"""Bytes on the wire: one file per audio format, one per protocol. Pure: no I/O, no event loop, no clock."""
