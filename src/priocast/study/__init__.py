"""Experiments with real processes on this machine."""
