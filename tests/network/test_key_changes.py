"""Keys, certificates and the revocation list change while processes run."""

import shutil
from pathlib import Path

import pytest

from network.intruders import HonestPair
from priocast.core.errors import InvalidOption, UnusableKey
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.network.address import Address
from priocast.network.keys import (
    Authority,
    make_authority,
    make_group_key,
    make_member_certificate,
    read_group_keys,
    rotate_group_key,
)
from priocast.network.revocation import read_revocations, revoke_certificates
from priocast.network.security import TlsSecurity
from priocast.network.tcp import TcpNetwork
from priocast.network.udp import UdpNetwork
from support.networks import Recorder, free_address, started
from support.waiting import run, wait_until


class Machine:
    """The files of one process, which change while it runs."""

    def __init__(self, directory: Path, name: str, authority: Authority, *groups: str) -> None:
        self.directory, self.name = directory / name, name
        self.directory.mkdir()
        self.tls = TlsSecurity(
            *(self.directory / file for file in ("own.crt", "own.key", "authority.crt", "revoked.crl"))
        )
        self.address = free_address()
        self.trust(authority)
        self.revoke(authority)
        self.certify(authority, *groups)

    def certify(self, authority: Authority, *groups: str, role: Role = Role.MEMBER) -> None:
        for path in (self.tls.certificate, self.tls.key):
            path.unlink(missing_ok=True)
        made = make_member_certificate(self.directory, authority, self.name, list(groups), role=role)
        made.certificate.rename(self.tls.certificate)
        made.key.rename(self.tls.key)

    def trust(self, *authorities: Authority) -> None:
        self.tls.authority.write_bytes(b"".join(each.certificate.read_bytes() for each in authorities))

    def revoke(self, authority: Authority, *certificates: Path) -> None:
        assert self.tls.revoked is not None
        revoke_certificates(self.tls.revoked, authority, list(certificates))

    def network(self, *peers: Address) -> TcpNetwork:
        return TcpNetwork(self.name, self.address, list(peers), security=self.tls)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "authority").mkdir()
    return make_authority(tmp_path / "authority")


def test_a_revoked_certificate_ends_its_connections_and_makes_no_more(
    authority: Authority, tmp_path: Path
) -> None:
    async def test() -> None:
        a, b, c = (Machine(tmp_path, name, authority, "test") for name in "abc")
        one, other, third = a.network(b.address, c.address), b.network(a.address), c.network(b.address)
        async with started(one, other, third):
            pair = HonestPair(one, other)
            await pair.start()
            gone = Recorder()
            third.open("test", ProcessId("c"), gone)
            await gone.wait_reaches("a", "b")
            b.revoke(authority, c.tls.certificate)
            other.reload_keys()
            await wait_until(lambda: len(other.dialled) == 1)
            await wait_until(lambda: other.rejections["revoked certificate"] > 2)  # when it dials again
            assert {identity.name for identity in other.dialled} == {"a"}
            await pair.exchange()
            assert pair.recorders[1].reached.count("a") == 1, "the connection to a stayed"

    run(test)


def test_a_certificate_for_more_groups_is_used_without_a_restart(
    authority: Authority, tmp_path: Path
) -> None:
    async def test() -> None:
        a, b = (Machine(tmp_path, name, authority, "test") for name in "ab")
        one, other = a.network(b.address), b.network(a.address)
        async with started(one, other):
            pair = HonestPair(one, other)
            await pair.start()
            for machine, network in ((a, one), (b, other)):
                with pytest.raises(UnusableKey, match="does not include group 'more'"):
                    network.open("more", ProcessId(machine.name), Recorder())
                machine.certify(authority, "test", "more")
                network.reload_keys()
            recorders = Recorder(), Recorder()
            one.open("more", ProcessId("a"), recorders[0])
            other.open("more", ProcessId("b"), recorders[1])
            await recorders[0].wait_reaches("b")
            await recorders[1].wait_reaches("a")
            await pair.exchange()

    run(test)


def test_files_that_cannot_be_used_change_nothing(authority: Authority, tmp_path: Path) -> None:
    async def test() -> None:
        a, b = (Machine(tmp_path, name, authority, "test") for name in "ab")
        one, other = a.network(b.address), b.network(a.address)
        async with started(one, other):
            pair = HonestPair(one, other)
            await pair.start()
            assert a.tls.revoked is not None
            shutil.copytree(a.directory, tmp_path / "kept")
            for path, complaint in (
                (a.tls.certificate, "not a PEM file"),
                (a.tls.key, "not a PEM file"),
                (a.tls.authority, "no certificate of an authority"),
                (a.tls.revoked, "not a revocation list"),
            ):
                path.write_text("nonsense")
                with pytest.raises(UnusableKey, match=complaint):
                    one.reload_keys()
                path.write_bytes((tmp_path / "kept" / path.name).read_bytes())
            a.certify(authority, "elsewhere")
            with pytest.raises(UnusableKey, match="does not include group 'test'"):
                one.reload_keys()
            a.certify(authority, "test", role=Role.CLIENT)
            with pytest.raises(UnusableKey, match="that of a client of group 'test', not of a member"):
                one.reload_keys()
            await pair.exchange()
            assert [recorder.reached for recorder in pair.recorders] == [["b"], ["a"]]

    run(test)


def test_the_authority_is_replaced_while_the_group_runs(authority: Authority, tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "next").mkdir()
        following = make_authority(tmp_path / "next")
        machines = a, b = [Machine(tmp_path, name, authority, "test") for name in "ab"]
        networks = one, other = a.network(b.address), b.network(a.address)
        async with started(*networks):
            pair = HonestPair(*networks)
            await pair.start()
            for machine, network in zip(machines, networks, strict=True):
                machine.trust(authority, following)
                machine.revoke(following)
                network.reload_keys()
            for machine, network in zip(machines, networks, strict=True):
                machine.certify(following, "test")
                network.reload_keys()
            await pair.exchange()
            assert [recorder.reached for recorder in pair.recorders] == [["b"], ["a"]], "still connected"
            for machine, network in zip(machines, networks, strict=True):
                machine.trust(following)
                network.reload_keys()
            await wait_until(lambda: pair.recorders[0].reached == ["b", "b"])
            await wait_until(lambda: pair.recorders[1].reached == ["a", "a"])
            await pair.exchange()
            assert set(one.rejections + other.rejections) <= {
                "certificate of another authority",
                "a peer rejected us",
            }

    run(test)


def test_the_key_of_a_group_is_changed_without_losing_a_datagram(tmp_path: Path) -> None:
    async def test() -> None:
        make_group_key(tmp_path / "a.key")
        addresses = free_address(), free_address()
        networks = []
        for name, here, there in zip("ab", addresses, reversed(addresses), strict=True):
            if name == "b":
                shutil.copy(tmp_path / "a.key", tmp_path / "b.key")
            keys = {"test": tmp_path / f"{name}.key"}
            networks.append(UdpNetwork(name, here, [there], keys=keys, incarnation=1))
        async with started(*networks):
            pair = HonestPair(*networks)
            await pair.start()
            first = read_group_keys(tmp_path / "a.key")
            for step in ("add", "use", "drop"):
                rotate_group_key(tmp_path / "a.key", step)
                networks[0].reload_keys()
                await pair.exchange()
                shutil.copy(tmp_path / "a.key", tmp_path / "b.key")
                networks[1].reload_keys()
                await pair.exchange()
            assert read_group_keys(tmp_path / "a.key") != first
            assert not networks[0].rejections and not networks[1].rejections
            (tmp_path / "a.key").write_text("nonsense")
            with pytest.raises(UnusableKey):
                networks[0].reload_keys()
            await pair.exchange()

    run(test)


def test_the_steps_of_a_change_of_the_group_key(tmp_path: Path) -> None:
    path = tmp_path / "test.key"
    old = make_group_key(path)
    for step in ("use", "drop"):
        with pytest.raises(InvalidOption, match="contains 1 key"):
            rotate_group_key(path, step)
    assert rotate_group_key(path, "add") == 2
    assert read_group_keys(path)[0] == old
    new = read_group_keys(path)[1]
    assert rotate_group_key(path, "use") == 2
    assert read_group_keys(path) == (new, old)
    assert rotate_group_key(path, "drop") == 1
    assert read_group_keys(path) == (new,)
    assert path.stat().st_mode & 0o777 == 0o600
    for _ in range(3):
        rotate_group_key(path, "add")
    with pytest.raises(InvalidOption, match="contains 4 key"):
        rotate_group_key(path, "add")


def test_a_revocation_list_grows_and_is_for_certificates_of_its_authority(
    authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    stranger = make_authority(tmp_path / "other")
    made = [make_member_certificate(tmp_path, authority, name, ["test"]).certificate for name in "ab"]
    forged = make_member_certificate(tmp_path, stranger, "c", ["test"]).certificate
    path = tmp_path / "revoked.crl"
    with pytest.raises(UnusableKey, match=r"cannot read .*: No such file"):
        read_revocations(path)
    counts = [len(revoke_certificates(path, authority, [each])) for each in (made[0], made[1], made[0])]
    assert counts == [1, 2, 2]
    assert len(read_revocations(path)) == 2
    with pytest.raises(UnusableKey, match="is not a certificate"):
        revoke_certificates(path, authority, [authority.key])
    with pytest.raises(UnusableKey, match="was not issued by"):
        revoke_certificates(path, authority, [forged])
