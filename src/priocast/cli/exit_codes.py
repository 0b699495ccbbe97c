"""The exit codes of all commands."""

import os
import signal
import sys
from threading import Timer

EXIT_VIOLATION = 1
"""A guarantee is violated."""

EXIT_PROBLEMS = 1
"""`probe` found problems."""

EXIT_UNORDERED = 1
"""`node` left a group although not all its messages were ordered."""

EXIT_NOT_ACCEPTED = 1
"""`send --quality`: fewer recipients have the message than its quality asks for."""

EXIT_OUTPUT_LOST = 1
"""`node` could not write all that it delivered to standard output."""

EXIT_STATEMENT_FAILED = 1
"""`sql`: a statement was rejected, or its transaction was aborted."""

EXIT_INVALID = 2
"""Invalid input, or an error of a peer or of the system."""

EXIT_BROKEN_PIPE = 141
"""Nothing reads the output any more; the code that a shell reports for a program that SIGPIPE (13) ended."""

EXIT_INTERRUPTED = 128 + signal.SIGINT
"""Ctrl-C; the code that a shell reports for a program that SIGINT ended."""


_EXIT_SECONDS = 10.0


def interrupted() -> int:
    """Say that Ctrl-C ended the command; return the exit code. The process ends soon, come what may."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not interrupt the exit
    at_last = Timer(_EXIT_SECONDS, os._exit, [EXIT_INTERRUPTED])  # a pool of processes may not end by itself
    at_last.daemon = True
    at_last.start()
    if sys.stderr is not None:
        lead = "\n" if sys.stderr.isatty() else ""  # the terminal has shown ^C on this line
        sys.stderr.write(f"{lead}interrupted\n")
    return EXIT_INTERRUPTED
