"""The soak: a short run with real processes, and the judgement of what they use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.soak.usage import Sample, growth_of, sample_of

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 900


@pytest.mark.processes
@pytest.mark.spark
@pytest.mark.timeout(LIMIT_SECONDS)
def test_a_short_soak_violates_nothing() -> None:
    """Its faults are always the same; `make soak` draws others."""
    ran = subprocess.run(
        [sys.executable, "-m", "tools.soak", "--minutes", "0.2", "--seed", "2026"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "guarantees hold" in ran.stdout
    assert "nothing was violated" in ran.stdout


def samples(seconds: int, megabytes_more: float = 0, descriptors_more: int = 0) -> list[Sample]:
    """A process that warms up, and then grows evenly by this much."""
    return [
        Sample(float(at), 60 + megabytes_more * at / seconds, round(20 + descriptors_more * at / seconds))
        for at in range(seconds + 1)
    ]


def test_a_process_that_grows_is_a_violation() -> None:
    assert growth_of("a", 1, samples(600)).violation == ""
    assert growth_of("a", 1, samples(600, megabytes_more=10)).violation == ""
    assert "memory of a grew" in growth_of("a", 1, samples(600, megabytes_more=100)).violation
    assert "descriptors of a grew" in growth_of("a", 1, samples(600, descriptors_more=50)).violation


def test_a_process_that_was_just_started_is_not_judged() -> None:
    assert growth_of("a", 1, samples(30, megabytes_more=100)).violation == ""


def test_a_sample_is_of_a_process_that_runs() -> None:
    mine = sample_of(os.getpid())
    assert mine is not None
    assert mine.megabytes > 1
    assert mine.descriptors > 2
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
        assert sample_of(ended.pid) is None
