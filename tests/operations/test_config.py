"""The configuration file: every key is read, and all problems are reported together."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from priocast.core.errors import InvalidOption
from priocast.core.network_properties import NetworkProperties
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing
from priocast.membership.options import MembershipOptions
from priocast.network.keys import make_authority, make_group_key, make_member_certificate
from priocast.operations.config import AdminTable, GroupTable, NodeTable, TlsTable, read_config
from priocast.operations.config_example import EXAMPLE
from priocast.services.options import ServiceOptions

SMALL = """
[node]
name = "a"
listen = "127.0.0.1:7401"
[[group]]
name = "tickets"
"""


_WITHOUT_DEFAULT_IN_EXAMPLE = (
    "window", "burst", "overtakes_max", "founders", "starvation", "state", "durability", "adapts",
)  # fmt: skip


def written(directory: Path, text: str) -> Path:
    path = directory / "group.toml"
    path.write_text(text)
    return path


def problems(directory: Path, text: str) -> list[str]:
    """The problems of a file, one line each."""
    with pytest.raises(InvalidOption) as error:
        read_config(written(directory, text))
    first, *found = str(error.value).splitlines()
    count = "a problem" if len(found) == 1 else f"{len(found)} problems"
    assert first == f"{directory / 'group.toml'} has {count}; nothing was started:"
    return [line.strip() for line in found]


def test_minimal_file(tmp_path: Path) -> None:
    plan = read_config(written(tmp_path, SMALL))
    assert (plan.name, plan.listen, plan.peers, plan.admin) == ("a", "127.0.0.1:7401", (), None)
    [group] = plan.groups
    assert (group.name, group.options) == ("tickets", OrderingOptions())
    assert group.membership == MembershipOptions(founders=1)
    assert type(plan.name) is type(plan.listen) is type(group.name) is str


def test_order_can_be_auto(tmp_path: Path) -> None:
    plan = read_config(written(tmp_path, SMALL + 'order = "auto"'))
    assert plan.groups[0].order == "auto"
    assert not plan.groups[0].membership.adapts, "set when the group is joined"
    [found] = problems(tmp_path, SMALL + "adapts = true")
    assert "adapts" in found


EVERY_KEY = """
[node]
name = "a"
listen = "0.0.0.0:7401"
advertise = "10.0.0.1:7401"
state_directory = "state"
start_seconds = 5
shutdown_seconds = 2.5
[node.admin]
listen = "10.0.0.1:9401"
allow_remote = true
[peers]
a = "10.0.0.1:7401"
b = "10.0.0.2:7401"
c = "host.example:7401"
[[group]]
name = "tickets"
prioritised = false
policy = "partitionable"
heartbeat_ms = 50
failure_ms = 250.5
rejoin = false
window = 7
trace = "trace"
trace_journal = true
[[group]]
name = "audit"
starvation = "ageing:20ms"
delivery = "safe"
founders = 2
queue_max = 10
order = "time-parts/token-ring"
burst = 4
bucket = 16
part_ms = 2.5
part_count = 100
distributed = true
overtakes_max = 8
adaptation = "decay:200"
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    plan = read_config(written(tmp_path, EVERY_KEY))
    assert plan.peers == ("10.0.0.2:7401", "host.example:7401")
    assert (plan.start_seconds, plan.shutdown_seconds) == (5, 2.5)
    assert plan.state_directory == tmp_path / "state"
    assert plan.admin is not None
    assert (plan.admin.listen, plan.admin.allow_remote) == ("10.0.0.1:9401", True)
    tickets, audit = plan.groups
    assert tickets.options == OrderingOptions(prioritised=False, window=7)
    assert tickets.membership == MembershipOptions(
        founders=3, policy="partitionable", heartbeat_ms=50, failure_ms=250.5, rejoin=False
    )
    assert (tickets.trace, tickets.trace_journal) == (str(tmp_path / "trace"), True)
    assert audit.order == "time-parts/token-ring"
    assert audit.options == OrderingOptions(
        starvation=Ageing(20_000_000),
        queue_max=10,
        burst=4,
        bucket=16,
        part_ms=2.5,
        part_count=100,
        distributed=True,
        overtakes_max=8,
        adaptation="decay:200",
    )
    assert audit.membership == MembershipOptions(founders=2, delivery="safe")
    summary = plan.describe()
    assert "group tickets: sequencer-ub, plain, partitionable, agreed delivery" in summary
    assert "a listens on 0.0.0.0:7401, advertised as 10.0.0.1:7401" in summary


WRONG = """
verbosity = 9
[node]
name = "a b"
lisen = "127.0.0.1:7401"
transport = "pigeon"
start_seconds = -1
shutdown_seconds = "soon"
[node.admin]
listen = "0.0.0.0:9401"
[node.tls]
certificate = "missing.crt"
key = 3
[peers]
b = "somewhere"
"c d" = "127.0.0.1:7403"
e = 5
[[group]]
name = "tickets"
order = "paxos"
starvation = "sometimes"
policy = "anarchy"
prioritised = 1
window = 0
queue_max = 0
failure_ms = 100
state = true
[[group]]
name = "tickets"
founders = 1000
[[group]]
order = "sequencer-ub"
"""
WRONG_KEYS = [
    "verbosity",
    "node.name",
    "node.lisen",
    "node.listen",
    "node.transport",
    "node.start_seconds",
    "node.shutdown_seconds",
    "node.admin.listen",
    "node.tls.key",
    "node.tls.authority",
    "peers.b",
    "peers.c d",
    "peers.e",
    "group.tickets.order",
    "group.tickets.starvation",
    "group.tickets.policy",
    "group.tickets.prioritised",
    "group.tickets.window",
    "group.tickets.queue_max",
    "group.tickets.failure_ms",
    "group.tickets.state",
    "group.tickets",
    "group.tickets.founders",
    "group[3].name",
]


def test_all_problems_are_reported_together_with_their_keys(tmp_path: Path) -> None:
    found = problems(tmp_path, WRONG)
    assert sorted(line.partition(": ")[0] for line in found) == sorted(WRONG_KEYS)
    by_key = dict(line.split(": ", 1) for line in found)
    assert by_key["node.lisen"] == "is not a known key; did you mean listen?"
    assert by_key["node.listen"] == "is missing: add it"
    assert by_key["verbosity"] == "is not a known key; the keys are: group, node, peers"
    assert by_key["peers.b"].startswith("'somewhere'")
    assert by_key["peers.e"] == "is 5: must be text in quotes"
    assert by_key["node.start_seconds"] == "is -1: expected `float` > 0.0"
    assert "heartbeat_ms" in by_key["group.tickets.failure_ms"]
    assert by_key["group.tickets"] == "is defined twice: give each group a unique name"


def test_infinite_times_and_nan_are_rejected(tmp_path: Path) -> None:
    text = SMALL.replace("[[group]]", "start_seconds = nan\nshutdown_seconds = inf\n[[group]]")
    wrong = {"heartbeat_ms": "nan", "slow_ms": "inf", "part_ms": "nan", "window_ms": "-inf", "founders": "0"}
    found = problems(tmp_path, text + "".join(f"{key} = {value}\n" for key, value in wrong.items()))
    keys = ["node.start_seconds", "node.shutdown_seconds", *(f"group.tickets.{key}" for key in wrong)]
    assert sorted(line.partition(": ")[0] for line in found) == sorted(keys)


def test_contradictory_peers_are_rejected(tmp_path: Path) -> None:
    node = '[node]\nname = "a"\nlisten = "127.0.0.1:7401"\n[[group]]\nname = "g"\n[peers]\n'
    assert problems(tmp_path, node + 'a = "127.0.0.1:9999"') == [
        "peers.a: is 127.0.0.1:9999, but node.listen is 127.0.0.1:7401: they must be equal"
    ]
    assert problems(tmp_path, node + 'b = "127.0.0.1:7401"') == [
        "peers.b: is 127.0.0.1:7401, the address of this node: give b its own"
    ]
    assert problems(tmp_path, node + 'b = "h:1"\nc = "h:1"') == [
        "peers.c: is h:1, the address of b: give c its own"
    ]
    everywhere = node.replace("127.0.0.1:7401", "0.0.0.0:7401")
    assert read_config(written(tmp_path, everywhere + 'a = "10.0.0.1:7401"')).peers == ()


def test_duplicate_member_is_rejected_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL + '[peers]\nb = "h:1"\nb = "h:2"\n')
    with pytest.raises(
        InvalidOption, match=r"group.toml is not valid TOML: Cannot overwrite a value \(at line 9"
    ):
        read_config(path)


def test_missing_or_malformed_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"cannot read .*none\.toml: No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidOption, match="is not valid TOML"):
        read_config(tmp_path / "bytes.toml")
    assert problems(tmp_path, "") == ["node: is missing: add it", "group: is missing: add it"]
    assert problems(tmp_path, "node = 3\ngroup = []\npeers = []") == [
        "node: is 3: expected `object`, got `int`",
        "peers: is []: expected `object`, got `array`",
        "group: is []: expected `array` of length >= 1",
    ]
    assert problems(tmp_path, SMALL.replace("[[group]]", "[node.tls]") + "[[group]]\nname = 'g'")[
        0
    ].startswith("node.tls.certificate: is missing")


def test_certificates_must_exist_match_the_member_and_cover_all_groups(tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    make_member_certificate(tmp_path, authority, "a", ["tickets"])
    make_member_certificate(tmp_path, authority, "b", ["tickets"])
    tls = '[node.tls]\ncertificate = "{0}.crt"\nkey = "{1}.key"\nauthority = "authority.crt"\n'
    plan = read_config(written(tmp_path, SMALL + tls.format("a", "a")))
    assert plan.tls is not None
    assert plan.tls.certificate == tmp_path / "a.crt"
    [foreign] = problems(tmp_path, SMALL + tls.format("b", "b"))
    assert "b.crt is not a certificate of a" in foreign
    [mixed] = problems(tmp_path, SMALL + tls.format("a", "b"))
    assert "b.key is not the key of" in mixed
    more = SMALL + '[[group]]\nname = "audit"\n' + tls.format("a", "a")
    assert [line.partition(" allows ")[2] for line in problems(tmp_path, more)] == [
        "a to join tickets, but not audit: create one for all its groups (priocast keys member)"
    ]
    assert [line.split(": ")[0] for line in problems(tmp_path, SMALL + tls.format("x", "y"))] == [
        "node.tls.certificate",
        "node.tls.key",
    ]


def test_each_group_over_udp_needs_a_key(tmp_path: Path) -> None:
    make_group_key(tmp_path / "tickets.key")
    udp = SMALL.replace('name = "a"', 'name = "a"\ntransport = "udp"\nmulticast = "239.1.2.3:7400"')
    plan = read_config(written(tmp_path, udp + 'key_file = "tickets.key"'))
    assert (plan.transport, plan.multicast, plan.groups[0].key_file) == (
        "udp",
        "239.1.2.3:7400",
        tmp_path / "tickets.key",
    )
    assert problems(tmp_path, udp) == [
        (
            "group.tickets.key_file: is missing: over UDP each group needs one; "
            "create it with priocast keys group"
        )
    ]
    for host in ("10.0.0.1", "localhost"):
        other = udp.replace("239.1.2.3", host) + 'key_file = "tickets.key"'
        [problem] = problems(tmp_path, other)
        assert problem.startswith(f"node.multicast: {host}:7400 is not a multicast address")
    [absent] = problems(tmp_path, udp + 'key_file = "none.key"')
    assert re.fullmatch(r"group.tickets.key_file: cannot read .*none.key: No such file.*", absent)
    tls = '[node.tls]\ncertificate = "tickets.key"\nkey = "tickets.key"\nauthority = "tickets.key"\n'
    [unusable] = problems(tmp_path, udp + 'key_file = "tickets.key"\n' + tls)
    assert unusable.startswith("node.tls: "), "certificates may be added, and are checked"
    assert problems(tmp_path, SMALL + 'key_file = "tickets.key"') == [
        (
            "group.tickets.key_file: applies to UDP only: "
            "remove it (over TCP the node has a certificate, [node.tls])"
        )
    ]
    tcp = SMALL.replace('name = "a"', 'name = "a"\nmulticast = "239.1.2.3:7400"\ndatagram_bytes = 9000')
    assert problems(tmp_path, tcp) == [
        f'node.{key}: applies to UDP only: remove it, or set transport = "udp"'
        for key in ("multicast", "datagram_bytes")
    ]
    large = udp.replace('"udp"', '"udp"\ndatagram_bytes = 9000') + 'key_file = "tickets.key"'
    assert read_config(written(tmp_path, large)).datagram_bytes == 9000
    [too_large] = problems(tmp_path, large.replace("9000", "70000"))
    assert too_large.startswith("node.datagram_bytes: is 70000")


def test_directories_must_be_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    text = SMALL.replace('name = "a"', 'name = "a"\nstate_directory = "file/state"') + 'trace = "file"'
    keys = [line.split(": ")[0] for line in problems(tmp_path, text)]
    assert keys == ["node.state_directory", "group.tickets.trace"]
    read_config(written(tmp_path, SMALL + 'trace = "new/deep/trace"'))
    assert not (tmp_path / "new").exists()


def test_example_is_valid_and_has_every_key(tmp_path: Path) -> None:
    plan = read_config(written(tmp_path, EXAMPLE))
    assert len(plan.peers) == 2
    assert plan.groups[0].membership == MembershipOptions(founders=3)
    options = (OrderingOptions, MembershipOptions, ServiceOptions)
    for kind in (NodeTable, TlsTable, AdminTable, GroupTable, *options):
        for field in msgspec.structs.fields(kind):
            if field.name not in ("tls", "admin", "state", "durability", "adapts", "network"):
                assert re.search(rf"^(# )?{field.name} = ", EXAMPLE, re.MULTILINE), field.name


def test_options_of_the_qualities_and_bounds_of_the_network(tmp_path: Path) -> None:
    more = "response_ms = 20\nomission_degree = 2\ndelay_ms = 1.5\ninaccessibility_ms = 300\n"
    [group] = read_config(written(tmp_path, SMALL + more)).groups
    network = NetworkProperties(omission_degree=2, delay_ns=1_500_000, inaccessibility_ns=300_000_000)
    assert group.services == ServiceOptions(response_ms=20.0, network=network)


def test_defaults_in_the_example_are_the_defaults(tmp_path: Path) -> None:
    group = EXAMPLE[EXAMPLE.index("[[group]]") :]
    example = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", group.split("# [[group]]")[0], flags=re.MULTILINE))
    for kind in (OrderingOptions, MembershipOptions, ServiceOptions):
        for field in msgspec.structs.fields(kind):
            if field.name in (*_WITHOUT_DEFAULT_IN_EXAMPLE, "network"):
                continue
            assert example["group"][0][field.name] == field.default, field.name


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        (
            'order = "agreement-skeen"\npolicy = "partitionable"',
            "group.tickets.order: is 'agreement-skeen'",
        ),
        ('order = "time-parts/agreement-skeen"\npolicy = "partitionable"', "group.tickets.order: "),
        ('order = "time-parts/paxos"', "'time-parts/paxos'"),
        ("burst = 0", "group.tickets.burst: is 0"),
        ("response_ms = 0", "group.tickets.response_ms: is 0"),
        ("held_max = 0", "group.tickets.held_max: is 0"),
        ("omission_degree = -1", "group.tickets.omission_degree: is -1"),
        ("delay_ms = 0", "group.tickets.delay_ms: is 0"),
        ("bucket = 0", "group.tickets.bucket: is 0"),
        ("part_ms = 0", "group.tickets.part_ms: is 0"),
        ("part_count = 0", "group.tickets.part_count: is 0"),
    ],
)
def test_invalid_ordering_options_are_rejected(option: str, problem: str, tmp_path: Path) -> None:
    [found] = problems(tmp_path, SMALL + option)
    assert problem in found
