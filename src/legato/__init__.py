"""Legato: a streaming speech engine and server.

    import legato

    for chunk in legato.speak("Hello there."):
        play(chunk.pcm)  # float32, mono, 24 kHz

The names below are the whole public API; docs/reference/library.md describes them.
"""

import logging
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from legato.errors import LegatoError

if TYPE_CHECKING:
    from legato.api import Speech, Voice, speak
    from legato.core.events import Audio

try:
    __version__ = version("legato-speech")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

logging.getLogger(__name__).addHandler(logging.NullHandler())  # who wants the log configures it

__all__ = ["Audio", "LegatoError", "Speech", "Voice", "__version__", "speak"]

_HOMES = {"speak": "legato.api", "Speech": "legato.api", "Voice": "legato.api", "Audio": "legato.core.events"}


def __getattr__(name: str) -> object:
    """Import the library on first use: `legato --version` and `import legato` stay instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'legato' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
