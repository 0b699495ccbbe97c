"""Plans made from files start the nodes and groups that they describe, over every transport."""

import asyncio
from contextlib import AsyncExitStack
from math import inf, nan
from pathlib import Path

import pytest

import priocast
from priocast.core.errors import InvalidOption
from priocast.network.keys import make_authority, make_group_key, make_member_certificate
from priocast.operations.config import read_config
from priocast.operations.node_plan import NodePlan
from priocast.testing.addresses import free_addresses
from support.waiting import run

SECURITY = {
    "tcp": "",
    "tls": '[node.tls]\ncertificate = "{name}.crt"\nkey = "{name}.key"\nauthority = "authority.crt"\n',
    "udp": "",
    "udp with certificates": (
        '[node.tls]\ncertificate = "{name}.crt"\nkey = "{name}.key"\nauthority = "authority.crt"\n'
    ),
}


def plans(directory: Path, way: str) -> list[NodePlan]:
    """The plans of two members, from two files."""
    authority = make_authority(directory)
    make_group_key(directory / "tickets.key")
    addresses = dict(zip("ab", map(str, free_addresses(2)), strict=True))
    made = []
    for name, address in addresses.items():
        make_member_certificate(directory, authority, name, ["tickets"])
        path = directory / f"{name}.toml"
        transport = way[:3].replace("tls", "tcp")
        peers = "".join(f'{peer} = "{at}"\n' for peer, at in addresses.items())
        key = 'key_file = "tickets.key"\n' if transport == "udp" else ""
        path.write_text(
            f'[node]\nname = "{name}"\nlisten = "{address}"\ntransport = "{transport}"\n'
            f"{SECURITY[way].format(name=name)}[peers]\n{peers}"
            f'[[group]]\nname = "tickets"\nprioritised = false\n{key}'
        )
        made.append(read_config(path))
    return made


@pytest.mark.parametrize("seconds", [nan, inf, 0.0, -1.0, 3601.0])
def test_timeouts_must_be_positive_and_finite(seconds: float) -> None:
    for name in ("start_seconds", "shutdown_seconds"):
        with pytest.raises(InvalidOption, match=f"{name} is .*: must be above 0 and at most 3600"):
            NodePlan(name="a", listen="127.0.0.1:7401", peers=(), groups=(), **{name: seconds})  # type: ignore[arg-type]


@pytest.mark.parametrize("way", SECURITY)
def test_two_members_form_the_group_that_their_files_describe(way: str, tmp_path: Path) -> None:
    made = plans(tmp_path, way)

    async def test() -> None:
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(plan.node()) for plan in made]
            joinings = [plan.joining(node, plan.groups[0]) for plan, node in zip(made, nodes, strict=True)]
            a, b = await asyncio.gather(*(joining.__aenter__() for joining in joinings))
            for joining in joinings:
                stack.push_async_callback(joining.__aexit__, RuntimeError, RuntimeError(), None)
            await a.broadcast(b"hello")
            async for event in b:
                if isinstance(event, priocast.Delivery):
                    assert event.message.payload == b"hello"
                    break
            assert not b.status().prioritised

    run(test)


def test_summary_of_a_plan(tmp_path: Path) -> None:
    summaries = {}
    for way in SECURITY:
        directory = tmp_path / way
        directory.mkdir()
        summaries[way] = plans(directory, way)[0].describe().splitlines()
    assert summaries["tcp"][1] == "  transport: TCP without TLS: not encrypted, any process can join"
    assert summaries["tls"][1] == "  transport: TCP with TLS"
    assert summaries["udp"][1] == "  transport: UDP with group keys"
    assert summaries["udp with certificates"][1] == "  transport: UDP with group keys and certificates"
    assert summaries["tcp"][5] == "group tickets: sequencer-ub, plain, primary, agreed delivery"
