"""The espeak-ng program as a reader: every answer is its question's, whatever the text and the program do."""

import random
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.errors import EngineFailed, MissingExtra, VoiceFileError
from legato.models.piper import espeak
from legato.models.piper.espeak import EspeakPhonemizer, _clauses, _parts, find_program

needs_program = pytest.mark.skipif(find_program() is None, reason="the espeak-ng program is not installed")


@pytest.fixture(scope="module")
def german() -> EspeakPhonemizer:
    return EspeakPhonemizer("de")


# --- pure ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Ja", [("Ja", "")]),
        ("Ja. Nein, doch!", [("Ja.", "."), ("Nein,", ","), ("doch!", "!")]),
        ("Ja?! Nein... gut", [("Ja?!", "?"), ("Nein...", "."), ("gut", "")]),
        ("1,5 und 12:30", [("1,5 und 12:30", "")]),
        ('„Ja.“ (Nein!) "Gut."', [("„Ja.“ (Nein!)", "!"), ('"Gut."', ".")]),
        ("ja — nein – gut", [("ja —", ";"), ("nein –", ";"), ("gut", "")]),
        ("日本。中国，好", [("日本。", "."), ("中国，", ","), ("好", "")]),
        ("क्या। हाँ", [("क्या।", "."), ("हाँ", "")]),
        ("ما هذا؟ نعم", [("ما هذا؟", "?"), ("نعم", "")]),
    ],
)
def test_clauses(text: str, expected: list[tuple[str, str]]) -> None:
    assert _clauses(text) == expected


@given(st.text(max_size=200))
def test_clauses_lose_only_space(text: str) -> None:
    assert "".join("".join(clause for clause, _ in _clauses(text)).split()) == "".join(text.split())


@given(st.text(st.sampled_from("aé日🙂 "), max_size=3000))
@settings(deadline=None)
def test_parts_fit_in_a_line_and_lose_only_space(text: str) -> None:
    found = _parts(text)
    assert all(len(part.encode()) <= 400 for part in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_word_is_cut_only_when_it_is_too_long() -> None:
    assert _parts("a" * 250 + " " + "b" * 300) == ["a" * 250, "b" * 300]
    assert _parts("é" * 201) == ["é" * 200, "é"]


# --- a program that misbehaves ---

ECHO = """
import sys
for line in sys.stdin:
    print(line.strip().strip("[]"), flush=True)
"""


def fake(folder: Path, code: str) -> str:
    """A program in Python that stands for espeak-ng."""
    import sys

    path = folder / "espeak"
    path.write_text(f"#!{sys.executable}\n{code}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_frame_ends_an_answer(tmp_path: Path) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, ECHO))
    assert reader.phonemes("ja. (en)nein, gut") == "ja. nein,, gut"  # one line for both: one clause
    reader.close()


def test_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(espeak, "find_program", lambda: None)
    with pytest.raises(MissingExtra, match="apt-get install espeak-ng"):
        EspeakPhonemizer("de")


def test_a_program_that_cannot_be_started() -> None:
    with pytest.raises(MissingExtra, match="No such file"):
        EspeakPhonemizer("de", "/nowhere/espeak-ng")


def test_a_program_that_goes_away_later(tmp_path: Path) -> None:
    program = fake(tmp_path, ECHO)
    reader = EspeakPhonemizer("de", program)
    Path(program).unlink()
    reader._idle[0]._process.kill()
    reader._idle[0]._process.wait()
    with pytest.raises(EngineFailed, match="cannot be started"):
        reader.phonemes("ja")


def test_a_program_that_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(VoiceFileError, match="no voice 'xx'"):
        EspeakPhonemizer("xx", fake(tmp_path, "pass"))


def test_it_is_started_again_once(tmp_path: Path) -> None:
    mark = tmp_path / "once"
    dies_once = f"""
import pathlib, sys
for number, line in enumerate(sys.stdin):
    if number == 1 and not pathlib.Path({str(mark)!r}).exists():
        pathlib.Path({str(mark)!r}).touch()
        sys.exit(1)
    print(line.strip().strip("[]"), flush=True)
"""
    reader = EspeakPhonemizer("de", fake(tmp_path, dies_once))
    assert reader.phonemes("ja") == "ja"
    assert mark.exists()
    reader.close()


def test_dying_twice_is_an_error(tmp_path: Path) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, "print(input().strip('[]'), flush=True)\ninput()"))
    with pytest.raises(EngineFailed, match="ended while"):
        reader.phonemes("ja")
    assert not reader._idle


def test_a_program_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, "print(input().strip('[]'), flush=True)\nwhile True: input()"))
    monkeypatch.setattr(espeak, "_TIME_LIMIT", 0.05)
    with pytest.raises(EngineFailed, match="did not answer"):
        reader.phonemes("ja")
    assert not reader._idle


def test_an_idle_process_that_died_is_replaced(tmp_path: Path) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, ECHO))
    reader._idle[0]._process.kill()
    reader._idle[0]._process.wait()
    assert reader.phonemes("ja") == "ja"
    reader.close()


def test_a_process_that_dies_when_it_is_asked_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, ECHO))
    reader._idle[0]._process.kill()
    reader._idle[0]._process.wait()
    monkeypatch.setattr(espeak._Process, "is_alive", lambda self: True)
    assert reader.phonemes("ja") == "ja"
    reader.close()


def test_close(tmp_path: Path) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, ECHO))
    process = reader._idle[0]
    reader.close()
    reader.close()
    assert not process.is_alive()
    with pytest.raises(EngineFailed, match="closed"):
        reader.phonemes("ja")


def test_processes_end_with_the_object(tmp_path: Path) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, ECHO))
    process = reader._idle[0]
    del reader
    assert not process.is_alive()


def test_closed_in_the_middle_of_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = EspeakPhonemizer("de", fake(tmp_path, ECHO))
    process = reader._idle[0]
    real = espeak._read

    def closing(process: espeak._Process, text: str) -> str:
        reader.close()
        return real(process, text)

    monkeypatch.setattr(espeak, "_read", closing)
    assert reader.phonemes("ja") == "ja"
    assert not process.is_alive()


# --- the program itself ---


@needs_program
@pytest.mark.parametrize(
    ("voice", "text", "ipa"),
    [
        ("en-us", "Hello world.", "həlˈoʊ wˈɜːld."),
        ("en-us", "How are you? I am fine, thanks!", "hˈaʊ ɑːɹ juː? aɪɐm fˈaɪn, θˈæŋks!"),
        ("en-us", "See e.g. this. That", "sˈiː fˌɔːɹɛɡzˈæmpəl ðˈɪs. ðˈæt"),
        ("de", "Hallo. Guten Tag!", "hˈaloː. ɡˈuːtən tˈɑːk!"),
        ("de", "der 3. weg", "dɛɾ dɾˈɪtə vˈɛk"),
        ("de", "the weather", "ðə wˈɛðə"),
    ],
)
def test_reads(voice: str, text: str, ipa: str) -> None:
    assert EspeakPhonemizer(voice).phonemes(text) == ipa


@needs_program
def test_an_unknown_voice() -> None:
    with pytest.raises(VoiceFileError, match="no voice 'nonsense'"):
        EspeakPhonemizer("nonsense")


@needs_program
@pytest.mark.parametrize("text", ["", " ", "...", "\n", "?!", "\ud800", "\x00", "[[]]"])
def test_nothing_can_be_pronounced(german: EspeakPhonemizer, text: str) -> None:
    assert german.phonemes(text) == ""


@needs_program
@pytest.mark.parametrize(
    "text", ["-v hallo", "--help hallo", "\x1b\x00hallo", "\n\nhallo\n", "[[hallo]]", "{hallo}", "\ufeffhallo\u2028"]
)
def test_no_text_is_a_command(german: EspeakPhonemizer, text: str) -> None:
    assert german.phonemes(text).endswith("hˈaloː") or german.phonemes(text) == "hˈaloː"


@needs_program
def test_markup_is_text(german: EspeakPhonemizer) -> None:
    assert "hˈaloː" in german.phonemes("<b>hallo</b> &amp; <!-- x")


@needs_program
def test_a_long_text_is_read_whole(german: EspeakPhonemizer) -> None:
    assert german.phonemes("wort " * 1000).split() == ["vˈɔɾt"] * 1000
    assert german.phonemes("x" * 1000).count("ɪks") > 900  # the program leaves out what is over its own limits


@needs_program
def test_a_process_that_was_killed_is_replaced(german: EspeakPhonemizer) -> None:
    german.phonemes("ja")
    german._idle[-1]._process.kill()
    assert german.phonemes("ja") == "jˈɑː"


@needs_program
@given(st.text(max_size=100))
@settings(deadline=None, max_examples=100)
def test_any_text_leaves_the_next_answer_alone(german: EspeakPhonemizer, text: str) -> None:
    first = german.phonemes(text)
    assert german.phonemes("Guten Tag.") == "ɡˈuːtən tˈɑːk."
    assert german.phonemes(text) == first


@needs_program
def test_parallel_is_serial() -> None:
    reader = EspeakPhonemizer("de")
    words = "Haus, Baum. Der Hund lief über die Straße! Kommt er? e-mail the weather 42 wort".split()
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=12)) for _ in range(32)]
    serial = [reader.phonemes(text) for text in texts]
    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(reader.phonemes, texts)) == serial
    processes = list(reader._idle)
    assert 1 <= len(processes) <= 32
    reader.close()
    deadline = time.monotonic() + 5
    while any(process.is_alive() for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(process.is_alive() for process in processes)
