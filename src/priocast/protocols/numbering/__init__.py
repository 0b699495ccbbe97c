"""Sequence numbers on request, for the unicast-unicast-broadcast sequencers."""
