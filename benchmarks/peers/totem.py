"""A ring of Corosync nodes: each in a network namespace of its own, joined by a bridge; removed at the end.

Corosync allows one node per machine: its clients find it by the abstract sockets of their network namespace,
and its lock files are below /run, so each node also gets mounts of its own.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from priocast.testing.child_process import ChildProcess

_NETWORK = "10.231.7"
_MTU = "9000"
KNET, UDPU = "knet", "udpu"
#: What a transport is told of the size of packets; knet finds it out.
_PACKETS = {KNET: "", UDPU: "netmtu: 8982"}


@contextmanager
def totem_ring(nodes: int, directory: Path, transport: str) -> Iterator[list[list[str]]]:
    """Start the nodes; yields, for each, the command prefix that runs a client beside it."""
    prefix = f"pp{os.getpid() % 10_000}"
    with ExitStack() as stack:
        bridge = f"{prefix}b"
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("link", "set", bridge, "mtu", _MTU, "up")
        within = [_add_node(stack, prefix, bridge, index) for index in range(nodes)]
        configuration = directory / "corosync.conf"
        configuration.write_text(ring_configuration(nodes, transport), encoding="ascii")
        for index, command in enumerate(within):
            mounts = "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/corosync"
            node = ["unshare", "-m", "sh", "-c", f"{mounts} && exec corosync -f -c {configuration}"]
            stack.enter_context(ChildProcess(f"corosync {index}", [*command, *node]))
        yield within


def _add_node(stack: ExitStack, prefix: str, bridge: str, index: int) -> list[str]:
    """Make a namespace with an address on the bridge."""
    name, outside, inside = f"{prefix}n{index}", f"{prefix}o{index}", f"{prefix}i{index}"
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("link", "add", outside, "mtu", _MTU, "type", "veth", "peer", "name", inside, "mtu", _MTU)
    _ip("link", "set", inside, "netns", name)
    _ip("link", "set", outside, "master", bridge, "up")
    _ip("-n", name, "addr", "add", f"{_NETWORK}.{index + 1}/24", "dev", inside)
    _ip("-n", name, "link", "set", inside, "up")
    _ip("-n", name, "link", "set", "lo", "up")
    return ["ip", "netns", "exec", name]


def ring_configuration(nodes: int, transport: str) -> str:
    """The configuration of all nodes: a window of 100, 25 messages a visit, nothing encrypted."""
    listed = "\n".join(
        f"  node {{\n ring0_addr: {_NETWORK}.{index + 1}\n nodeid: {index + 1}\n name: n{index}\n }}"
        for index in range(nodes)
    )
    return f"""totem {{
  version: 2
  cluster_name: peers
  transport: {transport}
  {_PACKETS[transport]}
  window_size: 100
  max_messages: 25
  crypto_cipher: none
  crypto_hash: none
  token: 5000
}}
nodelist {{
{listed}
}}
system {{
  sched_rr: no
  move_to_root_cgroup: no
}}
logging {{
  to_syslog: no
  to_stderr: yes
}}
"""


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
