"""A replicated counter."""

from priocast.replication.objects.methods import query, replicated
from priocast.replication.objects.replicated_object import ReplicatedObject


class ReplicatedCounter(ReplicatedObject):
    """A number that every member can add to; `local` is this member's copy, which may be behind."""

    def __init__(self, start: int = 0) -> None:
        self.local: int = start

    @replicated
    def add(self, amount: int = 1) -> int:
        """Add to the counter; return its new value, which no other call gets if the amount is not 0."""
        self.local += amount
        return self.local

    @replicated
    def set(self, value: int) -> int:
        """Set the counter; return its value before."""
        before, self.local = self.local, value
        return before

    @query
    def value(self) -> int:
        """The value, linearizable."""
        return self.local
