"""The replay of keys: serial executions have no anomaly, and a read that is changed is one."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from priocast.pipeline.witness_replay import ReplayedStep, replay


def _serial(seed: int, lists: bool) -> list[ReplayedStep]:
    """The steps of a serial execution on one key, some of which read what was written."""
    random, values, steps = Random(seed), list[int](), list[ReplayedStep]()
    for rank in range(random.randint(2, 20)):
        if random.random() < 0.5:
            written = [1000 + rank]
            values = [*values, *written] if lists else written
            steps.append(ReplayedStep(5, rank, 0, "append" if lists else "w", written, 0, rank))
        steps.append(ReplayedStep(5, rank, 1, "r", list(values), 0, rank))
    return steps


@given(st.integers(0, 10_000), st.booleans())
def test_a_serial_execution_has_no_anomaly(seed: int, lists: bool) -> None:
    assert list(replay(_serial(seed, lists))) == []


@given(st.integers(0, 10_000), st.booleans(), st.data())
def test_a_changed_read_is_the_only_anomaly(seed: int, lists: bool, data: st.DataObject) -> None:
    steps = _serial(seed, lists)
    reads = [index for index, step in enumerate(steps) if step.kind == "r"]
    index = data.draw(st.sampled_from(reads))
    values = steps[index].values
    other = data.draw(st.lists(st.integers(1000, 1020), max_size=3).filter(lambda drawn: drawn != values))
    steps[index] = steps[index]._replace(values=other)
    (found,) = replay(steps)
    assert found.rank == steps[index].rank
    assert found.kind in {"stale read", "early read", "lost update"}


def test_keys_do_not_share_values() -> None:
    steps = [
        ReplayedStep(key, 0, step, *of, 0, 0)
        for key in (1, 2)
        for step, of in enumerate((("w", [3]), ("r", [3])))
    ]
    assert list(replay(steps)) == []
