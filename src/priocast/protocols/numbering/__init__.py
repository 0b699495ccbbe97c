"""Sequence numbers on request: what the unicast-unicast-broadcast classes share."""
