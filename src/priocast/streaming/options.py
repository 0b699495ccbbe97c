"""The options of the format `priocast`, checked before anything is read or written."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.identity import check_name
from priocast.feed.feed_files import FeedFiles
from priocast.feed.feed_log import OrderedMessages
from priocast.feed.feed_reader import FeedReader
from priocast.network.address import parse_address
from priocast.network.security import TlsSecurity

EARLIEST, LATEST = "earliest", "latest"
_WAIT_SECONDS = 30.0

_SHARED = {"group", "tls.certificate", "tls.key", "tls.authority", "tls.revoked"}
_OF_SOURCE = _SHARED | {"feeds", "directory", "start", "end", "max_messages_per_batch"}
_OF_SINK = _SHARED | {"peers", "name", "priority_column", "payload_column", "safe", "timeout_seconds"}


class StreamSource(msgspec.Struct, frozen=True):
    """Where a stream is read: feeds, or the directory of one; which part of it, and how much at a time."""

    group: str
    feeds: tuple[str, ...]
    directory: str
    start: int | str
    end: int | None
    max_messages_per_batch: int | None
    tls: TlsSecurity | None

    def open(self) -> OrderedMessages:
        """What reads it."""
        if self.directory:
            return FeedFiles(self.group, Path(self.directory))
        return FeedReader(self.group, self.feeds, self.tls, _WAIT_SECONDS)


def source_options(given: Mapping[str, str]) -> StreamSource:
    """The options of a source."""
    options = _known(given, _OF_SOURCE)
    if ("directory" in options) == ("feeds" in options):
        raise InvalidOption("give one of the options feeds (addresses of running feeds) and directory")
    start = options.get("start", EARLIEST)
    most = options.get("max_messages_per_batch")
    end = options.get("end")
    return StreamSource(
        _group(options),
        () if "directory" in options else _addresses(options, "feeds"),
        options.get("directory", ""),
        start if start in (EARLIEST, LATEST) else _number("start", start),
        None if end is None else _number("end", end),
        None if most is None else max(1, _number("max_messages_per_batch", most)),
        _tls_of(options),
    )


class StreamSink(msgspec.Struct, frozen=True):
    """Where rows are broadcast, under which name, and which columns they have."""

    group: str
    peers: tuple[str, ...]
    name: str
    priority_column: str
    payload_column: str
    safe: bool
    timeout_seconds: float
    tls: TlsSecurity | None


def sink_options(given: Mapping[str, str]) -> StreamSink:
    """The options of a sink."""
    options = _known(given, _OF_SINK)
    if "name" not in options:
        raise InvalidOption(
            "the option name is missing: the name of this sink, unique among the group's clients"
        )
    return StreamSink(
        _group(options),
        _addresses(options, "peers"),
        check_name(options["name"], "client"),
        options.get("priority_column", "priority"),
        options.get("payload_column", "payload"),
        _truth("safe", options.get("safe", "true")),
        float(_number("timeout_seconds", options.get("timeout_seconds", "60"))),
        _tls_of(options),
    )


def _known(given: Mapping[str, str], names: set[str]) -> dict[str, str]:
    options = {
        name.lower(): value
        for name, value in given.items()
        if name.lower() not in ("path", "checkpointlocation")
    }
    if unknown := sorted(options.keys() - names):
        raise InvalidOption(f"unknown option {unknown[0]!r}: choose among {', '.join(sorted(names))}")
    return options


def _group(options: Mapping[str, str]) -> str:
    if "group" not in options:
        raise InvalidOption("the option group is missing: the name of the group")
    return check_name(options["group"], "group")


def _addresses(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    addresses = tuple(each.strip() for each in options.get(name, "").split(",") if each.strip())
    if not addresses:
        raise InvalidOption(f"the option {name} is missing: one or more addresses, separated by commas")
    for address in addresses:
        parse_address(address)
    return addresses


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise InvalidOption(f"the option {name} is {text!r}: it must be a whole number")
    return int(text)


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidOption(f"the option {name} is {text!r}: choose true or false")
    return text.lower() == "true"


def _tls_of(options: Mapping[str, str]) -> TlsSecurity | None:
    files = [options.get(f"tls.{name}") for name in ("certificate", "key", "authority")]
    revoked = options.get("tls.revoked")
    if not any((*files, revoked)):
        return None
    if not all(files):
        raise InvalidOption("TLS needs all of tls.certificate, tls.key and tls.authority")
    certificate, key, authority = (Path(file) for file in files if file)
    return TlsSecurity(certificate, key, authority, Path(revoked) if revoked else None)
