"""Records a real run: a recorder for each life of one member, and the manifest beside them."""

from importlib.metadata import version
from pathlib import Path
from platform import python_version

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols import find_protocol
from priocast.runtime.setting import Setting
from priocast.trace.recorder import Recorder
from priocast.trace.run_directory import write_manifest
from priocast.trace.schema import Manifest
from priocast.trace.writer import TraceWriter


class Tracing:
    """One member's share in the trace of a run."""

    def __init__(
        self, directory: Path, run: str, labels: dict[str, str], setting: Setting, journal: bool
    ) -> None:
        self._directory = directory
        self._journal = journal
        self._run = run
        self._labels = labels
        self._setting = setting
        self._writers: list[TraceWriter] = []

    def open(self, me: ProcessId) -> Recorder:
        """Begin to record a life."""
        writer = TraceWriter(self._directory, me, self._journal)
        self._writers.append(writer)
        return Recorder(me, writer.emit)

    def describe(self, view: View) -> None:
        """Say what the run is, now that its members are known."""
        setting = self._setting
        protocol = find_protocol(setting.order)
        options = msgspec.to_builtins(setting.options) | msgspec.to_builtins(setting.membership)
        del options["prioritised"], options["starvation"], options["policy"], options["delivery"]
        manifest = Manifest(
            run=self._run,
            group=setting.group,
            order=setting.order,
            prioritised=setting.options.prioritised,
            starvation=str(setting.options.policy),
            orders="coordinator" if protocol.orderer(view) else "",
            priorities_act=protocol.PRIORITIES_ACT,
            members=[str(member) for member in view.members],
            policy=setting.membership.policy,
            delivery=setting.membership.delivery,
            clock="shared",
            options=options,
            labels=self._labels,
            versions={"priocast": version("priocast"), "python": python_version()},
        )
        write_manifest(self._directory, manifest)

    def close(self) -> None:
        """Write what is left."""
        for writer in self._writers:
            writer.close()
