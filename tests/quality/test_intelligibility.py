"""The gate: a person who cannot see the text understands Legato, and likes to listen to it."""

import pytest

from tests.quality.score import legato_voice, score

pytestmark = [
    pytest.mark.quality,
    # The judges are other people's packages: what they deprecate is not ours to fix here.
    pytest.mark.filterwarnings("default"),
]

MOST_WER = 0.05
LEAST_OVRL = 3.0


def test_default_voice_is_understood_and_sounds_good() -> None:
    result = score(*legato_voice())
    print(f"\n{result}")
    assert result.wer <= MOST_WER
    assert result.ovrl >= LEAST_OVRL
