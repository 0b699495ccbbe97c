"""What several commands ask about the order, in the same words."""

from typing import Annotated

import typer

from priocast.core.protocol import OrderingOptions

_DEFAULT = OrderingOptions()

Order = Annotated[
    str, typer.Option(help="The protocol that orders the messages ('priocast orders'), or auto.")
]
Starvation = Annotated[
    str, typer.Option(help="How long urgent messages may overtake: none, ageing:20ms or flush:500ms.")
]
Burst = Annotated[
    int | None,
    typer.Option(help="token-ring: messages sent at a visit of the token.", show_default="all there are"),
]
Bucket = Annotated[
    int, typer.Option(help="causal-history: timestamps that are delivered together, by priority.")
]
PartMs = Annotated[float, typer.Option(help="time-parts/...: how long a part lasts.")]
PartCount = Annotated[int, typer.Option(help="count-parts/...: how many messages are in a part.")]

BUCKET = _DEFAULT.bucket
PART_MS = _DEFAULT.part_ms
PART_COUNT = _DEFAULT.part_count
