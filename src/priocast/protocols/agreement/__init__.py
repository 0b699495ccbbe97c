"""Destinations agreement: the members agree on the order."""
