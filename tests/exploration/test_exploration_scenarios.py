"""Scenarios, as a user writes them."""

import pytest

from exploration.scenarios import scenario
from priocast.core.errors import InvalidOption, PriorityOutOfRange, UnknownProtocol
from priocast.core.priority import BACKGROUND, HIGHEST, URGENT
from priocast.exploration.scenario import ScenarioMessage, parse_messages
from priocast.exploration.standard_scenarios import standard_scenarios
from priocast.protocols import PROTOCOLS


def test_messages_have_a_sender_and_a_level() -> None:
    assert parse_messages("a:low b:high  a:7 c:highest") == (
        ScenarioMessage("low-1", 0, BACKGROUND),
        ScenarioMessage("high-2", 1, URGENT),
        ScenarioMessage("7-3", 0, 7),
        ScenarioMessage("highest-4", 2, HIGHEST),
    )


@pytest.mark.parametrize("text", ["x:low", "low", "ab:low", "a", "A:low", ":low"])
def test_a_message_without_a_valid_member_is_rejected(text: str) -> None:
    with pytest.raises(InvalidOption, match="is not a message"):
        parse_messages(text)


@pytest.mark.parametrize("text", ["a:256", "a:", "a:urgently"])
def test_an_invalid_level_is_rejected(text: str) -> None:
    with pytest.raises(PriorityOutOfRange):
        parse_messages(text)


def test_an_impossible_scenario_is_rejected() -> None:
    with pytest.raises(
        InvalidOption,
        match="the sender of low-1 is c, but the members are a, b: choose",
    ):
        scenario("sequencer-ub", "c:low")
    with pytest.raises(InvalidOption, match="there are 0 messages"):
        scenario("sequencer-ub", "")
    with pytest.raises(InvalidOption, match="processes is 9: it must be from 1 to 8"):
        scenario("sequencer-ub", "a:low", processes=9)
    with pytest.raises(UnknownProtocol):
        scenario("nonsense", "a:low")


@pytest.mark.parametrize("order", ["token-ring", "count-parts/sequencer-ub"])
def test_options_of_reordering_are_rejected_for_other_orders(order: str) -> None:
    with pytest.raises(InvalidOption, match=f"{order} has no option distributed"):
        scenario(order, "a:low", distributed=True)
    with pytest.raises(InvalidOption, match=f"{order} has no option overtakes_max"):
        scenario(order, "a:low", overtakes_max=1)
    assert scenario("count-parts/reorder", "a:low", distributed=True).options.distributed


def test_a_scenario_has_a_readable_description() -> None:
    assert str(scenario("sequencer-ub", "a:low b:7", 3)) == "sequencer-ub, 3 processes, a:low b:7"
    text = str(scenario("sequencer-ub", "a:low", free_turns=True, view_ends=True, prioritised=False))
    assert text == "sequencer-ub, 2 processes, a:low, plain, free turns, view ends"


def test_there_are_standard_scenarios_for_every_order() -> None:
    for order in PROTOCOLS:
        scenarios = list(standard_scenarios(order))
        assert any(each.view_ends for each in scenarios)
        assert {each.processes for each in scenarios} == {2, 3}
        assert len(set(map(str, scenarios))) == len(scenarios)
