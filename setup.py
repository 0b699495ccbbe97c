"""Builds Priocast: pure, or with the modules on the path of a message compiled (mypyc).

    pip wheel .                                            pure, for every platform
    PRIOCAST_COMPILE=1 pip wheel --no-build-isolation .    compiled, or an error that says what is missing

The second one needs mypy, msgspec, setuptools and a C compiler. A compiled wheel has the sources, too:
`PRIOCAST_PURE=1` chooses them at run time. An editable install is pure, because a compiled module would hide
the source that is edited.
"""

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Extension, setup

#: The modules on the path of a message. One that defines structs of msgspec, or errors, cannot be compiled.
#: One that checks what callers pass must not be: a compiled function raises an error of its own first.
COMPILED = {
    "core": ("assembler", "priority_queue", "protocol_interface", "time_histogram"),
    "links": ("fifo_link",),
    "membership": (
        "delivery_table",
        "epoch",
        "failure_detector",
        "heartbeat",
        "incoming_frames",
        "membership",
        "message_meter",
        "message_steps",
        "neighbours",
        "outgoing_frames",
        "own_positions",
        "progress_monitor",
        "stability",
        "stability_reporter",
        "stream",
    ),
    "protocols/flow": (
        "base",
        "consumption",
        "coordinated",
        "credit",
        "frames",
        "grants",
        "message_store",
        "ordering_protocol",
        "paced",
        "references",
        "reorder_buffer",
        "submission_validator",
        "window",
    ),
    "protocols/adaptive": ("adaptive", "round_trips", "sender_slots", "slots"),
    "protocols/agreement": ("consensus", "proposal", "sets", "skeen"),
    "protocols/history": ("all_ack", "causal", "merge", "timestamped"),
    "protocols/reorder": (
        "consumable_queue",
        "consumed_history",
        "cuts",
        "exchange",
        "exchange_pause",
        "level_order",
        "level_queues",
        "lock_block",
        "lock_queue",
        "locks",
        "message_sets",
        "offer_size",
        "overtaking_bound",
        "reordering",
    ),
    "protocols/numbering": ("base", "giver", "requester", "requests"),
    "protocols/ring": (
        "moving",
        "moving_bb",
        "moving_ub",
        "moving_uub",
        "pending_queue",
        "ring",
        "token_requests",
        "token_ring",
    ),
    "protocols/sequencer": ("bb", "ub", "uub"),
    "network": ("codec", "tcp_port", "tcp_reader"),
    "runtime": ("driver", "event_stream", "turn_schedule"),
    "replication": ("replica_driver", "replicated_state", "session_table", "submissions"),
    "replication/objects": ("object_machine",),
}
#: The commands that need the compiled modules; others are pure, among them those of an editable install.
_BUILDING = {"bdist_wheel", "build", "build_ext", "install"}


def _objection() -> str:
    """Why nothing can be compiled here; empty if it can."""
    try:
        import mypyc.build  # noqa: F401
    except ImportError:
        return "mypyc, of the package mypy, is not installed"
    from distutils.ccompiler import new_compiler
    from distutils.errors import CCompilerError, DistutilsError
    from distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    with TemporaryDirectory() as directory:
        probe = Path(directory, "probe.c")
        probe.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
        try:
            compiler.compile([str(probe)], output_dir=directory, include_dirs=[sysconfig.get_path("include")])
        except (CCompilerError, DistutilsError, OSError) as error:
            return f"there is no C compiler with the headers of Python: {error}"
    return ""


def _extensions() -> list[Extension]:
    choice = os.environ.get("PRIOCAST_COMPILE", "0")
    if choice not in ("0", "1"):
        sys.exit(f"PRIOCAST_COMPILE is {choice!r}: it must be 0 or 1, or omitted")
    if choice == "0" or not _BUILDING & set(sys.argv):
        return []
    if objection := _objection():
        sys.exit(f"cannot compile: {objection}")
    from mypyc.build import mypycify

    options = [
        f"--python-version={sys.version_info.major}.{sys.version_info.minor}",
        "--follow-imports=silent",  # what is not compiled is checked elsewhere
        "--ignore-missing-imports",  # of extras, in an isolated build
    ]
    modules = [f"src/priocast/{folder}/{name}.py" for folder, names in COMPILED.items() for name in names]
    # A lone message takes a tenth less processor time than with level 1, and no less with level 3.
    extensions: list[Extension] = mypycify([*options, *modules], opt_level="2", group_name="priocast")
    return extensions


setup(ext_modules=_extensions())
