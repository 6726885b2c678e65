"""`legato say`: speak a text, or what is being written to standard input."""

import argparse
import codecs
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from legato.api import Speech
    from legato.cli.sinks import Sink

_BLOCK = 65536


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "say",
        help="speak a text",
        description="Speak a text. Without -o it is played.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""examples:
  legato say "Hello there." -o hello.wav
  my-llm | legato say - --play
  legato say "Hello there." -o - | aplay""",
    )
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to say; - speaks standard input as it is written")
    parser.add_argument("-o", "--output", metavar="FILE", help="write a WAV file; - writes it to standard output")
    parser.add_argument("--play", action="store_true", help="play it, also when a file is written")
    parser.add_argument("--voice", default="default", metavar="NAME", help="see `legato voices`")
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="X", help="0.25 (slow) to 2 (fast), or what the engine can"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed gives the same samples")
    parser.add_argument("--engine", metavar="NAME", help="the engine that speaks, if the voice does not say it")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary on standard error")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Speak.

    Raises:
        LegatoError: something is wrong or missing.
        OSError: the file cannot be written.
    """
    from legato.cli.sinks import open_sinks
    from legato.runtime.request import check_text

    written = Written()
    text = written.pieces(sys.stdin.fileno()) if args.text == ["-"] else check_text(" ".join(args.text))
    # Before the voice, which takes a while: what cannot be heard need not be loaded.
    with open_sinks(args.output, play=args.play or args.output is None) as sinks:
        from legato.api import Voice

        with Voice(args.voice, engine=args.engine) as voice:
            written.first_at = time.monotonic()
            speech = voice.speak(text, speed=args.speed, seed=args.seed)
            _speak(speech, sinks, written, quiet=args.quiet)


class Written:
    """Standard input, and when its first text came."""

    def __init__(self) -> None:
        self.first_at = 0.0

    def pieces(self, descriptor: int) -> Iterator[str]:
        """Yield text as it is written, whole characters only; bytes that are no UTF-8 become U+FFFD."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        first = True
        while data := os.read(descriptor, _BLOCK):
            if first:
                self.first_at = time.monotonic()
                first = False
            yield decoder.decode(data)
        yield decoder.decode(b"", final=True)


def _speak(speech: "Speech", sinks: "list[Sink]", written: Written, *, quiet: bool) -> None:
    live = not quiet and sys.stderr.isatty()
    heard = False
    try:
        for chunk in speech:
            for sink in sinks:
                sink.write(chunk.pcm, speech.sample_rate)
            heard = True
            if live:
                print(f"\r{_facts(speech, written)}\x1b[K", end="", file=sys.stderr, flush=True)
    finally:
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if heard and not quiet:
            print(_facts(speech, written), file=sys.stderr)


def _facts(speech: "Speech", written: Written) -> str:
    """Say how it went so far. Some audio was made."""
    from legato.core.trace import report

    trace = speech.trace
    assert trace is not None
    facts = report(trace)
    first_ms = (trace.chunks[0][0] - written.first_at) * 1000
    pace = f", made {1 / facts.engine_rtf:.0f} x faster than real time" if facts.engine_rtf else ""
    return f"{facts.audio:.1f} s of audio{pace}, first sound after {first_ms:.0f} ms"
