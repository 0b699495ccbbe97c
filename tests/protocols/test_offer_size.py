"""How many messages are offered at once: more to an application that takes them fast."""

from priocast.protocols.reorder.offer_size import OFFERED_MAX, OFFERED_MIN, OfferSize

_MILLISECOND = 1_000_000


def _after_fast_takes(takes: int) -> OfferSize:
    offer = OfferSize()
    for _ in range(takes):
        offer.taken(offer.count, now=0)
    return offer


def test_an_application_that_takes_whole_offers_at_once_is_offered_more() -> None:
    assert OfferSize().count == OFFERED_MIN
    assert _after_fast_takes(2).count == 4 * OFFERED_MIN
    assert _after_fast_takes(100).count == OFFERED_MAX


def test_one_that_takes_a_part_gets_no_more() -> None:
    offer = OfferSize()
    offer.taken(offer.count - 1, now=0)
    assert offer.count == OFFERED_MIN


def test_one_that_takes_longer_than_a_millisecond_gets_fewer() -> None:
    """But never fewer than the least: that would only cost steps."""
    offer = _after_fast_takes(2)
    offer.taken(offer.count, now=_MILLISECOND + 1)
    assert offer.count == 2 * OFFERED_MIN
    for number in range(2, 5):
        offer.taken(offer.count, now=number * (_MILLISECOND + 1))
    assert offer.count == OFFERED_MIN
