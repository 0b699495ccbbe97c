"""The names of a log's files: what each of them holds is in its name."""

import msgspec

from priocast.core.errors import DamagedLog

SEGMENT, SNAPSHOT = "segment", "snapshot"


class LogFile(msgspec.Struct, frozen=True, order=True):
    """A snapshot or a segment, as its name says."""

    era: int
    index: int
    kind: str

    @property
    def name(self) -> str:
        """The name of the file; names are in the order of eras and indices."""
        return f"{self.era:010d}.{self.index:020d}.{self.kind}"


def file_of(name: str) -> LogFile:
    """The file with this name; raises DamagedLog if it is not one of a log."""
    era, _, rest = name.partition(".")
    index, _, kind = rest.partition(".")
    if not (era.isdecimal() and index.isdecimal() and kind in (SEGMENT, SNAPSHOT)):
        raise DamagedLog(f"the log has a file that is not of a log: {name}")
    return LogFile(int(era), int(index), kind)


def is_kept(name: str, era: int, index: int) -> bool:
    """Whether a file is a segment of this era, from this index on."""
    try:
        file = file_of(name)
    except DamagedLog:
        return False
    return file.kind == SEGMENT and file.era == era and file.index >= index
