"""The gate: a person who cannot see the text understands Legato, and likes to listen to it."""

import pytest

from tests.quality.score import legato_voice, score

pytestmark = [
    pytest.mark.quality,
    # The judges are other people's packages: what they deprecate is not ours to fix here.
    pytest.mark.filterwarnings("default"),
]

LEAST_OVRL = 3.0


@pytest.mark.parametrize(("voice", "most_wer"), [("default", 0.05), ("piper:joe", 0.07)])
def test_a_voice_is_understood_and_sounds_good(voice: str, most_wer: float) -> None:
    result = score(*legato_voice(voice))
    print(f"\n{voice}: {result}")
    assert result.wer <= most_wer
    assert result.ovrl >= LEAST_OVRL
