"""`priocast keys`: members and nodes accept what it creates, and it overwrites nothing."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from priocast.cli.main import app
from priocast.core.errors import PriocastError
from priocast.core.role import Role
from priocast.network.keys import read_group_keys
from priocast.network.revocation import read_revocations
from priocast.network.security import TlsSecurity
from support.command import command_error


def created(*arguments: str) -> str:
    """The output of the command, run in this process."""
    result = CliRunner().invoke(app, ["keys", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def rejection(*arguments: str) -> str:
    with pytest.raises(PriocastError) as error:
        app(["keys", *arguments], standalone_mode=False)
    return str(error.value)


def test_authority_and_member_certificate(tmp_path: Path) -> None:
    assert "keep it secret" in created("authority", "--out", str(tmp_path / "safe"))
    output = created(
        "member", "a", "--group", "tickets", "--group", "audit", "--out", str(tmp_path / "a"),
        "--authority", str(tmp_path / "safe"),
    )  # fmt: skip
    assert "a may join tickets, audit for 365 days" in output
    security = TlsSecurity(tmp_path / "a/a.crt", tmp_path / "a/a.key", tmp_path / "safe/authority.crt")
    security.contexts()
    assert security.roles_of("a") == {"tickets": Role.MEMBER, "audit": Role.MEMBER}
    for secret in ("safe/authority.key", "a/a.key"):
        assert stat.S_IMODE((tmp_path / secret).stat().st_mode) == 0o600
    again = command_error("keys", "authority", "--out", str(tmp_path / "safe"))
    assert "authority.key already exists" in again


def test_key_of_a_group_over_udp(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "tickets.key"
    assert "copy it to every member" in created("group", str(path))
    assert [len(key) for key in read_group_keys(path)] == [32]
    assert "already exists" in rejection("group", str(path))


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    out = str(tmp_path)
    assert "cannot read" in rejection("member", "a", "--group", "tickets", "--out", out)
    created("authority", "--out", out)
    assert "'a b'" in rejection("member", "a", "--group", "a b", "--out", out)
    assert not (tmp_path / "a.key").exists()


def test_nothing_is_created_unless_everything_can_be(tmp_path: Path) -> None:
    file, out = tmp_path / "file", tmp_path / "keys"
    file.touch()
    assert "is a file: choose a directory" in rejection("authority", "--out", str(file))
    assert "is a file: choose a directory" in rejection("member", "a", "--group", "g", "--out", str(file))
    assert "is a file: choose a directory" in rejection("group", str(file / "tickets.key"))
    (out / "authority.crt").mkdir(parents=True)
    assert "authority.crt already exists" in rejection("authority", "--out", str(out))
    assert [path.name for path in out.iterdir()] == ["authority.crt"]


def test_validity_is_at_most_a_hundred_years(tmp_path: Path) -> None:
    out = tmp_path / "keys"
    for command in (("authority",), ("member", "a", "--group", "g")):
        result = CliRunner().invoke(app, ["keys", *command, "--days", "999999999", "--out", str(out)])
        assert result.exit_code == 2
        assert "36500" in result.stderr
    assert not out.exists()


def test_help_has_examples() -> None:
    assert "priocast keys member a --group tickets --group audit" in created("--help")


@pytest.mark.parametrize(
    ("command", "role", "may"),
    [
        ("client", Role.CLIENT, "shop may send to tickets"),
        ("observer", Role.OBSERVER, "shop may observe tickets"),
    ],
)
def test_certificates_of_clients_and_observers(command: str, role: Role, may: str, tmp_path: Path) -> None:
    created("authority", "--out", str(tmp_path))
    assert may in created(command, "shop", "--group", "tickets", "--out", str(tmp_path))
    security = TlsSecurity(tmp_path / "shop.crt", tmp_path / "shop.key", tmp_path / "authority.crt")
    assert security.roles_of("shop") == {"tickets": role}
    assert "already exists" in rejection("member", "shop", "--group", "tickets", "--out", str(tmp_path))


def test_certificates_are_revoked_one_after_the_other(tmp_path: Path) -> None:
    created("authority", "--out", str(tmp_path))
    assert "0 revoked" in created("revoke", "--out", str(tmp_path))
    for count, name in enumerate("ab", 1):
        created("member", name, "--group", "tickets", "--out", str(tmp_path))
        output = created("revoke", str(tmp_path / f"{name}.crt"), "--out", str(tmp_path))
        assert f"wrote {tmp_path / 'revoked.crl'}: {count} revoked" in output
    assert len(read_revocations(tmp_path / "revoked.crl")) == 2
    assert "cannot read" in rejection("revoke", str(tmp_path / "none.crt"), "--out", str(tmp_path))


def test_the_key_of_a_group_is_changed_in_three_steps(tmp_path: Path) -> None:
    path = str(tmp_path / "tickets.key")
    created("group", path)
    assert [created("rotate", path, step).split()[2] for step in ("add", "use", "drop")] == ["2", "2", "1"]
    assert "it is not the time to drop one" in rejection("rotate", path, "drop")
