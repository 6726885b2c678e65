"""Scores a voice: how many words are understood, and how good it sounds. A library for tests, and a command.

Run from the top of the repository:

    python -m tests.quality.score FOLDER                   # 01.wav, 02.wav, ... in the order of sentences.txt
    python -m tests.quality.score package.module:function  # text -> float32 samples; --rate says at how many Hz
    python -m tests.quality.score legato                   # the default voice, through the public API
    python -m tests.quality.score hibari                   # the embedded voice's own package, without Legato
"""

import argparse
import importlib
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.quality.asr import Listener
from tests.quality.dnsmos import Judge
from tests.quality.words import words

Samples = npt.NDArray[np.float32]
Synth = Callable[[str], Samples]

SENTENCES = Path(__file__).with_name("sentences.txt")


@dataclass(frozen=True)
class Sentence:
    """What is spoken, and the words that a listener should write down."""

    text: str
    expected: tuple[str, ...]


@dataclass(frozen=True)
class SentenceScore:
    """One sentence: what was heard, wrong words of all words, estimated OVRL (1 to 5), length in seconds."""

    text: str
    heard: str
    errors: int
    words: int
    ovrl: float
    seconds: float


@dataclass(frozen=True)
class Score:
    """A voice: word error rate over all words (0.05 is 5 %), mean of the sentences' OVRL, and each sentence."""

    wer: float
    ovrl: float
    per_sentence: tuple[SentenceScore, ...]

    def __str__(self) -> str:
        """Two figures, then every sentence that was misheard."""
        lines = [f"WER {self.wer:.2%}, DNSMOS OVRL {self.ovrl:.2f}, {len(self.per_sentence)} sentences"]
        lines += [f"  {s.errors} of {s.words} wrong: {s.text!r} -> {s.heard!r}" for s in self.per_sentence if s.errors]
        return "\n".join(lines)


def read_sentences(path: Path = SENTENCES) -> list[Sentence]:
    """The sentences of `path`, in order."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pairs = (line.partition("\t") for line in lines)
    return [Sentence(text, tuple(words(expected or text))) for text, _, expected in pairs]


def score(synth: Synth, rate: int, sentences: Sequence[Sentence] | None = None) -> Score:
    """Let `synth` speak every sentence, and judge it.

    Args:
        synth: text to mono float32 samples in [-1, 1].
        rate: of those samples, in Hz.
        sentences: those of sentences.txt if not given.
    """
    import jiwer

    listener, judge = Listener(), Judge()
    results = []
    for sentence in read_sentences() if sentences is None else sentences:
        audio = np.asarray(synth(sentence.text), np.float32)
        heard = listener.hear(audio, rate)
        # Levenshtein distance over words: substitutions + deletions + insertions.
        diff = jiwer.process_words(" ".join(sentence.expected), " ".join(words(heard)))
        errors = diff.substitutions + diff.deletions + diff.insertions
        ovrl = judge.rate(audio, rate).ovrl
        results.append(SentenceScore(sentence.text, heard, errors, len(sentence.expected), ovrl, len(audio) / rate))
    wer = sum(s.errors for s in results) / sum(s.words for s in results)
    return Score(wer, float(np.mean([s.ovrl for s in results])), tuple(results))


def legato_voice(name: str = "default", seed: int = 1) -> tuple[Synth, int]:
    """One of Legato's voices, through its public API, and its rate."""
    import legato

    voice = legato.Voice(name)
    return lambda text: voice.speak(text, seed=seed).audio(), voice.sample_rate


def hibari_voice(seed: int = 0) -> tuple[Synth, int]:
    """The embedded voice as its own package speaks it: the figure that Legato must not fall behind."""
    from hibari import Hibari

    voice = Hibari()
    return lambda text: voice(text, seed=seed), 24_000


def wav_folder(folder: Path) -> tuple[Synth, int]:
    """A voice that was recorded: the folder's .wav files by name (16 bit mono), one for each sentence."""
    files = sorted(folder.glob("*.wav"))
    sentences = read_sentences()
    if len(files) != len(sentences):
        raise ValueError(f"{folder} holds {len(files)} .wav files; there are {len(sentences)} sentences")
    recorded = {}
    rates = set()
    for sentence, file in zip(sentences, files, strict=True):
        with wave.open(str(file), "rb") as wav:
            if wav.getsampwidth() != 2 or wav.getnchannels() != 1:
                raise ValueError(f"{file} is not 16 bit mono")
            rates.add(wav.getframerate())
            recorded[sentence.text] = np.frombuffer(wav.readframes(wav.getnframes()), "<i2").astype(np.float32) / 32768
    if len(rates) != 1:
        raise ValueError(f"{folder} mixes sample rates: {sorted(rates)}")
    return recorded.__getitem__, rates.pop()


def main() -> None:
    """The command. Prints the score, with every sentence if asked."""
    parser = argparse.ArgumentParser(description="Score a voice: word error rate and estimated MOS.")
    parser.add_argument("voice", help="a folder of .wav files, package.module:function, legato, or hibari")
    parser.add_argument("--rate", type=int, default=24_000, help="Hz, of a function's samples (default 24000)")
    parser.add_argument("--all", action="store_true", help="show every sentence")
    args = parser.parse_args()

    if args.voice == "legato":
        synth, rate = legato_voice()
    elif args.voice == "hibari":
        synth, rate = hibari_voice()
    elif ":" in args.voice:
        module, _, name = args.voice.partition(":")
        synth, rate = getattr(importlib.import_module(module), name), args.rate
    else:
        synth, rate = wav_folder(Path(args.voice))
    result = score(synth, rate)
    if args.all:
        for s in result.per_sentence:
            print(f"{s.ovrl:5.2f}  {s.errors}/{s.words:<3} {s.seconds:5.2f} s  {s.heard}")
    print(result)


if __name__ == "__main__":
    main()
