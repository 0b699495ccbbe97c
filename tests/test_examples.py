"""The examples run, show what the README says, and the README shows their code."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _output_of(example: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / example], capture_output=True, text=True, timeout=120, check=True
    )
    # On a busy machine a member may log that it had to wait for more than a second.
    assert [line for line in result.stderr.splitlines() if " has waited " not in line] == []
    return result.stdout.splitlines()


def test_the_tickets_example_shows_one_order() -> None:
    lines = [line.split(" ", 1) for line in _output_of("tickets.py")]
    seen = {name: [line for member, line in lines if member == name] for name in "abc"}
    assert len(seen["a"]) == 6
    assert seen["a"] == seen["b"] == seen["c"]
    positions = {line.split(" ", 1)[1]: position for position, line in enumerate(seen["a"])}
    for name in "abc":
        assert positions[f"{name} says stop"] < positions[f"two seats for {name}"], "the urgent one is first"


def test_the_counter_example_shows_a_member_that_joins_later() -> None:
    output = _output_of("counter.py")
    assert "a ['a', 'b'] the group was founded" in output
    assert "a ['a', 'b', 'c'] c joined" in output
    assert "c starts at 200" in output
    for name in "abc":
        assert f"{name} has counted to 300" in output


def test_the_preemption_example_shows_an_urgent_command_that_is_executed_next() -> None:
    output = sorted(_output_of("preemption.py"))
    steps = output[0].removeprefix("a: stop, after ").removesuffix(" of 60 steps")
    assert output == [f"{name}: stop, after {steps} of 60 steps" for name in "abc"]
    # A busy machine adds some that are started while the urgent command is on its way.
    assert 11 <= int(steps) <= 40, "it overtakes commands that no replica has started"


def test_the_key_value_store_is_the_same_at_every_member() -> None:
    output = sorted(_output_of("kv.py"))
    items = [(name, f"hello from {name}") for name in "abc"]
    assert output == [f"{name} {items}" for name in "abc"]


def test_the_bank_aborts_fewer_withdrawals_with_priorities() -> None:
    lines = _output_of("bank.py")
    aborted = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    assert aborted["prioritised"] <= aborted["plain"]
    for line in lines:
        balance = (int(line.split()[1])) * 10
        assert line.endswith(f"balances [({balance},), ({balance},), ({balance},)]"), "nothing is lost"


def test_critical_commands_make_room_for_routine_ones() -> None:
    lines = _output_of("plant_control.py")
    aborted = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    assert aborted["prioritised"] <= aborted["plain"]
    for line in lines:
        heating = 60 - int(line.split()[1])
        assert line.endswith(f"[({heating}, 60), ({heating}, 60), ({heating}, 60)]"), "the copies are equal"


def test_tickets_are_sold_once() -> None:
    served, *copies = _output_of("ticket_sales.py")
    sold = sum(map(int, served[served.index("[") + 1 : served.index("]")].split(",")))
    assert sold <= 12
    assert copies == [f"{name}: ({sold},) of 12 seats sold" for name in "abc"]


def test_the_network_example_is_short_and_carries_a_group() -> None:
    output = sorted(_output_of("own_network.py"))
    assert output == sorted(f"{name} {line}" for name in "abc" for line in {each[2:] for each in output})
    assert len(output) == 9
    program = (ROOT / "examples" / "own_network.py").read_text()
    network = program.split("class UnixPort")[1].split("async def member")[0]
    assert len([line for line in network.splitlines() if line]) <= 80


def test_the_policy_example_shows_stamps_and_a_change_of_distribution() -> None:
    lines = [line.split(" ", 1) for line in _output_of("own_policy.py")]
    seen = {name: [line for member, line in lines if member == name] for name in "abc"}
    assert len(seen["a"]) == 40
    assert seen["a"] == seen["b"] == seen["c"]
    distributions = [line.split(" ")[0].split("/")[1] for line in seen["a"]]
    assert len(set(distributions)) > 1, "the policy has proposed other weights"
    assert distributions == sorted(distributions)


def test_the_qualities_example_shows_receipts_and_deliveries() -> None:
    output = _output_of("qualities.py")
    for name in "abc":
        assert f"{name}: sell seat 7 (atomic)" in output
        assert f"{name}: the shop is open (reliable)" in output
    assert "a: atomic answered by a, b, c" in output
    assert "a: best-effort:0 answered by nobody" in output
    assert any("needs a bounded omission degree (Pn3)" in line for line in output)
    assert len(output) == 3 * 4 + 5


def test_every_example_is_tested() -> None:
    examples = {path.name for path in (ROOT / "examples").glob("*.py")}
    own = {"own_network.py", "own_policy.py", "maelstrom_node.py"}
    databases = {"bank.py", "plant_control.py", "ticket_sales.py"}
    assert (
        examples == {"tickets.py", "counter.py", "preemption.py", "qualities.py", "kv.py"} | own | databases
    )


def _code_of(example: str) -> list[str]:
    """The lines of an example, without its docstring and without empty lines."""
    return [
        line for line in (ROOT / "examples" / example).read_text().split('"""', 2)[2].splitlines() if line
    ]


def test_the_readme_shows_the_examples() -> None:
    blocks = [block.split("```", 1)[0] for block in (ROOT / "README.md").read_text().split("```python\n")[1:]]
    shown = [[line for line in block.splitlines() if line] for block in blocks]
    assert shown[0] == _code_of("tickets.py")
    assert _code_of("kv.py") in shown
    assert len(_code_of("kv.py")) <= 15
