"""The command line, as `priocast` and as `python -m priocast`."""

import sys

from priocast.cli.exit_codes import interrupted


def main() -> None:
    """Load the commands, which takes a moment, and run one of them."""
    try:
        from priocast.cli.main import main as run_command
    except KeyboardInterrupt:
        sys.exit(interrupted())
    run_command()


if __name__ == "__main__":
    main()
