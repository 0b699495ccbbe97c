"""Links of the playground: what they say, that they can be written and read again, and what is rejected."""

import pytest

from priocast.core.errors import InvalidOption, PriocastError, UnknownProtocol
from priocast.simulation.playground.link import UserAction, parse_action, parse_link
from priocast.simulation.scenario_generator import generate_scenario


def test_an_empty_link_is_a_group_with_the_defaults() -> None:
    link = parse_link("")
    assert (link.seed, link.order, link.prioritised, link.members) == (1, "sequencer-ub", True, 4)
    assert link.scenario().members == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "text",
    [
        "run=group&seed=7&order=token-ring&priorities=plain&members=5&load=300&do=120:send:a:224:3;400:cut:a-b;400:end",
        "run=group&seed=1&order=time-parts/sequencer-ub&priorities=first&members=2&load=0",
        "run=drawn&seed=7&order=reorder&members=3",
        "run=drawn&seed=9&do=10:pause:a;20:resume:a;30:kill:a;500:start:a;600:heal",
    ],
)
def test_what_is_written_can_be_read_again(text: str) -> None:
    link = parse_link(text)
    assert str(link) == text
    assert parse_link(f"playground/index.html#{text}") == link


def test_a_drawn_run_has_the_options_of_its_seed() -> None:
    assert parse_link("run=drawn&seed=11").scenario() == generate_scenario(11)
    chosen = parse_link("run=drawn&seed=11&order=token-ring&members=3")
    assert (chosen.scenario().order, len(chosen.scenario().members)) == ("token-ring", 3)
    assert chosen.command == "priocast simulate --seeds 11 --order token-ring --members 3"


def test_the_command_of_every_other_run_has_the_link() -> None:
    for text in ("seed=3", "run=drawn&seed=3&do=10:pause:a"):
        link = parse_link(text)
        assert link.command == f"priocast simulate --link '{link}'"


def test_the_load_is_a_share_of_what_is_consumed() -> None:
    workload = parse_link("members=3&load=100").scenario().workload
    assert sum(workload.messages) == 100  # half a second at 200 a second
    assert sum(parse_link("load=0").scenario().workload.messages) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("color=red", "'color' is not part of a link"),
        ("seed=-1", "seed is '-1': it must be a number from 0"),
        ("seed=" + "9" * 50, "it must be a number"),
        ("run=walk", "run is 'walk': there are group, drawn"),
        ("priorities=last", "there are first, plain"),
        ("members=1", "it must be between 2 and 9"),
        ("load=401", "it must be a number from 0 to 400"),
        ("order=alphabetical", "there is no protocol 'alphabetical'"),
        ("do=10:dance:a", "an action is 'dance'"),
        ("do=x:send:a", "the time of an action is 'x'"),
        ("do=10:send:z", "a member is 'z'"),
        ("do=10:send", "names 0 members: send takes 1"),
        ("do=10:kill:a-b", "names 2 members: kill takes 1"),
        ("do=10:heal:a", "names 1 members: heal takes 0"),
        ("do=10:cut", "names 0 members"),
        ("do=10:send:a:256", "the priority of a message is '256'"),
        ("do=10:send:a:1:51", "the number of messages is '51'"),
        ("do=10:send:a:1:1:more", "has too many parts"),
        ("do=10:heal;9:heal", "in the order of their times"),
        ("do=" + "1:heal;" * 2_001, "at most 2000 actions"),
    ],
)
def test_a_link_that_says_nothing_possible_is_rejected(text: str, said: str) -> None:
    with pytest.raises(PriocastError, match=said) as raised:
        parse_link(text)
    assert isinstance(raised.value, InvalidOption | UnknownProtocol)


def test_an_action_has_defaults() -> None:
    assert parse_action("5:send:a", ("a",)) == UserAction(5, "send", ("a",), 96, 1)
