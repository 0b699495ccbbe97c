"""Checks of output paths report problems and change nothing."""

import os
from pathlib import Path

import pytest

from priocast.operations.output_paths import (
    HASHES,
    PNG,
    REPORT,
    SVG,
    OutputKind,
    directory_problem,
    empty_directory_problem,
    file_problem,
    replacing_problem,
)


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


OURS = {
    REPORT: b'<!doctype html>\n<html lang="en"><head><title>Priocast report: tickets</title>',
    SVG: b'<svg width="1">\n <dc:creator><dc:title>Priocast</dc:title>',
    PNG: b"\x89PNG\r\n\x1a\n....IHDR....tEXtSoftware\0Priocast",
    HASHES: b"0 9e94bfbaa02342ff432a3feda190ea40a0a1b2ab4f756f63c9523817fee8bde9\n",
}


@pytest.mark.parametrize("kind", OURS)
def test_only_an_earlier_output_of_the_same_kind_is_replaced(kind: OutputKind, tmp_path: Path) -> None:
    path = tmp_path / "output"
    assert replacing_problem(path, kind) == ""
    for other, content in OURS.items():
        path.write_bytes(content)
        assert (replacing_problem(path, kind) == "") == (other is kind)
    path.write_bytes(b"<!doctype html><title>my thesis</title>")
    assert f"is not a {kind.name} that Priocast wrote: it is left alone" in replacing_problem(path, kind)
    path.write_bytes(b"")
    assert replacing_problem(path, kind) == "", "an empty file, as mktemp makes it"


def test_a_device_a_pipe_and_a_link_are_left_alone(tmp_path: Path) -> None:
    pipe, link, dangling = tmp_path / "pipe", tmp_path / "link", tmp_path / "dangling"
    os.mkfifo(pipe)
    (tmp_path / "report").write_bytes(OURS[REPORT])
    link.symlink_to(tmp_path / "report")
    dangling.symlink_to(tmp_path / "missing")
    for path in (Path(os.devnull), pipe, link, dangling):
        assert f"{path} is not a regular file: it is left alone" in replacing_problem(path, REPORT)


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path, text_file: Path) -> None:
    assert empty_directory_problem(tmp_path / "new") == ""
    (tmp_path / "empty").mkdir()
    assert empty_directory_problem(tmp_path / "empty") == ""
    assert f"{tmp_path} is not empty" in empty_directory_problem(tmp_path)
    assert "is a file" in empty_directory_problem(text_file)
