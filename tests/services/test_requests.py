"""Bad input at the call: one clear error each, before anything is sent."""

from typing import Any

import pytest

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    UNRELIABLE,
    Quality,
    QualityKind,
    at_least,
    at_least_to,
    best_effort,
    best_effort_to,
    delta,
)
from priocast.core.view import View
from priocast.services.options import ServiceOptions
from priocast.services.requests import RequestCheck
from services.builders import A, B, C
from services.lan import MS

VIEW = View(1, (A, B, C))
LAN = NetworkProperties(
    broadcast=True,
    error_detection=True,
    omission_degree=1,
    full_duplex=True,
    network_order=True,
    delay_ns=2 * MS,
)
UDP = NetworkProperties(error_detection=True)
CONTRADICTION = Quality(QualityKind.AT_LEAST, count=1, names=("a",))


def check(quality: Quality, to: Any = None, network: NetworkProperties = LAN, **changes: Any) -> str:
    """The names of the recipients of a request that can be fulfilled."""
    options = ServiceOptions(network=network, response_ms=10.0, precision_ms=4.0)
    details = {"precision_ns": MS, "deadline": None, **changes}
    recipients = RequestCheck(VIEW, options).recipients(
        quality, to, 100, details["deadline"], lambda _: details["precision_ns"]
    )
    return "".join(each.name for each in recipients)


def test_what_was_found_for_a_request_is_not_used_for_another() -> None:
    requests = RequestCheck(VIEW, ServiceOptions(network=LAN))

    def names(quality: Quality, to: Any = None, deadline: int | None = None) -> list[str]:
        return [each.name for each in requests.recipients(quality, to, 100, deadline, lambda _: MS)]

    for _ in range(2):
        assert names(RELIABLE) == ["a", "b", "c"]
        assert names(RELIABLE, ["a", "b"]) == names(RELIABLE, ("b", "a")) == ["a", "b"]
        assert names(RELIABLE, {"b": 1}) == ["b"]
        with pytest.raises(InvalidInput, match="pass a list of names"):
            names(RELIABLE, "ab")
        with pytest.raises(InvalidInput, match="more than the 2 recipients"):
            names(at_least(3), ["a", "b"])
        with pytest.raises(InvalidInput, match="deadline was"):
            names(RELIABLE, deadline=100)


def test_without_names_all_members_are_recipients() -> None:
    assert check(RELIABLE) == "abc"


def test_recipients_are_in_the_order_of_the_view() -> None:
    assert check(RELIABLE, ["c", "a"]) == "ac"


@pytest.mark.parametrize(
    "quality", [UNRELIABLE, best_effort(3), at_least(2), RELIABLE, CAUSAL, ATOMIC, TIGHT]
)
def test_a_network_without_order_and_bounds_gives_everything_but_delta(quality: Quality) -> None:
    assert check(quality, network=UDP) == "abc"


def test_delta_can_be_given_on_a_lan() -> None:
    assert check(delta(40)) == "abc"


@pytest.mark.parametrize(
    ("quality", "to", "changes", "said"),
    [
        (RELIABLE, [], {}, "`to` is empty"),
        (RELIABLE, "ab", {}, "pass a list of names"),
        (RELIABLE, ["a", "x"], {}, "'x' is not a member; the members are a, b, c"),
        (RELIABLE, None, {"deadline": 99}, "deadline was"),
        (at_least(4), None, {}, "at-least:4 asks for more than the 3 recipients"),
        (best_effort(3), ["a", "b"], {}, "best-effort:3 asks for more than the 2 recipients"),
        (at_least_to("c"), ["a", "b"], {}, "'c', which is not a recipient"),
        (best_effort_to("x"), None, {}, "'x', which is not a recipient"),
        (CONTRADICTION, None, {}, "choose one"),
        (RELIABLE, None, {"network": NetworkProperties()}, "error detection (Pn2)"),
        (delta(40), None, {"network": UDP}, "bounded omission degree (Pn3)"),
        (delta(40), None, {"network": NetworkProperties(error_detection=True, omission_degree=1)}, "(Pn6)"),
        (delta(20), None, {}, "reached after up to 24 ms"),
        (delta(40), None, {"precision_ns": None}, "the coordinator has not answered yet"),
        (delta(40), None, {"precision_ns": 2 * MS + 1}, "can be wrong by 2 ms"),
    ],
)
def test_a_mistake_is_named(quality: Quality, to: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        check(quality, to, **changes)
    assert said in str(error.value)


@pytest.mark.parametrize("changes", [{"in_flight_max": 0}, {"held_max": 0}, {"precision_ms": 0.0}])
def test_options_are_checked(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        ServiceOptions(**changes)
