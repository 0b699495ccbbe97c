"""Exhaustive exploration: every interleaving of a small scenario, run by the protocols themselves."""
