"""The command line, as `priocast` and as `python -m priocast`."""

import sys

from priocast.cli.exit_codes import EXIT_INVALID, interrupted
from priocast.core.errors import ExtraMissing
from priocast.core.extras import check_installed


def main() -> None:
    """Load the command line, if it is installed, and run a command."""
    try:
        check_installed("typer", "rich")
        from priocast.cli.main import main as run_command
    except KeyboardInterrupt:
        sys.exit(interrupted())
    except ExtraMissing as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_INVALID)
    run_command()


if __name__ == "__main__":
    main()
