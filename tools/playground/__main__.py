"""python -m tools.playground DIRECTORY: builds the page of the playground there."""

import sys
from pathlib import Path

from tools.playground.assembly import assemble
from tools.playground.runtime import RuntimeMissing, fetch


def main(directory: str) -> None:
    try:
        assemble(fetch(), Path(directory))
    except RuntimeMissing as error:
        sys.exit(f"error: {error}")
    print(f"built; to open it: python3 -m http.server --directory {directory}, then localhost:8000")


if __name__ == "__main__":
    main(*sys.argv[1:])
