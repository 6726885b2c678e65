"""uvicorn's HTTP protocol with small buffers and quick notice of vanished clients.

With the default buffers a client that does not read makes the server hold megabytes (a minute and more of speech)
before `send` waits. Here it waits after about 160 KB, most of which lies in the client's own receive buffer.
"""

import asyncio
import socket
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from legato.errors import InvalidRequest
from legato.server.settings import ConnectionSettings
from legato.wire import openai


class SpeechHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 for audio that is sent while it is made."""

    settings: ClassVar[ConnectionSettings] = ConnectionSettings()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Set the buffers and the socket options, then serve."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self.settings.buffer_bytes)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            tune(connection, self.settings)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP at all in the shape of every other error."""
        error = InvalidRequest(msg)
        body = openai.to_json(openai.error_body(error))
        head = (
            "HTTP/1.1 400 Bad Request\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()


def http_protocol(settings: ConnectionSettings) -> type[SpeechHttpProtocol]:
    """Return the protocol class for these settings; uvicorn makes the instances."""

    class Configured(SpeechHttpProtocol):
        """The protocol with its settings bound."""

    Configured.settings = settings
    return Configured


def tune(connection: Any, settings: ConnectionSettings) -> None:
    """Set the TCP options on a socket, or on what an event loop gives for one."""
    options = [
        (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
        (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
        (socket.IPPROTO_TCP, "TCP_NOTSENT_LOWAT", settings.unsent_bytes),
        (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", round(settings.give_up_after * 1000)),
        (socket.IPPROTO_TCP, "TCP_KEEPIDLE", settings.idle),
        (socket.IPPROTO_TCP, "TCP_KEEPINTVL", settings.interval),
        (socket.IPPROTO_TCP, "TCP_KEEPCNT", settings.questions),
    ]
    for level, name, value in options:
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(level, option, value)
