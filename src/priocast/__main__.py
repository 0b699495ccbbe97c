"""The command line, as `python -m priocast`."""

from priocast.cli.main import main

if __name__ == "__main__":
    main()
