"""The study of adaptation: its load, one simulated run, and one small run on real processes."""

from pathlib import Path

import pytest

from priocast.core.errors import InvalidOption
from priocast.study.adaptive import LoadRun, carry_out, simulate, variants, weights_over_time
from priocast.study.adaptive_load import SENDERS, AdaptiveLoad
from priocast.study.adaptive_worker import SlotSample
from priocast.trace.run_directory import read_manifest
from priocast.trace.weight_samples import changes_of

SHORT = AdaptiveLoad(seconds=6, slow_seconds=1)


class TestLoad:
    def test_it_is_the_paper_s(self) -> None:
        load = AdaptiveLoad(seconds=30)
        rates = [len(load.times_us(sender)) / 30 for sender in range(SENDERS)]
        assert rates == pytest.approx([10, 10, 20, 1 / 3, 1 / 3, 1 / 3], abs=0.2)
        assert load.true_shares(1)[2] == pytest.approx(20 / 41)

    def test_the_rates_of_a_changing_load_change(self) -> None:
        load = AdaptiveLoad(seconds=40, changes=True, joins=True)
        assert max(load.true_shares(5)) == load.true_shares(5)[2]
        assert load.true_shares(15)[0] < load.true_shares(15)[3] / 20, "a has slowed down, d sends"
        assert load.true_shares(25)[2] == 0, "it pauses"
        assert (load.true_shares(24)[6], load.true_shares(26)[6] > 0.2) == (0, True), "it joins"

    def test_what_is_sent_last_is_not_counted(self) -> None:
        assert AdaptiveLoad(seconds=40, slow_seconds=3).settled == "20:34"

    @pytest.mark.parametrize("bad", [{"seconds": 1.0}, {"seconds": 1e4}, {"slow_seconds": 0.0}])
    def test_invalid_loads_are_rejected(self, bad: dict[str, float]) -> None:
        with pytest.raises(InvalidOption, match=next(iter(bad))):
            AdaptiveLoad(**bad)  # type: ignore[arg-type]


def test_the_simulator_shows_the_weights_of_each_distribution(tmp_path: Path) -> None:
    load = AdaptiveLoad(seconds=8, slow_seconds=1, joins=True)
    run = simulate(variants("sim", load)[0], tmp_path)
    assert run.violations == []
    first, adapted = run.samples[:2]
    assert set(first.weights.values()) == {1}
    assert adapted.weights["c"] > adapted.weights["a"] > adapted.weights["d"]
    assert [len(sample.weights) for sample in (first, run.samples[-1])] == [6, 7]
    manifest = read_manifest(tmp_path / "sim-adaptive")
    assert (manifest.run, manifest.labels["settled_s"]) == ("sim-adaptive", "4:6")


def test_a_sender_may_join_after_any_time(tmp_path: Path) -> None:
    """The simulator expected all members in one view after ten failure timeouts."""
    load = AdaptiveLoad(seconds=18, slow_seconds=3, joins=True)
    assert simulate(variants("sim", load)[1], tmp_path).violations == []


def test_weights_are_sampled_at_regular_times_beside_the_true_shares() -> None:
    equal, adapted = dict.fromkeys("abcdef", 1), {"a": 8, "b": 8, "c": 16, "d": 1, "e": 1, "f": 1}
    samples = [SlotSample(0.1, "1/0.0", equal), SlotSample(2.05, "1/1.0", adapted)]
    found = list(weights_over_time(LoadRun(variant=variants("sim", SHORT)[0], samples=samples)))
    assert len(found) == 60 * SENDERS
    of_c = [sample for sample in found if sample.sender == "c"]
    assert [of_c[20].share, of_c[21].share] == pytest.approx([1 / 6, 16 / 35])
    assert of_c[0].true_share == pytest.approx(20 / 43)
    assert [change.second for change in changes_of(of_c)] == [2.1]


def test_an_order_without_weights_has_no_samples() -> None:
    assert list(weights_over_time(LoadRun(variant=variants("sim", SHORT)[1], samples=[]))) == []


@pytest.mark.processes
def test_real_processes_agree_and_note_their_weights(tmp_path: Path) -> None:
    run = carry_out(variants("real", AdaptiveLoad(seconds=4, slow_seconds=1))[0], tmp_path, lambda _: None)
    assert run.same_digest
    assert run.samples and set(run.samples[0].weights) == set("abcdef")
