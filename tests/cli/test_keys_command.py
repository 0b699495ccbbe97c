"""`priocast keys`: what it makes is what members and nodes accept, and nothing is overwritten."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.network.keys import read_group_key
from priocast.network.security import TlsSecurity
from support.command import refusal


def made(*arguments: str) -> str:
    """What the command says; within this process, because it needs none of its own."""
    result = CliRunner().invoke(app, ["keys", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def refused(*arguments: str) -> str:
    with pytest.raises(PriocastError) as error:
        app(["keys", *arguments], standalone_mode=False)
    return str(error.value)


def test_an_authority_and_a_member_that_may_be_in_its_groups(tmp_path: Path) -> None:
    assert "keep it safe" in made("authority", "--out", str(tmp_path / "safe"))
    told = made(
        "member", "a", "--group", "tickets", "--group", "audit", "--out", str(tmp_path / "a"),
        "--authority", str(tmp_path / "safe"),
    )  # fmt: skip
    assert "a may be in tickets, audit for 365 days" in told
    security = TlsSecurity(tmp_path / "a/a.crt", tmp_path / "a/a.key", tmp_path / "safe/authority.crt")
    security.contexts()
    assert security.groups_of("a") == {"tickets", "audit"}
    for secret in ("safe/authority.key", "a/a.key"):
        assert stat.S_IMODE((tmp_path / secret).stat().st_mode) == 0o600
    again = refusal("keys", "authority", "--out", str(tmp_path / "safe"))
    assert "authority.key already exists" in again


def test_a_key_for_a_group_over_udp(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "tickets.key"
    assert "give it to every member" in made("group", str(path))
    assert len(read_group_key(path)) == 32
    assert "already exists" in refused("group", str(path))


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    out = str(tmp_path)
    assert "cannot read" in refused("member", "a", "--group", "tickets", "--out", out)
    made("authority", "--out", out)
    assert "cannot be the name of a group" in refused("member", "a", "--group", "a b", "--out", out)
    assert not (tmp_path / "a.key").exists()


def test_nothing_is_made_where_not_all_of_it_can_be(tmp_path: Path) -> None:
    file, out = tmp_path / "file", tmp_path / "keys"
    file.touch()
    assert "is a file: choose a directory" in refused("authority", "--out", str(file))
    assert "is a file: choose a directory" in refused("member", "a", "--group", "g", "--out", str(file))
    assert "is a file: choose a directory" in refused("group", str(file / "tickets.key"))
    (out / "authority.crt").mkdir(parents=True)
    assert "authority.crt is a directory: name a file" in refused("authority", "--out", str(out))
    assert [path.name for path in out.iterdir()] == ["authority.crt"]


def test_a_certificate_is_valid_for_a_hundred_years_at_most(tmp_path: Path) -> None:
    out = tmp_path / "keys"
    for command in (("authority",), ("member", "a", "--group", "g")):
        result = CliRunner().invoke(app, ["keys", *command, "--days", "999999999", "--out", str(out)])
        assert result.exit_code == 2
        assert "36500" in result.stderr
    assert not out.exists()


def test_help_has_examples() -> None:
    assert "priocast keys member a --group tickets --group audit" in made("--help")
