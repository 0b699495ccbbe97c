"""Fixed sequencer: one member orders."""
