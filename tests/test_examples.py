"""The examples do what the README says, and are what the README shows."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _said_by(example: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / example], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


def test_the_tickets_example_shows_one_order() -> None:
    lines = [line.split(" ", 1) for line in _said_by("tickets.py")]
    seen = {name: [line for member, line in lines if member == name] for name in "abc"}
    assert len(seen["a"]) == 6
    assert seen["a"] == seen["b"] == seen["c"]
    places = {line.split(" ", 1)[1]: place for place, line in enumerate(seen["a"])}
    for name in "abc":
        assert places[f"{name} says stop"] < places[f"two seats for {name}"], "the urgent one overtook"


def test_the_counter_example_shows_a_member_that_comes_later() -> None:
    said = _said_by("counter.py")
    assert "a ['a', 'b'] the group was founded" in said
    assert "a ['a', 'b', 'c'] c joined" in said
    assert "c takes over 200" in said
    for name in "abc":
        assert f"{name} has counted to 300" in said


def test_the_preemption_example_shows_an_urgent_command_that_is_executed_next() -> None:
    said = sorted(_said_by("preemption.py"))
    steps = said[0].removeprefix("a: stop, after ").removesuffix(" of 60 steps")
    assert said == [f"{name}: stop, after {steps} of 60 steps" for name in "abc"]
    assert 11 <= int(steps) <= 14, "what no replica had begun was overtaken"


def test_every_example_is_tested() -> None:
    examples = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert examples == {"tickets.py", "counter.py", "preemption.py"}


def test_the_readme_shows_the_example() -> None:
    example = (ROOT / "examples" / "tickets.py").read_text()
    code = example.split('"""', 2)[2]
    shown = (ROOT / "README.md").read_text().split("```python\n", 1)[1].split("```", 1)[0]
    assert [line for line in shown.splitlines() if line] == [line for line in code.splitlines() if line]
