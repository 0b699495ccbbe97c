"""The playground: a group is steered by hand, checked, and a link gives the same run again."""

import json
import subprocess
import sys
from typing import Any

import pytest

from priocast.core.errors import InvalidOption
from priocast.core.priority import BACKGROUND, URGENT
from priocast.protocols import PROTOCOLS
from priocast.simulation.playground.bridge import Bridge
from priocast.simulation.playground.link import UserAction, parse_link
from priocast.simulation.playground.playground import Playground, play
from priocast.simulation.playground.snapshot import PlaygroundSnapshot, ShownMember, take_snapshot
from priocast.simulation.swarm import run_seed

EVENTFUL = "do=200:kill:a;420:cut:b;700:start:a;900:heal;1100:pause:c;1400:end"


def after(text: str, until_ms: int) -> Playground:
    playground = Playground(parse_link(text))
    playground.advance(until_ms)
    return playground


def member(snapshot: PlaygroundSnapshot, name: str) -> ShownMember:
    return next(each for each in snapshot.members if each.name == name)


@pytest.mark.parametrize("seed", [3, 7, 17])
def test_a_drawn_run_has_the_digest_of_its_seed(seed: int) -> None:
    playground = Playground(parse_link(f"run=drawn&seed={seed}"))
    for time_ms in range(0, 400, 37):
        playground.advance(time_ms)
    assert (
        playground.finish().digest
        == play(parse_link(f"run=drawn&seed={seed}")).digest
        == run_seed(seed).digest
    )


@pytest.mark.parametrize("order", PROTOCOLS)
def test_the_link_of_an_eventful_run_gives_the_same_run(order: str) -> None:
    link = parse_link(f"order={order}&seed=5&{EVENTFUL}")
    playground = Playground(parse_link(f"order={order}&seed=5"))
    for action in link.actions:
        for time_ms in range(playground.time_ms, action.at_ms, 13):
            playground.advance(time_ms)
        playground.act(action)
    result = playground.finish()
    assert not result.violations
    assert playground.link == link
    assert result.digest == play(link).digest


def test_an_urgent_message_overtakes_those_that_wait() -> None:
    playground = after("load=0&seed=2", 100)
    playground.act(UserAction(100, "send", ("a",), BACKGROUND, 20))
    playground.advance(110)
    playground.act(UserAction(110, "send", ("b",), URGENT))
    playground.advance(400)
    urgent = playground.messages.overtaking
    assert urgent is not None and urgent.priority == URGENT
    assert urgent.overtook >= 10
    orders = [[each.name for each in messages] for messages in playground.messages.delivered.values()]
    assert orders == [orders[0]] * 4 and orders[0].index("b1") < 10 < len(orders[0])


def test_in_a_plain_group_it_waits_like_all_others() -> None:
    playground = after("load=0&priorities=plain", 100)
    playground.act(UserAction(100, "send", ("a",), BACKGROUND, 20))
    playground.advance(110)
    playground.act(UserAction(110, "send", ("b",), URGENT))
    playground.advance(400)
    assert playground.messages.overtaking is None
    assert playground.messages.delivered["c"][-1].name == "b1"


def test_what_a_page_shows_of_the_queues() -> None:
    snapshot = take_snapshot(after("load=300", 400))
    orderer = member(snapshot, "a")
    assert orderer.state == "active" and orderer.coordinator
    assert orderer.view_members == ("a", "b", "c", "d")
    assert sum(count for _, count in orderer.queues) == orderer.backlog > 0
    assert [priority for priority, _ in orderer.queues] == sorted(dict(orderer.queues), reverse=True)
    assert orderer.undelivered_count >= len(orderer.undelivered) > 0
    assert {each.name[0] for each in orderer.undelivered} == {"a"}
    assert orderer.delivered_count > 0 and snapshot.deliveries and snapshot.overtaking
    assert "Total order" in snapshot.guarantees and not snapshot.violations
    assert not snapshot.over and not snapshot.digest


def test_a_member_is_killed_and_comes_back() -> None:
    playground = after("", 200)
    playground.act(UserAction(200, "kill", ("a",)))
    assert member(take_snapshot(playground), "a").state == "down"
    with pytest.raises(InvalidOption, match="a is not running"):
        playground.act(UserAction(210, "send", ("a",)))
    playground.advance(500)
    assert member(take_snapshot(playground), "b").view_members == ("b", "c", "d")
    playground.act(UserAction(500, "start", ("a",)))
    with pytest.raises(InvalidOption, match="a is running"):
        playground.act(UserAction(510, "start", ("a",)))
    playground.advance(800)
    back = member(take_snapshot(playground), "a")
    assert (back.state, back.incarnation) == ("active", 2)
    assert [text for _, text in take_snapshot(playground).events][-1] == "view 3: b c d a (a joined)"
    assert not playground.finish().violations


def test_a_kill_that_the_group_cannot_survive_is_rejected_and_is_not_in_the_link() -> None:
    playground = after("members=3", 200)
    playground.act(UserAction(200, "kill", ("a",)))
    with pytest.raises(InvalidOption, match="the group would stop for good"):
        playground.act(UserAction(200, "kill", ("b",)))
    assert [str(action) for action in playground.link.actions] == ["200:kill:a"]


def test_a_cut_separates_until_it_is_healed() -> None:
    playground = after("members=5", 200)
    playground.act(UserAction(200, "cut", ("a", "b")))
    playground.advance(600)
    snapshot = take_snapshot(playground)
    assert [each.cut for each in snapshot.members] == [True, True, False, False, False]
    assert member(snapshot, "c").view_members == ("c", "d", "e")
    assert member(snapshot, "a").state == "no quorum"
    playground.act(UserAction(600, "heal"))
    playground.advance(900)
    assert {each.view_members for each in take_snapshot(playground).members} == {("c", "d", "e", "a", "b")}


def test_a_pause_ends_when_it_is_resumed() -> None:
    playground = after("", 200)
    playground.act(UserAction(200, "pause", ("d",)))
    playground.advance(250)
    before = member(take_snapshot(playground), "d")
    playground.act(UserAction(300, "resume", ("d",)))
    assert before.paused and before.state == "paused"
    playground.advance(330)
    now = member(take_snapshot(playground), "d")
    assert not now.paused and now.delivered_count > before.delivered_count and now.incarnation == 1


def test_nothing_can_be_done_after_the_end_or_in_the_past() -> None:
    playground = after("load=50", 100)
    with pytest.raises(InvalidOption, match="too late: it is 100 ms"):
        playground.act(UserAction(99, "heal"))
    playground.finish()
    ended = playground.time_ms
    playground.advance(ended + 1_000)
    with pytest.raises(InvalidOption, match="the run is over"):
        playground.act(UserAction(ended + 1_000, "heal"))
    assert playground.finish() is playground.result


def answer(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def test_the_page_is_answered_in_json_with_the_reason_of_a_rejection() -> None:
    bridge = Bridge()
    assert set(PROTOCOLS) < set(answer(bridge.choosable())["orders"])
    assert answer(bridge.start("seed=4&do=100:send:a:224"))["snapshot"]["time_ms"] == 100
    wrong = answer(bridge.start("seed=x"))
    assert "seed is 'x'" in wrong["rejected"] and wrong["snapshot"]["link"].endswith("do=100:send:a:224:1")
    assert answer(bridge.advance(150))["snapshot"]["time_ms"] == 150
    assert "takes 1" in answer(bridge.act("kill"))["rejected"]
    assert not answer(bridge.act("send:b:32:2"))["rejected"]
    ended = answer(bridge.finish())["snapshot"]
    assert ended["over"] and ended["digest"] == play(parse_link(ended["link"])).digest


def test_it_needs_no_threads_sockets_or_event_loop() -> None:
    hidden = (
        "asyncio",
        "fcntl",
        "multiprocessing",
        "pyarrow",
        "socket",
        "ssl",
        "subprocess",
        "threading",
        "uvloop",
    )
    program = f"""
import sys
for name in {hidden}: sys.modules[name] = None
import priocast
from priocast.simulation.playground.bridge import Bridge
print(Bridge().finish())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer(done.stdout)["snapshot"]["digest"] == play(parse_link("")).digest
