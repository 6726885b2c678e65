"""What can be set about a server."""

from dataclasses import dataclass

from legato.runtime.request import MAX_TEXT


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How requests are treated.

    Attributes:
        max_text: characters of one request's input at most.
        cors_origins: origins whose pages may call this server from a browser; none by default.
    """

    max_text: int = MAX_TEXT
    cors_origins: tuple[str, ...] = ()

    @property
    def max_body_bytes(self) -> int:
        """A body above this cannot hold an acceptable text: JSON writes a character in 12 bytes at most."""
        return 12 * self.max_text + 16384


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How each TCP connection is treated. Seconds and bytes; options that a platform lacks are skipped.

    Attributes:
        buffer_bytes: unsent bytes in this process above which a response waits for its reader.
        unsent_bytes: unsent bytes in the kernel (TCP_NOTSENT_LOWAT) above which it takes no more.
        give_up_after: a connection whose peer takes nothing for so long is ended (TCP_USER_TIMEOUT). It also ends
            players that are paused for longer.
        idle: silence after which the peer is asked whether it is still there (keepalive).
        interval: between two such questions.
        questions: unanswered ones after which the connection is ended.
    """

    buffer_bytes: int = 8192
    unsent_bytes: int = 8192
    give_up_after: float = 30.0
    idle: int = 5
    interval: int = 2
    questions: int = 2
