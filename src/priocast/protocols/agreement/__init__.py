"""Destinations agreement: the destinations of the messages agree on their order."""
