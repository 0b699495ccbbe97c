"""The examples that run three processes: one for each building block, and each shows what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
EACH_ONCE = {
    "leader_election.py": r"{name} leads in term {number}",
    "lock.py": r"{name} holds the lock with token {number}",
}
ALIKE = {
    "dictionary.py": r"{name}: [abc] was first of \['a', 'b', 'c', 'first'\]",
    "own_object.py": r"{name}: 15 left",
    "questions.py": r"{name}: \[b'here, says a', b'here, says b', b'here, says c'\]",
    "service_messages.py": r"{name}: answered by a, b, c",
    "state_machine.py": r"{name}: from [abc]; from [abc]; from [abc]",
}


def _lines_of(example: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "processes" / example],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return sorted(done.stdout.splitlines())


@pytest.mark.processes
@pytest.mark.parametrize("example", ALIKE)
def test_all_members_show_the_same(example: str) -> None:
    lines = _lines_of(example)
    assert len(lines) == 3
    for name, line in zip("abc", lines, strict=True):
        assert re.fullmatch(ALIKE[example].format(name=name), line)
    assert len({line.partition(" ")[2] for line in lines}) == 1


@pytest.mark.processes
@pytest.mark.parametrize("example", EACH_ONCE)
def test_one_member_at_a_time_has_it(example: str) -> None:
    lines = _lines_of(example)
    numbers = [int(line.split()[-1]) for line in lines]
    assert lines == [
        EACH_ONCE[example].format(name=name, number=number)
        for name, number in zip("abc", numbers, strict=True)
    ]
    assert sorted(numbers) == [1, 2, 3]


@pytest.mark.processes
def test_all_members_print_the_messages_in_one_order() -> None:
    lines = _lines_of("ordered_messages.py")
    seen = {name: [line[2:] for line in lines if line.startswith(name)] for name in "abc"}
    assert len(seen["a"]) == 6
    assert seen["a"] == seen["b"] == seen["c"]


@pytest.mark.processes
def test_every_number_is_drawn_once() -> None:
    drawn = [int(number) for line in _lines_of("shared_counter.py") for number in re.findall(r"\d+", line)]
    assert sorted(drawn) == list(range(1, 10))


@pytest.mark.processes
def test_every_item_is_done_once() -> None:
    lines = _lines_of("work_queue.py")
    assert [line[0] for line in lines] == list("abc")
    assert sorted(line[3:] for line in lines) == ["clean up", "sell a seat", "stop the pump"]


@pytest.mark.processes
def test_the_client_has_the_position_that_the_members_deliver() -> None:
    assert _lines_of("client.py") == ["a: one seat at 0", "b: one seat at 0", "c: has position 0"]


@pytest.mark.processes
def test_a_seat_is_sold_once() -> None:
    lines = _lines_of("sql_database.py")
    [winner] = [line[0] for line in lines if line.endswith("bought seat 7")]
    others = [line for line in lines if line[0] != winner]
    assert others == [f"{name}: '{winner}' was faster" for name in "abc" if name != winner]


def test_every_example_is_tested_and_listed() -> None:
    examples = {path.name for path in (EXAMPLES / "processes").glob("*.py")} - {"launch.py"}
    here = Path(__file__).read_text()
    listed = (EXAMPLES / "README.md").read_text()
    assert {example for example in examples if f'"{example}"' not in here} == set()
    every = examples | {path.name for path in EXAMPLES.glob("*.py")}
    assert {example for example in every if f"{example})" not in listed} == set()
