"""What members begin with when they found a group together, from what they found on their disks."""

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.replication.commands import LogReport, LogTip
from priocast.replication.founding import agreed_report, next_generation, why_not_agreed

VOTERS = ("a", "b", "c")
VIEW = View(1, tuple(ProcessId(name) for name in "abc"))


def report(member: str, generation: int, index: int, is_damaged: bool = False) -> LogReport:
    return LogReport(member, generation, index, VOTERS if generation else (), is_damaged)


def agreed(*reports: LogReport, view: View = VIEW) -> LogReport | None:
    return agreed_report({each.member: each for each in reports}, view)


def test_everybody_has_to_report() -> None:
    reports = {"a": report("a", 1, 5), "b": report("b", 1, 5)}
    assert agreed_report(reports, VIEW) is None
    assert why_not_agreed(reports, VIEW) == "waits for what c found on disk"


def test_members_without_logs_begin_with_nothing() -> None:
    assert agreed(*(report(name, 0, 0) for name in "abc")) == report("a", 0, 0)


def test_the_log_that_goes_furthest_counts_and_a_later_generation_before_that() -> None:
    assert agreed(report("a", 1, 5), report("b", 1, 9), report("c", 1, 7)) == report("b", 1, 9)
    assert agreed(report("a", 1, 50), report("b", 2, 9), report("c", 2, 7)) == report("b", 2, 9)


def test_a_majority_of_the_voters_must_have_whole_logs() -> None:
    assert agreed(report("a", 1, 5), report("b", 1, 4), report("c", 0, 0)) == report("a", 1, 5)
    assert agreed(report("a", 1, 5), report("b", 1, 9, is_damaged=True), report("c", 0, 0)) is None
    assert agreed(report("a", 1, 5, is_damaged=True), report("b", 0, 0), report("c", 0, 0)) is None
    small = View(1, (ProcessId("a"), ProcessId("d")))
    assert agreed(report("a", 1, 5), report("d", 1, 5), view=small) is None, "d is no voter"
    reports = {"a": report("a", 1, 5), "d": report("d", 0, 0)}
    assert why_not_agreed(reports, small) == (
        "a majority of a, b, c must be here with whole logs, to know what was answered; here: a"
    )


def test_a_log_that_has_had_more_does_not_count() -> None:
    knows = LogReport("a", 1, 9, VOTERS, acknowledged={"b": LogTip(1, 8), "c": LogTip(1, 5)})
    assert agreed(knows, report("b", 1, 7), report("c", 1, 5)) == knows
    two = View(1, (ProcessId("a"), ProcessId("b")))
    reports = {"a": knows, "b": report("b", 1, 7)}
    assert agreed_report(reports, two) is None
    assert why_not_agreed(reports, two).endswith("here: a; older than what it acknowledged: b")
    damaged = LogReport("c", 0, 0, (), is_damaged=True)
    assert why_not_agreed(reports | {"c": damaged}, VIEW).endswith(
        "here: a; damaged: c; older than what it acknowledged: b"
    )


def test_logs_of_different_groups_do_not_mix() -> None:
    reports = {
        "a": LogReport("a", 1, 9, VOTERS, history=b"\x01"),
        "b": LogReport("b", 1, 9, VOTERS, history=b"\x02"),
        "c": LogReport("c", 0, 0, (), history=b"\x03"),
    }
    assert agreed_report(reports, VIEW) is None
    assert "the logs are of different groups that had the same name (a: 01, b: 02)" in why_not_agreed(
        reports, VIEW
    )


def test_a_generation_has_a_number_that_nobody_has_promised() -> None:
    reports = {"a": report("a", 3, 9), "b": LogReport("b", 2, 5, VOTERS, promised=7), "c": report("c", 0, 0)}
    assert next_generation(reports, VIEW) == 8
