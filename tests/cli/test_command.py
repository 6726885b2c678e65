"""The command as a user runs it: a process, its output, its exit code."""

import io
import os
import re
import signal
import subprocess
import sys
import wave
from pathlib import Path

import httpx
import pytest

import legato
from legato.wire.pcm import from_s16le

WAIT = 60.0  # seconds after which a hanging test fails
COMMAND = [sys.executable, "-c", "import sys; from legato.cli.main import main; sys.exit(main())"]
TEXT = "Speech comes out while it is made."


def run(*args: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *args], input=given, capture_output=True, timeout=WAIT, check=False)


def start(*args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )


def test_version() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.decode().strip() == f"legato {legato.__version__}"


def test_version_loads_no_engine_and_no_server() -> None:
    code = (
        "import sys; from legato.cli.main import main\ntry: main(['--version'])\nexcept SystemExit: print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=WAIT, check=True).stdout.decode()
    assert not {"numpy", "onnxruntime", "fastapi", "asyncio", "pydantic"} & set(loaded.split())


def test_alone_it_prints_help() -> None:
    done = run()
    assert done.returncode == 0
    assert {"say", "serve", "voices"} <= set(done.stdout.decode().split())


def test_say_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    done = run("say", TEXT, "-o", str(path))
    assert done.returncode == 0, done.stderr
    with wave.open(str(path)) as file:
        assert file.getparams()[:3] == (1, 2, 24000)
        seconds = file.getnframes() / 24000
        assert 1 < seconds < 5
        assert abs(from_s16le(file.readframes(file.getnframes()))).max() > 0.05
        assert file.getnframes() * 2 + 44 == path.stat().st_size
    summary = re.fullmatch(
        r"([\d.]+) s of audio, made \d+ x faster .*, first sound after \d+ ms\n", done.stderr.decode()
    )
    assert summary
    assert float(summary[1]) == pytest.approx(seconds, abs=0.06)
    assert done.stdout == b""


def test_words_may_stand_alone_and_the_seed_decides() -> None:
    joined = run("say", "Hello there.", "-o", "-", "-q")
    assert run("say", "Hello", "there.", "-q", "-o", "-", "--seed", "0").stdout == joined.stdout
    assert run("say", "Hello", "there.", "-q", "-o", "-", "--seed", "1").stdout != joined.stdout
    assert joined.stderr == b""


def test_a_pipe_gets_unknown_sizes_and_a_redirect_exact_ones(tmp_path: Path) -> None:
    piped = run("say", TEXT, "-o", "-").stdout
    assert piped[4:8] == piped[40:44] == b"\xff\xff\xff\xff"
    for mode, exact in (("wb", True), ("ab", False)):
        path = tmp_path / f"{mode}.wav"
        with path.open(mode) as file:
            subprocess.run([*COMMAND, "say", TEXT, "-q", "-o", "-"], stdout=file, timeout=WAIT, check=True)
        data = path.read_bytes()
        assert data[44:] == piped[44:]
        assert (int.from_bytes(data[40:44], "little") == len(data) - 44) is exact
        if exact:
            with wave.open(io.BytesIO(data)) as whole:
                assert whole.getnframes() == (len(data) - 44) // 2


def test_what_was_written_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "both.wav"
    with path.open("wb") as file:
        file.write(b"before")
        file.flush()
        subprocess.run([*COMMAND, "say", TEXT, "-q", "-o", "-"], stdout=file, timeout=WAIT, check=True)
    before, data = path.read_bytes()[:6], path.read_bytes()[6:]
    assert before == b"before"
    with wave.open(io.BytesIO(data)) as whole:
        assert whole.getnframes() == (len(data) - 44) // 2


def test_standard_input_is_spoken_as_it_is_written() -> None:
    with start("say", "-", "-q", "-o", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Caf" + b"\xc3")  # half a character
        process.stdin.write(b"\xa9 is open. Here is")
        early = os.read(process.stdout.fileno(), 65536)  # comes although the pipe is still open
        while len(early) < 20000:
            assert process.poll() is None
            early += os.read(process.stdout.fileno(), 65536)
        process.stdin.write(b" the rest of it.")
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(WAIT) == 0
    assert len(rest) > 20000
    whole = run("say", "Café is open. Here is the rest of it.", "-q", "-o", "-").stdout
    assert early + rest == whole


def test_an_interrupted_file_is_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.wav"
    with start("say", "-", "-o", str(path)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"This sentence is spoken. And this one is not")
        while not path.exists() or path.stat().st_size < 20000:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) == 130
        assert b"Traceback" not in process.stderr.read()
    with wave.open(str(path)) as file:
        assert file.getnframes() * 2 + 44 == path.stat().st_size


def test_a_reader_that_has_enough_is_no_drama() -> None:
    with start("say", "Nobody reads this. " * 200, "-q", "-o", "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        assert process.wait(WAIT) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("say",), 2, "TEXT"),
        (("say", "", "-o", "-"), 2, "The text is empty"),
        (("say", "?!", "-o", "-"), 2, "nothing to speak"),
        (("say", "你好", "-o", "-"), 2, "nothing that this voice can pronounce"),
        (("say", "-", "-o", "-"), 2, "nothing that this voice can pronounce"),
        (("say", "a" * 20_001, "-o", "-"), 2, "20001 characters"),
        (("say", "Hi.", "-o", "-", "--speed", "9"), 2, "speed must be"),
        (("say", "Hi.", "-o", "-", "--speed", "fast"), 2, "--speed"),
        (("say", "Hi.", "-o", "-", "--seed", "-1"), 2, "seed must be"),
        (("say", "Hi.", "-o", "-", "--voice", "nobody"), 2, "Voices: heart"),
        (("say", "Hi.", "-o", "-", "--engine", "nobody"), 2, "Engines: hibari"),
        (("say", "Hi.", "-o", "/nowhere/at/all.wav"), 1, "/nowhere/at/all.wav"),
        (("serve", "--port", "70000"), 1, "There is no port 70000"),
        (("serve", "--max-text", "0"), 2, "--max-text"),
        (("serve", "--engine", "nobody"), 2, "Engines: hibari"),
        (("sing",), 2, "sing"),
    ],
)
def test_errors(args: tuple[str, ...], code: int, message: str) -> None:
    done = run(*args)
    assert done.returncode == code
    assert done.stdout == b""
    error = done.stderr.decode()
    assert message in error
    assert "Traceback" not in error
    assert "error: " in error.splitlines()[-1]


def test_a_speech_that_fails_leaves_an_existing_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "old.wav"
    path.write_bytes(b"old")
    assert run("say", "你好", "-o", str(path)).returncode == 2
    assert path.read_bytes() == b"old"


def test_voices() -> None:
    done = run("voices")
    assert done.returncode == 0
    head, *rows = done.stdout.decode().splitlines()
    assert head.split() == ["NAME", "LANGUAGE", "DESCRIPTION", "LICENCE", "ENGINE"]
    assert rows[0].startswith("heart  en-US")
    assert rows[0].endswith("hibari")


def test_serve_says_when_it_is_ready_and_stops_when_it_is_told() -> None:
    with start("serve", "--port", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline().decode()
        found = re.match(r"Legato is ready at (http://127\.0\.0\.1:\d+)", line)
        assert found, line
        assert httpx.get(f"{found[1]}/ready", timeout=WAIT).status_code == 200
        response = httpx.post(f"{found[1]}/v1/audio/speech", json={"input": TEXT}, timeout=WAIT)
        assert response.headers["content-type"] == "audio/wav"
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) == 130
        assert process.stderr.read() == b""


def test_serve_reads_its_configuration_and_options_go_first(tmp_path: Path) -> None:
    path = tmp_path / "legato.toml"
    path.write_text("[server]\nport = 1\nmax_text = 5\n[engine.settings]\nwindow_frames = 48\n")
    with start("serve", "--config", str(path), "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[4]
        response = httpx.post(f"{url}/v1/audio/speech", json={"input": "Hello."}, timeout=WAIT)
        assert response.json()["error"]["code"] == "text_too_long"
        process.send_signal(signal.SIGINT)
        process.wait(WAIT)
    path.write_text("[server]\nprt = 1\n")
    done = run("serve", "--config", str(path))
    assert done.returncode == 2
    assert "server.prt" in done.stderr.decode()


def test_serve_at_a_taken_port() -> None:
    with start("serve", "--port", "0") as process:
        assert process.stdout is not None
        port = process.stdout.readline().decode().split(":")[2].split()[0]
        done = run("serve", "--port", port)
        assert done.returncode == 1
        assert f"Port {port} is already in use" in done.stderr.decode()
        process.send_signal(signal.SIGINT)
        process.wait(WAIT)
