"""Where output may go: what stands in its way is told, and nothing is touched."""

import os
from pathlib import Path

import pytest

from priocast.operations.output_paths import directory_problem, file_problem


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text("dear diary")
    return path


def test_what_is_there_or_can_be_made_is_taken_and_not_made(tmp_path: Path, letter: Path) -> None:
    assert directory_problem(tmp_path) == directory_problem(tmp_path / "new" / "deep") == ""
    assert file_problem(letter) == file_problem(tmp_path / "new" / "file") == ""
    assert list(tmp_path.iterdir()) == [letter]


def test_what_is_of_the_wrong_kind_is_named(tmp_path: Path, letter: Path) -> None:
    assert directory_problem(letter) == f"{letter} is a file: choose a directory"
    below = letter / "new" / "deep"
    assert f"{below} cannot be a directory, because {letter} is a file" in directory_problem(below)
    assert file_problem(tmp_path) == f"{tmp_path} is a directory: name a file"
    assert file_problem(letter / "file") == f"{letter} is a file: choose a directory"


def test_what_this_user_may_not_write_to_is_named(
    tmp_path: Path, letter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests may run as a user who has every right."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    new = tmp_path / "new"
    assert directory_problem(new).endswith(f"give this user the right to write to {tmp_path}")
    assert file_problem(letter).endswith(f"give this user the right to write to {letter}")
