"""Responses for the other recipients of a message wait a moment where each costs a frame of its own."""

import pytest

from priocast.core.quality import CAUSAL, RELIABLE, Quality, at_least, delta
from priocast.services.later_responses import LaterResponses
from priocast.services.outputs import Multicast
from priocast.services.packets import Response
from services.builders import A, B, C, D, message
from services.lan import MS, Lan

_DELAY = 10 * MS // 8
"""An eighth of the time after which the LAN of these tests transmits again."""


def responses(lan: Lan, quality: Quality) -> list[tuple[int, str]]:
    """When each response was transmitted after the message, and to whom."""
    found: list[tuple[int, str]] = []
    honest = lan._transmit

    def transmit(source: object, multicast: Multicast) -> None:
        if isinstance(multicast.packet, Response):
            found.append((lan.now - sent_at, "".join(each.name for each in multicast.to)))
        honest(source, multicast)  # type: ignore[arg-type]

    lan._transmit = transmit  # type: ignore[method-assign]
    lan.run(100)
    sent_at = lan.now
    sent = lan.send(0, quality)
    lan.run(sent_at // MS + 300)
    assert lan.who_delivered(sent) == "abcd"
    assert lan.receipts[sent].rounds == 1
    assert all(services.idle for services in lan.services.values())
    return found


@pytest.mark.parametrize("quality", [RELIABLE, at_least(3), delta(100)], ids=str)
def test_the_sender_is_answered_at_once_and_the_others_later(quality: Quality) -> None:
    found = responses(Lan(4, ordered=False), quality)
    assert sorted(to for _, to in found) == ["a", "a", "a", "bc", "bd", "cd"]
    first_later = min(at for at, to in found if to != "a")
    assert all(at < first_later for at, to in found if to == "a")


def test_one_frame_that_reaches_all_of_them_does_not_wait() -> None:
    assert sorted(to for _, to in responses(Lan(4), RELIABLE)) == ["abc", "abd", "acd"]


def test_a_causal_message_is_answered_at_once_because_histories_depend_on_it() -> None:
    assert sorted(to for _, to in responses(Lan(4, ordered=False), CAUSAL)) == ["abc", "abd", "acd"]


def test_responses_wait_for_the_first_of_them_only() -> None:
    later = LaterResponses(10 * MS)
    first, second = (Multicast((C, D), Response(message(A, number), 1), can_wait=True) for number in (1, 2))
    later.add(first, 100)
    later.add(second, 100 + _DELAY - 1)
    assert later.deadline == 100 + _DELAY
    assert later.on_tick(100 + _DELAY - 1) == []
    assert later.on_tick(100 + _DELAY) == [first, second]
    assert later.deadline is None and later.on_tick(100 + _DELAY) == []
    later.add(Multicast((B,), first.packet, can_wait=True), 10 * MS)
    assert LaterResponses(5_000 * MS)._delay_ns == 2 * MS, "however long responses are awaited"
    assert later.deadline == 10 * MS + _DELAY
