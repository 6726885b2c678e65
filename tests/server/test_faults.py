"""What happens when the engine breaks, the client leaves, or the client does not read."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable

import httpx
import pytest
from starlette.types import Message

from legato.core.engine import EngineInfo
from legato.errors import VoiceFileError
from legato.runtime.service import SpeechService
from legato.server.app import create_app
from tests.server.live import WAIT, FaultyEngine, Live, serve

SPEECH = "/v1/audio/speech"


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must happen."""
    for _ in range(int(WAIT / 0.01)):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def request(live: Live, receive_bytes: int | None = None, **fields: object) -> socket.socket:
    """Send a request on a socket of its own."""
    body = json.dumps(fields).encode()
    client = socket.socket()
    if receive_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(WAIT)
    client.connect(("127.0.0.1", live.port))
    head = f"POST {SPEECH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


def read_all(client: socket.socket) -> bytes:
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


def test_a_failure_before_the_first_byte_is_an_error_response(broken: Live) -> None:
    for fields in ({}, {"stream": False}, {"stream_format": "sse"}):
        response = httpx.post(broken.url + SPEECH, json={"input": "break 0", **fields}, timeout=WAIT)
        assert response.status_code == 500
        error = response.json()["error"]
        assert (error["type"], error["code"], error["param"]) == ("server_error", "engine_failed", None)
        assert "break" not in response.text


def test_a_failure_breaks_a_whole_reply_before_it_starts(broken: Live) -> None:
    response = httpx.post(broken.url + SPEECH, json={"input": "break 3", "stream": False}, timeout=WAIT)
    assert response.status_code == 500


def test_a_failure_after_the_first_byte_breaks_the_response_off(
    broken: Live, capfd: pytest.CaptureFixture[str]
) -> None:
    with request(broken, input="break 3", response_format="pcm") as client:
        data = read_all(client)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding: chunked" in head.lower()
    assert len(body) > 3 * 4800 * 2  # what was good is sent
    assert body.endswith(b"\r\n")
    assert not body.endswith(b"\r\n0\r\n\r\n")
    url = broken.url + SPEECH
    with (
        pytest.raises(httpx.RemoteProtocolError),
        httpx.stream("POST", url, json={"input": "break 3"}, timeout=WAIT) as response,
    ):
        response.read()
    output = capfd.readouterr()
    assert "break 3" not in output.out + output.err


def test_a_failure_in_an_event_stream_is_an_event_and_a_break(broken: Live) -> None:
    with request(broken, input="break 3", stream_format="sse") as client:
        data = read_all(client)
    assert not data.endswith(b"\r\n0\r\n\r\n")
    events = [json.loads(line.removeprefix(b"data: ")) for line in data.splitlines() if line.startswith(b"data: ")]
    assert events[-1]["type"] == "speech.audio.error"
    assert events[-1]["error"]["code"] == "engine_failed"
    assert events[-2]["type"] == "speech.audio.delta"


def test_no_text_is_logged(broken: Live, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for text in ("marmalade", "break 0. marmalade", "marmalade. break 2"):
        for fields in ({}, {"speed": "marmalade"}, {"marmalade": 1}):
            with request(broken, input=text, **fields) as client:
                assert b"x-request-id" in client.recv(65536)
    until(lambda: caplog.text.count("characters, ") == 3)
    assert "marmalade" not in caplog.text


def test_an_unexpected_error_has_the_shape_of_all_others(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SpeechService):
        @property
        def info(self) -> EngineInfo:
            raise RuntimeError("marmalade")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(Broken(FaultyEngine().load)))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post(SPEECH, json={"input": "marmalade"})

    response = asyncio.run(ask())
    assert response.status_code == 500
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("server_error", "internal_error")
    assert response.headers["x-request-id"] in error["message"]
    assert "RuntimeError at " in caplog.text
    assert "marmalade" not in caplog.text + response.text


def test_an_error_that_the_framework_finds_has_it_too() -> None:
    app = create_app(SpeechService(FaultyEngine().load))

    @app.get("/counted")
    async def counted(count: int) -> int:
        return count

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            return await client.get("/counted?count=marmalade")

    response = asyncio.run(ask())
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "count")
    assert "marmalade" not in response.text


def test_a_server_that_stops_says_so_or_breaks_off(faulty: FaultyEngine) -> None:
    """Uvicorn cancels what is still running when its grace period is over."""

    async def ask(stream: bool) -> list[Message]:
        sent: list[Message] = []
        body = json.dumps({"input": "good 40", "stream": stream}).encode()
        receive = asyncio.Queue[Message]()
        receive.put_nowait({"type": "http.request", "body": body, "more_body": False})

        async def send(message: Message) -> None:
            sent.append(message)

        app = create_app(service)
        scope = {
            "type": "http",
            "method": "POST",
            "path": SPEECH,
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        task = asyncio.create_task(app(scope, receive.get, send))
        await asyncio.to_thread(until, lambda: len(sent) >= 2 if stream else faulty.entered >= 4)
        task.cancel()
        await task
        return sent

    async def both() -> None:
        async with service:
            await service.ready()
            faulty.entered, faulty.gate = 0, threading.Semaphore(3)
            begun = await ask(True)
            assert all(message.get("more_body", True) for message in begun)
            faulty.gate.release(100)
            faulty.entered, faulty.gate = 0, threading.Semaphore(3)
            refused = await ask(False)
            faulty.gate.release(100)
            assert refused[0]["status"] == 503
            assert b"stopping" in refused[1]["body"]

    service = SpeechService(faulty.load)
    asyncio.run(both())


def test_a_broken_stream_leaves_the_server_well(broken: Live) -> None:
    good = httpx.post(broken.url + SPEECH, json={"input": "good 3"}, timeout=WAIT).content
    with request(broken, input="break 2") as client:
        read_all(client)
    assert httpx.post(broken.url + SPEECH, json={"input": "good 3"}, timeout=WAIT).content == good
    until(lambda: broken.service.active == 0)


@pytest.mark.parametrize("fields", [{}, {"stream_format": "sse"}, {"stream": False}])
def test_the_engine_stops_within_a_step_of_the_client_leaving(
    broken: Live, faulty: FaultyEngine, fields: dict[str, object]
) -> None:
    faulty.entered = 0
    faulty.gate = threading.Semaphore(0)
    with request(broken, input="good 40", **fields) as client:
        faulty.gate.release(3)
        if "stream" not in fields:
            assert client.recv(65536)
        until(lambda: faulty.entered == 4)  # the fourth step is being made
        assert broken.service.active == 1
    until(lambda: broken.service.active == 0)
    faulty.gate.release(100)
    assert faulty.closed_early.wait(WAIT)
    assert faulty.entered == 4


def test_leaving_before_the_first_sound_stops_it_too(broken: Live, faulty: FaultyEngine) -> None:
    faulty.entered = 0
    faulty.gate = threading.Semaphore(0)
    with request(broken, input="good 40"):
        until(lambda: faulty.entered == 1)
    until(lambda: broken.service.active == 0)
    faulty.gate.release(100)
    assert faulty.closed_early.wait(WAIT)
    assert faulty.entered == 1


def test_leaving_in_the_middle_of_the_request(broken: Live, faulty: FaultyEngine) -> None:
    with socket.create_connection(("127.0.0.1", broken.port)) as client:
        client.sendall(f"POST {SPEECH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n".encode())
        client.sendall(b'content-length: 100\r\n\r\n{"input":')
    assert httpx.get(broken.url + "/health").status_code == 200


def test_a_client_that_does_not_read_is_made_to_wait(live: Live) -> None:
    before = live.service.steps
    sentence = "Nobody listens to this sentence, and so it need not be made before somebody does. "
    with request(live, receive_bytes=4096, input=sentence * 100) as client:
        until(lambda: live.service.steps > before + 5)
        still = 0
        while still < 50:  # the engine has stopped once it takes no step for a while
            steps = live.service.steps
            time.sleep(0.01)
            still = still + 1 if live.service.steps == steps else 0
        made = live.service.steps - before
        assert live.service.active == 1
        assert made < 60  # the whole text would take about 800
        for _ in range(40):
            client.recv(65536)
        until(lambda: live.service.steps > before + made)  # reading starts it again
    until(lambda: live.service.active == 0)


def test_what_is_not_http_is_told_so(broken: Live) -> None:
    with socket.create_connection(("127.0.0.1", broken.port), timeout=WAIT) as client:
        client.sendall(b"RIFF\x00\x01\r\n\r\n")
        head, _, body = read_all(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"]["code"] == "invalid_request"


def test_while_it_loads() -> None:
    loading = threading.Event()

    def load_slowly() -> object:
        assert loading.wait(WAIT)
        return FaultyEngine().load()

    with serve(load_slowly, wait_ready=False) as running:
        try:
            assert httpx.get(running.url + "/health").json() == {"status": "ok"}
            for method, path, body in (
                ("GET", "/ready", None),
                ("GET", "/v1/models", None),
                ("GET", "/v1/audio/voices", None),
                ("POST", SPEECH, {"input": "Hello."}),
            ):
                response = httpx.request(method, running.url + path, json=body)
                assert response.status_code == 503, path
                assert response.headers["retry-after"] == "1"
                assert response.json()["error"]["code"] == "not_ready"
            assert httpx.get(running.url + "/ready").json()["status"] == "loading"
        finally:
            loading.set()
        until(lambda: httpx.get(running.url + "/ready").status_code == 200)


def test_when_it_cannot_load() -> None:
    def load() -> object:
        raise VoiceFileError("The voice file is not there. Install it again.")

    with serve(load) as running:
        assert httpx.get(running.url + "/health").status_code == 200
        response = httpx.get(running.url + "/ready")
        assert response.status_code == 503
        assert response.json()["status"] == "failed"
        assert response.json()["error"]["message"] == "The voice file is not there. Install it again."
        response = httpx.post(running.url + SPEECH, json={"input": "Hello."})
        assert response.status_code == 500
        assert response.json()["error"]["code"] == "voice_file"
