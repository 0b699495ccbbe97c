"""Options that several commands share, declared once so that names and help texts cannot differ."""

from pathlib import Path
from typing import Annotated

import typer

from priocast.core.errors import InvalidOption
from priocast.core.protocol import OrderingOptions
from priocast.network.security import TlsSecurity

_DEFAULT = OrderingOptions()
BUCKET = _DEFAULT.bucket
ACKNOWLEDGE_MS = _DEFAULT.acknowledge_ms
PART_MS = _DEFAULT.part_ms
PART_COUNT = _DEFAULT.part_count
ADAPTATION = _DEFAULT.adaptation
MASTER = "local[*]"

# Ordering

Order = Annotated[
    str, typer.Option(help="The ordering protocol (see 'priocast orders'), or auto: chosen by the load.")
]
FixedOrder = Annotated[str, typer.Option(help="The ordering protocol (see 'priocast orders').")]
Starvation = Annotated[
    str,
    typer.Option(help="How overtaking is bounded: none, ageing:20ms, or flush:500ms (periodic release)."),
]
Burst = Annotated[
    int | None,
    typer.Option(help="token-ring: most messages sent per visit of the token.", show_default="no limit"),
]
Bucket = Annotated[
    int,
    typer.Option(help="causal-history, all-ack: timestamps per bucket; a bucket is sorted by priority."),
]
AcknowledgeMs = Annotated[
    float, typer.Option(help="all-ack: how long a silent member lets the others wait, in milliseconds.")
]
PartMs = Annotated[float, typer.Option(help="time-parts/...: duration of a part, in milliseconds.")]
PartCount = Annotated[int, typer.Option(help="count-parts/...: messages per part.")]
Adaptation = Annotated[str, typer.Option(help="adaptive: the policy that gives slots to members.")]

_ONLY_FOR = {
    "burst": ("token-ring",),
    "bucket": ("causal-history", "all-ack"),
    "acknowledge_ms": ("all-ack",),
    "part_ms": ("time-parts",),
    "part_count": ("count-parts",),
    "adaptation": ("adaptive",),
}


def check_order_options(context: typer.Context, order: str) -> None:
    """Reject an option that the chosen protocol would ignore."""
    for name, protocols in _ONLY_FOR.items():
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if not set(protocols) & set(order.split("/")):
            raise InvalidOption(
                f"--{name.replace('_', '-')} applies to {' and '.join(protocols)} only, but --order is "
                f"{order}: omit it, or choose {' or '.join(protocols)}"
            )


# Groups of real processes under load

Members = Annotated[int, typer.Option(help="Number of member processes.")]
Load = Annotated[
    float, typer.Option(help="Offered load, as a multiple of the load that saturates the group.")
]
Seconds = Annotated[float, typer.Option(help="How long each run broadcasts messages, in seconds.")]
HandlingUs = Annotated[
    int, typer.Option(help="Time that a member takes to handle a message, in microseconds.")
]

# Spark and output

Master = Annotated[str, typer.Option(help="The Spark master: local\\[*], or the URL of a cluster.")]
Jobs = Annotated[int, typer.Option(min=0, help="Number of processes; 0: one per core.")]
StudyDirectory = Annotated[Path, typer.Option(help="Directory for the traces and the report.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

# Connections

SendQuality = Annotated[
    str | None,
    typer.Option(
        "--quality",
        help="Send with a quality of service, beside the total order: best-effort:N, at-least:N, reliable, "
        "causal, atomic, tight, delta:MILLISECONDS or unreliable.",
        show_default="total order",
    ),
]
TlsCertificate = Annotated[
    Path | None, typer.Option(help="Certificate of this process (TCP with TLS, or UDP).")
]
TlsKey = Annotated[Path | None, typer.Option(help="Private key of the certificate.")]
TlsAuthority = Annotated[Path | None, typer.Option(help="Certificate of the authority.")]
TlsRevoked = Annotated[Path | None, typer.Option(help="List of revoked certificates.")]


def tls_of(
    certificate: Path | None, key: Path | None, authority: Path | None, revoked: Path | None
) -> TlsSecurity | None:
    """The TLS files: all or none, except for the list of revoked certificates."""
    if certificate is not None and key is not None and authority is not None:
        return TlsSecurity(certificate, key, authority, revoked)
    if [certificate, key, authority, revoked] != [None] * 4:
        raise InvalidOption("TLS needs all of --tls-certificate, --tls-key and --tls-authority")
    return None
