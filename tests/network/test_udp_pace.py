"""Large bodies go as fast as they are taken, and no faster."""

from collections.abc import Iterator

from priocast.network.rejections import RejectionLog
from priocast.network.udp_pace import Flow, Pacer, Sent
from support.waiting import run, wait_until

WINDOW = 96
KIBIBYTE = 1024


class Road:
    """Numbers what is sent, a KiB each, and remembers which fragment every number was."""

    def __init__(self) -> None:
        self.fragments: list[int] = []

    def send(self, fragment: int) -> Sent:
        self.fragments.append(fragment)
        return Sent(len(self.fragments), KIBIBYTE, lambda: self.send(fragment))

    def steps(self, count: int, flows: int = 1) -> Iterator[list[Sent]]:
        """A body of so many fragments."""
        for fragment in range(count):
            yield [self.send(fragment)] * flows


def pacer() -> Pacer:
    return Pacer(RejectionLog("a"))


def all_up_to(highest: int) -> tuple[int, int]:
    return highest, (1 << highest) - 1


def test_no_more_is_under_way_than_the_receiver_can_hold() -> None:
    async def test() -> None:
        pace, flow, road = pacer(), Flow(), Road()
        pace.add("body", [flow], road.steps(1000), 1000 * KIBIBYTE)
        assert len(road.fragments) == WINDOW
        for highest in (10, 90, 96, 186):
            pace.on_report(flow, *all_up_to(highest), 0.0)
            assert len(road.fragments) == WINDOW + highest
        pace.stop()

    run(test)


def test_what_is_missing_is_sent_again_before_anything_else() -> None:
    async def test() -> None:
        pace, flow, road = pacer(), Flow(), Road()
        pace.add("body", [flow], road.steps(200), 200 * KIBIBYTE)
        pace.on_report(flow, 10, 0b1011111011, 0.0)
        assert road.fragments[WINDOW : WINDOW + 3] == [1, 7, 96], "numbers 2 and 8 are missing of 10"
        assert len(road.fragments) == WINDOW + 10
        pace.stop()

    run(test)


def test_what_is_lost_again_and_again_is_given_up() -> None:
    async def test() -> None:
        pace, flow, road = pacer(), Flow(), Road()
        pace.add("body", [flow], road.steps(3), 3 * KIBIBYTE)
        for _ in range(9):
            pace.on_report(flow, len(road.fragments), 1 << 2000, 0.0)
        assert road.fragments == [0, 1, 2] * 5
        assert flow.idle
        pace.stop()

    run(test)


def test_without_a_word_everything_is_sent_again_and_at_last_given_up() -> None:
    async def test() -> None:
        pace, road = pacer(), Road()
        pace.add("body", [Flow()], road.steps(90), 90 * KIBIBYTE)
        assert len(road.fragments) == 90
        await pace.wait_empty()
        assert sorted(road.fragments) == sorted([*range(90)] * 5)
        await wait_until(lambda: pace._timer is None)

    run(test)


def test_the_slowest_of_several_receivers_sets_the_pace_and_each_gets_what_it_lacks() -> None:
    async def test() -> None:
        pace, flows, road = pacer(), [Flow(), Flow()], Road()
        pace.add("body", flows, road.steps(1000, flows=2), 1000 * KIBIBYTE)
        pace.on_report(flows[0], *all_up_to(96), 0.0)
        assert len(road.fragments) == WINDOW
        pace.on_report(flows[1], 50, (1 << 49) - 1, 0.0)
        assert road.fragments[WINDOW : WINDOW + 2] == [0, 96]
        assert len(road.fragments) == WINDOW + 50
        pace.stop()

    run(test)


def test_flows_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        pace, slow, fast = pacer(), Road(), Road()
        pace.add("one", [Flow()], slow.steps(1000), 1000 * KIBIBYTE)
        pace.add("other", [Flow()], fast.steps(10), 10 * KIBIBYTE)
        assert len(fast.fragments) == 10
        pace.stop()

    run(test)


def test_a_body_that_still_waits_is_not_begun_again() -> None:
    async def test() -> None:
        pace, flow, road = pacer(), Flow(), Road()
        for _ in range(3):
            pace.add("body", [flow], road.steps(100), 100 * KIBIBYTE)
        pace.on_report(flow, *all_up_to(WINDOW), 0.0)
        assert len(road.fragments) == 100
        pace.add("body", [flow], road.steps(1), KIBIBYTE)
        assert len(road.fragments) == 101
        pace.stop()

    run(test)


def test_what_waits_is_bounded() -> None:
    async def test() -> None:
        rejection_log = RejectionLog("a")
        pace, road = Pacer(rejection_log), Road()
        for number in range(20):
            pace.add(number, [Flow()], road.steps(1000), 1000 * KIBIBYTE)
        assert rejection_log.counts == {"could not be sent": 4}
        pace.stop()

    run(test)
