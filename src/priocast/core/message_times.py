"""How long messages take from their sending until they are delivered and confirmed (xAMp, Figures 7 to 9)."""

import msgspec


class MessageTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over messages that are alike, and extremes.

    `count` messages were delivered by all recipients, `incomplete` ones were not. The *indication* is the
    delivery at the last recipient, the *confirmation* the receipt at the sender. The *spread* is the time
    between the first and the last recipient's delivery. `shortest_ms` and `longest_ms` are from a sending to
    any delivery. `late` messages are in none of these figures: a recipient said that it was late.
    """

    count: int
    incomplete: int
    indication_ms: float
    confirmation_ms: float
    spread_ms: float
    spread_max_ms: float
    shortest_ms: float
    longest_ms: float
    late: int = 0
