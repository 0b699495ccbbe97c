"""Checks of output paths report problems and change nothing."""

import os
from pathlib import Path

import pytest

from priocast.operations.output_paths import directory_problem, file_problem


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("text")
    return path


def test_paths_that_exist_or_can_be_created_are_accepted_and_not_created(
    tmp_path: Path, text_file: Path
) -> None:
    assert directory_problem(tmp_path) == directory_problem(tmp_path / "new" / "deep") == ""
    assert file_problem(text_file) == file_problem(tmp_path / "new" / "file") == ""
    assert list(tmp_path.iterdir()) == [text_file]


def test_wrong_kind_of_path_is_reported(tmp_path: Path, text_file: Path) -> None:
    assert directory_problem(text_file) == f"{text_file} is a file: choose a directory"
    below = text_file / "new" / "deep"
    assert f"{below} cannot be created, because {text_file} is a file" in directory_problem(below)
    assert file_problem(tmp_path) == f"{tmp_path} is a directory: choose a file"
    assert file_problem(text_file / "file") == f"{text_file} is a file: choose a directory"


def test_missing_permission_is_reported(
    tmp_path: Path, text_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests may run as root, so the check of permissions is replaced."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    new = tmp_path / "new"
    assert directory_problem(new).endswith(f"this user needs write permission for {tmp_path}")
    assert file_problem(text_file).endswith(f"this user needs write permission for {text_file}")
