"""Piper voices (VITS): phonemes and the network."""
