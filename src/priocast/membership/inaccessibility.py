"""Inaccessibility control: a network that is silent as a whole has not lost its members (xAMp, section 4).

Some networks are silent for a while and recover by themselves, as a token ring does that has lost its token.
If nobody at all is heard, and the network declares that it may be silent for so long, that time is not
counted as the silence of any process. Beyond the bound it is counted again: then it is a failure.
"""


class InaccessibilityControl:
    """The periods in which one member has heard nobody.

    `bound_ns` is how long the network may be silent; 0: no silence is excused. It is noticed after
    `noticed_after_ns`. `periods` counts the periods, `exceeded` those that were longer than the bound, and
    `total_ns` is how much time was not counted.
    """

    def __init__(self, noticed_after_ns: int) -> None:
        self.bound_ns = 0
        self.periods = 0
        self.exceeded = 0
        self.total_ns = 0
        self._noticed_after_ns = noticed_after_ns
        self._checked_at = 0
        self._since: int | None = None
        self._exceeded_since: int | None = None

    def excused_ns(self, heard_at: int, now: int) -> int:
        """How much of the time since the last call is not counted; `heard_at`: when anybody was heard."""
        begin = max(self._checked_at, heard_at + self._noticed_after_ns)
        end = min(now, heard_at + self.bound_ns)
        self._checked_at = now
        if now > heard_at + self.bound_ns and self._since == heard_at != self._exceeded_since:
            self._exceeded_since = heard_at
            self.exceeded += 1
        if end <= begin:
            return 0
        if self._since != heard_at:
            self._since = heard_at
            self.periods += 1
        self.total_ns += end - begin
        return end - begin
