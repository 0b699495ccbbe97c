"""What a process may do in a group depends on the role that its certificate gives it."""

from pathlib import Path
from typing import Any

import pytest

import priocast
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.core.view_reason import ViewReason
from priocast.membership.datagrams import frame_of
from priocast.membership.packets import EvictionNotice, FetchState, Heartbeat
from priocast.network.keys import make_member_certificate
from priocast.network.security import TlsSecurity
from priocast.network.tcp import TcpNetwork
from support.groups import Cluster, entered, quick, reading
from support.networks import Recorder, free_address, started
from support.waiting import run, wait_until


def certificate(cluster: Cluster, directory: Path, name: str, role: Role) -> TlsSecurity:
    return make_member_certificate(directory, cluster.factory.authority, name, ["test"], role=role)


@pytest.mark.parametrize("role", [Role.CLIENT, Role.OBSERVER])
def test_a_certificate_that_is_no_members_cannot_act_as_a_member(role: Role, tmp_path: Path) -> None:
    async def test() -> None:
        cluster = Cluster("tls", "abc")
        saved = []

        def save() -> bytes:
            saved.append(True)
            return b""

        state = priocast.State(save, lambda _: None)
        joining = [cluster.join(name, membership=quick(2), state=state) for name in "ab"]
        # Its network says that it is a member: the certificate decides.
        network = TcpNetwork(
            "c",
            free_address(),
            [cluster.factory.address("a")],
            security=certificate(cluster, tmp_path, "c", role),
        )
        network._roles = {"test": Role.MEMBER}
        async with entered(*joining) as members, reading(*members) as readers, started(network):
            a = members[0]
            recorder = Recorder()
            port = network.open("test", ProcessId("c", 7), recorder)
            await recorder.wait_reaches("a")
            view = a.view
            assert view is not None
            heartbeat = Heartbeat(1, view.id, view.members, 9, view.members, (0, 0))
            evil = [
                *(frame_of(FetchState(view.id, 0, b"", 0, 32)) for _ in range(200)),
                frame_of(heartbeat),
                frame_of(EvictionNotice(a.me, view.id, ViewReason())),
            ]
            port.send("a", evil)
            reason = f"not for {'a client' if role is Role.CLIENT else 'an observer'} to send"
            await wait_until(lambda: a.status().rejections.get(reason) == len(evil))
            assert a.view == view
            assert not saved
            await a.broadcast(b"still here")
            await readers[1].wait_payloads(b"still here")

    run(test)


@pytest.mark.parametrize("network", ["tls", "certified"])
def test_a_client_sends_with_a_clients_certificate_and_cannot_join_with_it(
    network: str, tmp_path: Path
) -> None:
    async def test() -> None:
        cluster = Cluster(network, "abc")
        tls = certificate(cluster, tmp_path, "shop", Role.CLIENT)
        way: dict[str, Any] = {"peers": [str(cluster.factory.address(name)) for name in "ab"]}
        if network == "certified":
            way |= {"transport": "udp", "keys": cluster.factory.keys}
        joining = [cluster.join(name, membership=quick(2)) for name in "ab"]
        async with entered(*joining) as members, reading(*members):
            async with priocast.open_client("test", client="shop", tls=tls, **way) as client:
                assert await client.send(b"one seat") == 0
            assert all(not member.status().rejections for member in members)
            with pytest.raises(priocast.UnusableKey, match="of a client of group 'test', not of a member"):
                async with priocast.join("test", member="shop", listen="127.0.0.1:0", tls=tls, **way):
                    pass
            tls = cluster.factory.certificate("c")
            async with priocast.open_client("test", client="c", tls=tls, **way) as client:
                assert await client.send(b"another") == 1, "a member's certificate is enough for a client"
            assert all(not member.status().rejections for member in members)

    run(test)
