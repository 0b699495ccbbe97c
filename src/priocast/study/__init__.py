"""Experiments on real processes of this machine."""
