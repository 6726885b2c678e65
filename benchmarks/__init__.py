"""Scripts that measure; their results, with hardware and raw data, are in `results/`."""
