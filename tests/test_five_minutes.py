"""The scripted first five minutes: the tutorial's groups run, and a demo that fails is noticed."""

import sys
from pathlib import Path

import pytest
from tools.browser import missing_browser
from tools.five_minutes import run_tutorial, watch_demo

MISSING = missing_browser()
HERE = Path(sys.executable)


def test_the_first_groups_of_the_tutorial_run_as_programs(tmp_path: Path) -> None:
    assert run_tutorial(HERE, tmp_path) == "2 programs ran"
    programs = sorted(path.name for path in tmp_path.iterdir())
    assert programs == ["tutorial_0.py", "tutorial_1.py"]
    assert "priority=priocast.URGENT" in (tmp_path / programs[1]).read_text()


def test_a_tutorial_that_does_not_run_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"tutorial_0.py failed"):
        run_tutorial(Path("/bin/false"), tmp_path)


@pytest.mark.skipif(bool(MISSING), reason=f"no browser: {MISSING}")
def test_a_demo_that_serves_no_page_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"the demo served no page:\n(.|\n)*members is 0"):
        watch_demo(HERE, tmp_path, tmp_path / "out", ("--members", "0"))
