"""Transactions of many clients against real replicas under faults, and the judgement of what they saw."""
