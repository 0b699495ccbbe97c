"""The exit codes of all commands."""

import signal

EXIT_VIOLATION = 1
"""A guarantee is violated."""

EXIT_PROBLEMS = 1
"""`probe` found problems."""

EXIT_UNORDERED = 1
"""`node` left a group although not all its messages were ordered."""

EXIT_INVALID = 2
"""Invalid input, or an error of a peer or of the system."""

EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE
"""Nothing reads the output any more; the code that a shell reports for a program that SIGPIPE ended."""
