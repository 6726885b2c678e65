"""POST /v1/audio/speech with the real voice: formats, streams, clients, and every way to ask wrongly."""

import base64
import io
import json
import wave
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest

from legato.server.settings import ServerSettings
from legato.wire.pcm import from_s16le
from tests.server.live import WAIT, FaultyEngine, Live, serve

SPEECH = "/v1/audio/speech"
TEXT = "Speech comes out while it is made. Here is another sentence."


def speak(client: httpx.Client, **fields: object) -> httpx.Response:
    return client.post(SPEECH, json={"input": TEXT, **fields})


def is_speech(data: bytes) -> bool:
    pcm = from_s16le(data)
    return 12000 < len(pcm) < 240000 and float(np.sqrt(np.mean(pcm**2))) > 0.01


def test_wav_stream(client: httpx.Client) -> None:
    response = speak(client)
    assert response.status_code == 200
    assert response.headers["content-type"] == "audio/wav"
    assert "content-length" not in response.headers
    assert response.headers["x-sample-rate"] == "24000"
    assert response.headers["x-channels"] == "1"
    assert response.headers["x-sample-format"] == "s16le"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-request-id"].startswith("req_")
    assert "server" not in response.headers
    assert response.content[4:8] == response.content[40:44] == b"\xff\xff\xff\xff"
    assert is_speech(response.content[44:])


def test_whole_wav_has_exact_sizes(client: httpx.Client) -> None:
    response = speak(client, stream=False)
    assert int(response.headers["content-length"]) == len(response.content)
    with wave.open(io.BytesIO(response.content)) as file:
        assert file.getparams()[:4] == (1, 2, 24000, (len(response.content) - 44) // 2)


def test_every_way_gives_the_same_samples(client: httpx.Client) -> None:
    whole = speak(client, seed=7, stream=False).content[44:]
    assert speak(client, seed=7).content[44:] == whole
    assert speak(client, seed=7, response_format="pcm").content == whole
    assert speak(client, seed=7, response_format="pcm", stream=False).content == whole
    assert speak(client, seed=8, response_format="pcm").content != whole


def test_pcm_says_its_rate(client: httpx.Client) -> None:
    response = speak(client, response_format="pcm")
    assert response.headers["content-type"] == "audio/pcm;rate=24000;channels=1"
    assert is_speech(response.content)


def test_the_first_body_bytes_carry_audio(client: httpx.Client) -> None:
    with client.stream("POST", SPEECH, json={"input": TEXT}) as response:
        assert len(next(response.iter_raw())) > 44


@pytest.mark.parametrize("format_", ["wav", "pcm"])
def test_events(client: httpx.Client, format_: str) -> None:
    response = speak(client, response_format=format_, stream_format="sse", seed=3)
    assert response.headers["content-type"] == "text/event-stream"
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert events[-1]["type"] == "speech.audio.done"
    audio = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert audio == speak(client, response_format=format_, seed=3).content
    samples = (len(audio) - (44 if format_ == "wav" else 0)) // 2
    assert events[-1]["usage"]["characters"] == len(TEXT)
    assert events[-1]["usage"]["seconds"] == pytest.approx(samples / 24000, abs=1e-5)
    assert events[-1]["usage"]["total_tokens"] == 0


def test_speed_and_voice_work(client: httpx.Client) -> None:
    length = {speed: len(speak(client, speed=speed, response_format="pcm").content) for speed in (0.5, 1, 2.0)}
    assert length[0.5] > 1.6 * length[1] > 2.5 * length[2.0]
    named = [speak(client, voice=voice).content for voice in ("default", "heart", "hibari:heart", {"id": "heart"})]
    assert len(set(named)) == 1


@pytest.mark.parametrize("model", ["hibari", "tts-1", "tts-1-hd", "gpt-4o-mini-tts", None])
def test_models(client: httpx.Client, model: str | None) -> None:
    assert speak(client, model=model, input="Hello.").status_code == 200


def test_null_is_as_good_as_absent(client: httpx.Client) -> None:
    optional = ("model", "voice", "response_format", "speed", "seed", "stream_format", "stream", "instructions")
    assert speak(client, **dict.fromkeys(optional)).content == speak(client).content


def test_openai_client(live: Live) -> None:
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="none", timeout=WAIT, max_retries=0) as client:
        assert {"hibari", "tts-1"} <= {model.id for model in client.models.list()}
        plain = client.audio.speech.create(model="tts-1", voice="default", input=TEXT, response_format="wav")
        assert is_speech(plain.content[44:])
        with client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts", voice={"id": "heart"}, input=TEXT, response_format="wav", speed=1.0
        ) as response:
            pieces = list(response.iter_bytes())
        assert len(pieces) > 1
        assert b"".join(pieces) == plain.content
        with pytest.raises(openai.BadRequestError) as error:
            client.audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
        assert (error.value.code, error.value.param) == ("unknown_voice", "voice")
        with pytest.raises(openai.NotFoundError):
            client.audio.speech.create(model="whisper-1", voice="default", input=TEXT)


def test_requests_at_the_same_time_are_independent(client: httpx.Client) -> None:
    texts = [f"This is the text number {number}, and nobody else's." for number in range(4)]

    def pcm(text: str) -> bytes:
        return speak(client, input=text, response_format="pcm").content

    alone = [pcm(text) for text in texts]
    with ThreadPoolExecutor(len(texts)) as pool:
        assert list(pool.map(pcm, texts)) == alone


WRONG = [
    ({"input": ""}, 400, "nothing_to_speak", "input"),
    ({"input": " \n\t "}, 400, "nothing_to_speak", "input"),
    ({"input": "... !? --"}, 400, "nothing_to_speak", "input"),
    ({"input": "😀🎉"}, 400, "nothing_to_speak", "input"),
    ({"input": "\ud800"}, 400, "nothing_to_speak", "input"),
    ({"input": "\x00\x07\x1b"}, 400, "nothing_to_speak", "input"),
    ({"input": "你好，世界。"}, 400, "nothing_to_speak", "input"),
    ({"input": "a " * 50_000}, 413, "text_too_long", "input"),
    ({"input": "a" * 2_000_000}, 413, "text_too_long", "input"),
    ({"input": None}, 400, "invalid_request", "input"),
    ({"input": 5}, 400, "invalid_request", "input"),
    ({"input": ["Hello."]}, 400, "invalid_request", "input"),
    ({"model": "whisper-1"}, 404, "unknown_model", "model"),
    ({"model": 1}, 400, "invalid_request", "model"),
    ({"voice": "nobody"}, 400, "unknown_voice", "voice"),
    ({"voice": "\udfff"}, 400, "unknown_voice", "voice"),
    ({"voice": ""}, 400, "unknown_voice", "voice"),
    ({"voice": {"id": "nobody"}}, 400, "unknown_voice", "voice"),
    ({"voice": {"name": "heart"}}, 400, "invalid_request", "voice"),
    ({"voice": {"id": 1}}, 400, "invalid_request", "voice"),
    ({"voice": 3}, 400, "invalid_request", "voice"),
    ({"response_format": "mp3"}, 400, "unsupported_format", "response_format"),
    ({"response_format": "opus"}, 400, "unsupported_format", "response_format"),
    ({"response_format": "aac"}, 400, "unsupported_format", "response_format"),
    ({"response_format": "flac"}, 400, "unsupported_format", "response_format"),
    ({"response_format": "WAVE"}, 400, "unsupported_format", "response_format"),
    ({"response_format": ""}, 400, "unsupported_format", "response_format"),
    ({"response_format": 1}, 400, "invalid_request", "response_format"),
    ({"speed": "1.5"}, 400, "invalid_request", "speed"),
    ({"speed": True}, 400, "invalid_request", "speed"),
    ({"speed": 0.2}, 400, "invalid_request", "speed"),
    ({"speed": 2.01}, 400, "invalid_request", "speed"),
    ({"speed": -1}, 400, "invalid_request", "speed"),
    ({"speed": 10**400}, 400, "invalid_request", "speed"),
    ({"seed": "1"}, 400, "invalid_request", "seed"),
    ({"seed": 1.0}, 400, "invalid_request", "seed"),
    ({"seed": True}, 400, "invalid_request", "seed"),
    ({"seed": -1}, 400, "invalid_request", "seed"),
    ({"seed": 2**63}, 400, "invalid_request", "seed"),
    ({"seed": 10**400}, 400, "invalid_request", "seed"),
    ({"stream_format": "events"}, 400, "invalid_request", "stream_format"),
    ({"stream": "yes"}, 400, "invalid_request", "stream"),
    ({"stream": 1}, 400, "invalid_request", "stream"),
    ({"stream": False, "stream_format": "sse"}, 400, "invalid_request", "stream"),
    ({"instructions": "Whisper."}, 400, "invalid_request", "instructions"),
    ({"langauge": "en"}, 400, "invalid_request", "langauge"),
    ({"\ud800": "en"}, 400, "invalid_request", "?"),
]


@pytest.mark.parametrize(("fields", "status", "code", "param"), WRONG)
def test_wrong_requests(client: httpx.Client, fields: dict[str, object], status: int, code: str, param: str) -> None:
    body = json.dumps({"input": "Marmalade.", **fields}).encode()
    response = client.post(SPEECH, content=body, headers={"content-type": "application/json"})
    assert_error(response, status, code, param)
    assert "Marmalade" not in response.text


RAW = [
    b"",
    b"{",
    b"[]",
    b'"Hello."',
    b"null",
    b"\xff\xfe\xfd",
    b'{"input": "Hello.", "speed": NaN}',
    b'{"input": "Hello.", "seed": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", RAW, ids=range(len(RAW)))
def test_bodies_that_are_no_request(client: httpx.Client, body: bytes) -> None:
    response = client.post(SPEECH, content=body, headers={"content-type": "application/json"})
    assert_error(response, 400, "invalid_request", None)


def test_a_number_beyond_every_float(client: httpx.Client) -> None:
    response = client.post(
        SPEECH, content=b'{"input": "Hello.", "speed": 1e400}', headers={"content-type": "application/json"}
    )
    assert_error(response, 400, "invalid_request", "speed")


def test_the_missing_text_is_named(client: httpx.Client) -> None:
    assert_error(client.post(SPEECH, json={}), 400, "invalid_request", "input")


def test_only_json_is_read(client: httpx.Client) -> None:
    assert_error(client.post(SPEECH, data={"input": "Hello."}), 400, "invalid_request", None)
    assert_error(client.post(SPEECH, content=b'{"input": "Hello."}'), 400, "invalid_request", None)


def test_unreadable_characters_do_not_hold_up_the_rest(client: httpx.Client) -> None:
    body = b'{"input": "Hello\\ud800 there\\u0000, \\ud83d\\ude00 friend."}'
    response = client.post(SPEECH, content=body, headers={"content-type": "application/json; charset=utf-8"})
    assert response.status_code == 200
    assert is_speech(response.content[44:])


def test_errors_of_the_router(client: httpx.Client) -> None:
    assert_error(client.get("/v1/audio/speeches"), 404, "not_found", None)
    for method in ("GET", "PUT", "OPTIONS"):
        response = client.request(method, SPEECH)
        assert_error(response, 405, "method_not_allowed", None)
        assert response.headers["allow"] == "POST"
    assert client.head(SPEECH).status_code == 405


def test_the_clients_request_id_is_kept(client: httpx.Client) -> None:
    for given, kept in (("mine-1", True), ("x" * 200, False), ("a b", False)):
        response = client.post(SPEECH, json={}, headers={"x-request-id": given})
        assert (response.headers["x-request-id"] == given) is kept


def test_cors_only_where_it_is_wanted(live: Live) -> None:
    origin = {"origin": "https://app.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in httpx.options(live.url + SPEECH, headers=origin).headers
    settings = ServerSettings(cors_origins=("https://app.example",))
    with serve(FaultyEngine().load, settings) as running:
        response = httpx.options(running.url + SPEECH, headers=origin)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == "https://app.example"
        response = httpx.post(running.url + SPEECH, json={"input": "good 1"}, headers=origin)
        assert "X-Sample-Rate" in response.headers["access-control-expose-headers"]


def assert_error(response: httpx.Response, status: int, code: str, param: str | None) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")
    assert error["message"].endswith((".", "}."))
