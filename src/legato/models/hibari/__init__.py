"""The hibari network, cut so that it streams inside a sentence.

phonemes ─► text encoders + durations (whole, once a segment)
         ─► prosody, 25 ms frames   (streams, reach 54 frames)
         ─► decoder, 12.5 ms frames (streams, reach 27 frames)
         ─► vocoder: pulses, noise, inverse STFT (streams, lag 2 frames) ─► trimmed PCM

docs/design/hibari.md has the figures behind every choice here.
"""
