"""Bad frames of a stranger, on real networks: they are counted, and the group goes on."""

import asyncio

import pytest

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from support.groups import Cluster, entered, ids, take
from support.networks import Recorder, started
from support.waiting import run, wait_until

NOT_UTF_8 = b"\x92\xa5\xff\xfe\xff\xfe\xff\x01\x02\x03\x04"


@pytest.mark.parametrize("kind", ["memory", "tcp", "udp"])
def test_eleven_bytes_of_a_stranger_end_no_member(kind: str) -> None:
    async def test() -> None:
        cluster = Cluster(kind, "abc")
        network = cluster.factory.network("z", "abc")
        async with entered(*map(cluster.join, "abc")) as members, started(network):
            stranger = Recorder()
            port = network.open("test", ProcessId("z"), stranger)
            await stranger.wait_reaches("a", "b", "c")
            rejections = [member._driver.member.rejections for member in members]

            def is_counted() -> bool:
                for name in "abc":
                    port.send(name, [Frame(0, 0, 0, 0, NOT_UTF_8), Frame(7, 1, 0, 0, NOT_UTF_8)])
                port.flush()
                return all(each.get("ForeignFrame") for each in rejections)

            await wait_until(is_counted)
            await members[0].broadcast(b"still here")
            seen = await asyncio.gather(*(take(member, 1) for member in members))
            assert ids(seen[0]) == ids(seen[1]) == ids(seen[2])

    run(test)
