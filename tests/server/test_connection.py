"""Socket options, the address to listen at, and the server's own failures."""

import socket

import pytest

from legato.config import Config, EngineSection, ServerSection
from legato.errors import LegatoError, UnknownModel
from legato.server.http_protocol import http_protocol, tune
from legato.server.run import listen, run, url_of
from legato.server.settings import ConnectionSettings, ServerSettings


def test_a_connection_is_tuned() -> None:
    with socket.socket() as connection:
        tune(connection, ConnectionSettings(unsent_bytes=4096, give_up_after=1.5, idle=7))
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        for name, value in (("TCP_NOTSENT_LOWAT", 4096), ("TCP_USER_TIMEOUT", 1500), ("TCP_KEEPIDLE", 7)):
            if hasattr(socket, name):
                assert connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value


def test_options_that_a_platform_lacks_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TCP_NOTSENT_LOWAT", "TCP_USER_TIMEOUT", "TCP_KEEPIDLE"):
        monkeypatch.delattr(socket, name, raising=False)
    with socket.socket() as connection:
        tune(connection, ConnectionSettings())
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_settings_belong_to_the_class_that_was_asked_for() -> None:
    small, other = http_protocol(ConnectionSettings(buffer_bytes=1)), http_protocol(ConnectionSettings())
    assert (small.settings.buffer_bytes, other.settings.buffer_bytes) == (1, 8192)


def test_a_taken_port_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LegatoError, match=f"Port {port} is already in use"):
            run(Config(server=ServerSection(port=port)))


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70000), ("no-such-host.invalid", 0), ("192.0.2.1", 0)])
def test_addresses_that_cannot_be(host: str, port: int) -> None:
    with pytest.raises(LegatoError, match=r"^(There is no|This machine has no)"):
        listen(host, port)


def test_an_unknown_engine_is_refused_before_anything_starts() -> None:
    with pytest.raises(UnknownModel, match="hibari"):
        run(Config(engine=EngineSection(name="nobody")))


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("::1", "http://[::1]:80")],
)
def test_the_url_can_be_used(host: str, url: str) -> None:
    assert url_of(host, 80) == url


def test_the_body_limit_lets_the_longest_text_through() -> None:
    assert ServerSettings(max_text=100).max_body_bytes > 100 * len(r"\ud83d\ude00")
