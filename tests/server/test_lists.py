"""What can be asked for, and whether the server lives."""

import httpx

from legato.errors import error_for


def test_models(client: httpx.Client) -> None:
    listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["hibari", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
    assert client.get("/v1/models/hibari").json() == listed["data"][0]
    response = client.get("/v1/models/whisper-1")
    assert response.status_code == error_for("unknown_model", "").http_status
    assert response.json()["error"]["code"] == "unknown_model"


def test_voices(client: httpx.Client) -> None:
    (voice,) = client.get("/v1/audio/voices").json()["voices"]
    assert (voice["id"], voice["language"], voice["model"], voice["default"]) == ("heart", "en-US", "hibari", True)
    assert voice["licence"]


def test_health_and_ready(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}


def test_head_is_get_without_a_body(client: httpx.Client) -> None:
    for path in ("/health", "/ready", "/v1/models", "/v1/models/hibari", "/v1/audio/voices"):
        response = client.head(path)
        assert (response.status_code, response.content) == (200, b"")
        assert response.headers["content-length"] == client.get(path).headers["content-length"]


def test_the_schema_describes_the_request(client: httpx.Client) -> None:
    body = client.get("/openapi.json").json()["paths"]["/v1/audio/speech"]["post"]["requestBody"]
    fields = body["content"]["application/json"]["schema"]["properties"]
    assert {"input", "voice", "speed", "seed", "stream"} <= fields.keys()
