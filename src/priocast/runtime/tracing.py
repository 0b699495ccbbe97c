"""Records the trace of a real run: a recorder for each incarnation of one member, and the manifest."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols import find_protocol
from priocast.runtime.configuration import MemberConfiguration
from priocast.trace.recorder import Recorder
from priocast.trace.remote_directory import RemoteDirectory, RunLocation, first_line, parse_location
from priocast.trace.run_directory import write_manifest
from priocast.trace.schema import Manifest
from priocast.trace.writer import TraceWriter


class Tracing:
    """One member's part of the trace of a run."""

    def __init__(
        self,
        location: str,
        run: str,
        labels: dict[str, str],
        configuration: MemberConfiguration,
        journal: bool,
    ) -> None:
        self._location = location
        self._directory: RunLocation = Path(location)
        self._journal = journal
        self._run = run
        self._labels = labels
        self._configuration = configuration
        self._writers: list[TraceWriter] = []

    def prepare(self) -> None:
        """Create the directory, and check before the run that it can be written to.

        A storage in the network may let it wait: not for the thread of the event loop.
        """
        with self._writing():
            self._directory = parse_location(self._location)
            if isinstance(self._directory, RemoteDirectory):
                self._directory.check()
                return
            self._directory.mkdir(parents=True, exist_ok=True)
            TemporaryDirectory(dir=self._directory, prefix=".").cleanup()

    def open(self, me: ProcessId) -> Recorder:
        """Start to record an incarnation; the one before, if any, is over."""
        for earlier in self._writers[-1:]:
            earlier.finish()
        self._writers = [earlier for earlier in self._writers if not earlier.is_complete]
        with self._writing():
            writer = TraceWriter(self._directory, self._run, me, self._journal)
        self._writers.append(writer)
        return Recorder(me, writer.emit)

    def describe(self, view: View) -> None:
        """Write the manifest, once the members of the first view are known."""
        configuration = self._configuration
        protocol = find_protocol(configuration.order)
        options = msgspec.to_builtins(configuration.options) | msgspec.to_builtins(configuration.membership)
        del options["prioritised"], options["starvation"], options["policy"], options["delivery"]
        options["services.precision_us"] = configuration.services.precision_ns // 1000
        from importlib.metadata import version  # takes 15 ms to import

        manifest = Manifest(
            run=self._run,
            group=configuration.group,
            order=configuration.order,
            prioritised=configuration.options.prioritised,
            starvation=str(configuration.options.policy),
            orders="coordinator" if protocol.orderer(view) else "",
            priorities_act=protocol.PRIORITIES_ACT,
            members=[str(member) for member in view.members],
            policy=configuration.membership.policy,
            delivery=configuration.membership.delivery,
            clock="shared",
            options=options,
            labels=self._labels,
            versions={"priocast": version("priocast"), "python": python_version()},
        )
        with self._writing():
            write_manifest(self._directory, manifest)

    @property
    def problems(self) -> list[str]:
        """What keeps records from being written, or lost them; one line for each incarnation."""
        return [writer.problem for writer in self._writers if writer.problem]

    @property
    def rows_lost(self) -> int:
        """How many rows the records of all incarnations lack, because the disk was full for too long."""
        return sum(writer.lost for writer in self._writers)

    def close(self) -> None:
        """Write the remaining records of every incarnation; then raise the first error that occurred."""
        with ExitStack() as closing:
            for writer in self._writers:
                closing.callback(writer.close)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or first_line(error)
            raise InvalidOption(
                f"the trace cannot be written to {self._directory}: {reason}; choose another directory, or "
                "allow this user to write there"
            ) from error
