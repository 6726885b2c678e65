"""Speaks with other people's Piper engines, in their own environment, on the listener's clock.

Started by benchmarks/piper_first_sound.py with the interpreter of an environment that has `streaming-vits` and
`piper-tts` (GPL, which never enters ours). Reads lines of JSON {"way", "text"} and answers each with a `Take`.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.listening import Samples, Speaker, take


def streaming_vits(model: str) -> Speaker:
    """`streaming-vits` with its default schedule, one thread; its own split is cached beside the model."""
    from streaming_vits import StreamingTTS

    engine = StreamingTTS(model, threads=1, verbose=False)
    return lambda text: (chunk.audio for chunk in engine.stream(text))


def piper(model: str) -> Speaker:
    """`piper-tts`, a sentence at a time, as its server does it."""
    from piper import PiperVoice

    voice = PiperVoice.load(model)

    def speak(text: str) -> Iterator[Samples]:
        for chunk in voice.synthesize(text):
            yield chunk.audio_float_array

    return speak


def main() -> None:
    """Answer requests until the input ends."""
    model, rate = sys.argv[1], int(sys.argv[2])
    ways = {"streaming-vits": streaming_vits(model), "piper-tts": piper(model)}
    print(json.dumps({"rate": rate, "model": Path(model).name}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(asdict(take(ways[request["way"]], request["text"], rate))), flush=True)


if __name__ == "__main__":
    main()
