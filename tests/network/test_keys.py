"""Keys and certificates: created once, private, and rejected with a reason if they do not match."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from priocast.core.errors import InvalidInput, InvalidOption, Rejected, UnusableKey
from priocast.core.role import Role
from priocast.network.codec import hash_of
from priocast.network.keys import (
    Authority,
    make_authority,
    make_group_key,
    make_member_certificate,
    read_group_keys,
)
from priocast.network.security import TlsSecurity, identity_of


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path)


def test_a_certificate_names_the_roles_of_its_member(authority: Authority, tmp_path: Path) -> None:
    made = make_member_certificate(tmp_path, authority, "alice", ["tickets", "telemetry"])
    assert made.roles_of("alice") == {"tickets": Role.MEMBER, "telemetry": Role.MEMBER}
    accepting, dialling = made.contexts()
    assert accepting.minimum_version == dialling.minimum_version == 0x304, "TLS 1.3"


def test_private_files_are_private_and_never_overwritten(authority: Authority, tmp_path: Path) -> None:
    made = make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    make_group_key(tmp_path / "tickets.key")
    for path in (authority.key, made.key, tmp_path / "tickets.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UnusableKey, match="already exists"):
        make_authority(tmp_path)
    with pytest.raises(UnusableKey, match="already exists"):
        make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    with pytest.raises(UnusableKey, match="already exists"):
        make_group_key(tmp_path / "tickets.key")
    with pytest.raises(UnusableKey, match="cannot write"):
        make_group_key(tmp_path / "missing" / "tickets.key")


def test_a_certificate_is_never_overwritten(authority: Authority, tmp_path: Path) -> None:
    made = make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    before = made.certificate.read_bytes()
    made.key.unlink()
    with pytest.raises(UnusableKey, match=r"alice.crt already exists"):
        make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    assert made.certificate.read_bytes() == before
    assert not made.key.exists(), "no key without its certificate"
    authority.key.unlink()
    with pytest.raises(UnusableKey, match=r"authority.crt already exists"):
        make_authority(tmp_path)
    assert not authority.key.exists()


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o644])
def test_a_key_that_others_can_read_or_write_is_refused(
    mode: int, authority: Authority, tmp_path: Path
) -> None:
    made = make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    key = tmp_path / "tickets.key"
    make_group_key(key)
    for path in (made.key, key, authority.key):
        path.chmod(mode)
    complaint = rf"permissions {mode:04o}: others can use this key; run chmod 600"
    with pytest.raises(UnusableKey, match=f"alice.key has the {complaint}"):
        made.contexts()
    with pytest.raises(UnusableKey, match=f"tickets.key has the {complaint}"):
        read_group_keys(key)
    with pytest.raises(UnusableKey, match=f"authority.key has the {complaint}"):
        make_member_certificate(tmp_path, authority, "bob", ["tickets"])


def test_a_group_key_is_read_as_it_was_written(tmp_path: Path) -> None:
    key = make_group_key(tmp_path / "tickets.key")
    assert len(key) == 32
    assert read_group_keys(tmp_path / "tickets.key") == (key,)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("zz", "hexadecimal digits only"), ("00ff", "must have 32 bytes, not 2"), ("ü", "hexa")],
)
def test_other_content_is_not_a_group_key(content: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(content)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(UnusableKey, match=complaint):
        read_group_keys(tmp_path / "key")


def test_a_missing_group_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableKey, match=r"cannot read .*nowhere: No such file"):
        read_group_keys(tmp_path / "nowhere")


def test_names_are_checked(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="groups must name at least one group"):
        make_member_certificate(tmp_path, authority, "alice", [])
    with pytest.raises(InvalidInput, match="cannot be the name of a group"):
        make_member_certificate(tmp_path, authority, "alice", ["a/b"])
    with pytest.raises(InvalidInput, match="cannot be the name of a member"):
        make_member_certificate(tmp_path, authority, "alice:x", ["tickets"])


def test_an_authority_needs_matching_files(authority: Authority, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stranger = make_authority(other)
    with pytest.raises(UnusableKey, match="is not the key of"):
        make_member_certificate(
            tmp_path, Authority(authority.certificate, stranger.key), "alice", ["tickets"]
        )
    with pytest.raises(UnusableKey, match=r"cannot read .*nowhere"):
        make_member_certificate(
            tmp_path, Authority(tmp_path / "nowhere", authority.key), "alice", ["tickets"]
        )
    with pytest.raises(UnusableKey, match=r"not a (valid )?PEM file"):
        make_member_certificate(tmp_path, Authority(authority.key, authority.key), "alice", ["tickets"])


def test_files_that_do_not_match_are_named(authority: Authority, tmp_path: Path) -> None:
    alice = make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    bob = make_member_certificate(tmp_path, authority, "bob", ["tickets"])
    nonsense, nowhere = tmp_path / "nonsense", tmp_path / "nowhere"
    nonsense.write_text("not a key")
    for security, complaint in (
        (TlsSecurity(alice.certificate, bob.key, alice.authority), r"bob.key is not the key of .*alice.crt"),
        (TlsSecurity(nonsense, alice.key, alice.authority), "not a PEM file"),
        (TlsSecurity(alice.certificate, alice.key, nonsense), "no certificate of an authority"),
        (TlsSecurity(nowhere, alice.key, alice.authority), "cannot read .*nowhere: No such file"),
        (TlsSecurity(alice.certificate, nowhere, alice.authority), "cannot read .*nowhere: No such file"),
        (TlsSecurity(alice.certificate, alice.key, nowhere), "cannot read .*nowhere: No such file"),
    ):
        with pytest.raises(UnusableKey, match=complaint):
            security.contexts()


def test_our_own_certificate_must_have_our_name_and_be_valid_now(
    authority: Authority, tmp_path: Path
) -> None:
    alice = make_member_certificate(tmp_path, authority, "alice", ["tickets"])
    with pytest.raises(UnusableKey, match="is not a certificate of bob"):
        alice.roles_of("bob")
    with pytest.raises(UnusableKey, match="is not a certificate of alice"):
        TlsSecurity(authority.certificate, authority.key, authority.certificate).roles_of("alice")
    old = make_member_certificate(
        tmp_path, authority, "old", ["tickets"], days=1, valid_from=datetime.now(UTC) - timedelta(days=2)
    )
    with pytest.raises(UnusableKey, match="issue a new one"):
        old.roles_of("old")


def test_a_peer_has_the_roles_that_its_certificate_names() -> None:
    certificate = {
        "subjectAltName": (
            ("URI", "priocast:tickets/alice"),
            ("URI", "priocast:telemetry/alice?role=client"),
            ("URI", "priocast:telemetry/alice?role=observer"),
            ("URI", "priocast:audit/alice?role=observer"),
            ("URI", "priocast:admin/alice?role=root"),
            ("URI", "priocast:admin/alice?member"),
            ("URI", "priocast:secret/bob"),
            ("URI", "https://tickets/alice"),
            ("DNS", "priocast:dns/alice"),
        )
    }
    names = "tickets", "telemetry", "audit", "admin", "secret", "dns"
    member = identity_of(certificate, "alice", Role.MEMBER)
    assert [member.role_in(hash_of(name)) for name in names] == [
        Role.MEMBER,
        Role.CLIENT,
        Role.OBSERVER,
        None,
        None,
        None,
    ]
    client = identity_of(certificate, "alice", Role.CLIENT)
    assert client.role_in(hash_of("tickets")) is Role.CLIENT, "a process may claim a lower role"
    assert client.role_in(hash_of("audit")) is Role.OBSERVER, "but not a higher one"
    for name in ("carol", "", "alice/x"):
        with pytest.raises(Rejected, match="certificate of another member"):
            identity_of(certificate, name, Role.MEMBER)
    with pytest.raises(Rejected, match="certificate of nobody"):
        identity_of({}, "alice", Role.MEMBER)
    assert identity_of(None, "alice", Role.CLIENT).role_in(hash_of("any")) is Role.CLIENT, "without TLS"


def test_paths_may_be_passed_as_text(tmp_path: Path) -> None:
    authority = make_authority(str(tmp_path))
    assert authority == Authority(str(tmp_path / "authority.crt"), str(tmp_path / "authority.key"))
    made = make_member_certificate(str(tmp_path), authority, "alice", ["tickets"])
    as_text = TlsSecurity(str(made.certificate), str(made.key), str(made.authority))
    assert as_text == made
    assert as_text.roles_of("alice") == {"tickets": Role.MEMBER}
    assert len(as_text.contexts()) == 2
    key = make_group_key(str(tmp_path / "tickets.key"))
    assert read_group_keys(str(tmp_path / "tickets.key")) == (key,)


@pytest.mark.parametrize("given", [None, 5, b"alice.crt"])
def test_a_value_that_is_not_a_path_is_rejected_at_once(given: object) -> None:
    with pytest.raises(UnusableKey, match=f"certificate must be the path of a PEM file, not {given!r}"):
        TlsSecurity(given, "alice.key", "authority.crt")  # type: ignore[arg-type]
    with pytest.raises(UnusableKey, match=f"key must be the path of a PEM file, not {given!r}"):
        Authority("authority.crt", given)  # type: ignore[arg-type]
