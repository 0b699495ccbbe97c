"""Adaptive total order: senders share the slots of the order by the rates at which they send."""
