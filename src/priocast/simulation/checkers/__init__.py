"""The checkers that watch a run: each knows one promise."""
