"""Records a real run: the recorder of one member, the writer behind it, and the manifest beside it."""

from importlib.metadata import version
from pathlib import Path
from platform import python_version

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.network.interface import Introduction
from priocast.protocols import find_protocol
from priocast.trace.recorder import Recorder
from priocast.trace.run_directory import write_manifest
from priocast.trace.schema import Manifest
from priocast.trace.writer import TraceWriter


class Tracing:
    """One member's share in the trace of a run."""

    def __init__(self, directory: Path, run: str, me: ProcessId, labels: dict[str, str]) -> None:
        self._directory = directory
        self._run = run
        self._me = me
        self._labels = labels
        self._writer: TraceWriter | None = None

    def open(self) -> Recorder:
        """Begin to record."""
        self._writer = TraceWriter(self._directory, self._me)
        return Recorder(self._me, self._writer.emit)

    def describe(self, introduction: Introduction, options: OrderingOptions, view: View) -> None:
        """Say what the run is, now that its members are known."""
        settings = msgspec.to_builtins(options)
        del settings["prioritised"], settings["starvation"]
        manifest = Manifest(
            run=self._run,
            group=introduction.group,
            order=introduction.order,
            prioritised=options.prioritised,
            starvation=str(options.policy),
            orderer=find_protocol(introduction.order).orderer(view),
            members=[str(member) for member in view.members],
            clock="shared",
            options=settings,
            labels=self._labels,
            versions={"priocast": version("priocast"), "python": python_version()},
        )
        write_manifest(self._directory, manifest)

    def close(self) -> None:
        """Write what is left."""
        assert self._writer is not None
        self._writer.close()
