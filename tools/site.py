"""Builds the documentation as a site: `python -m tools.site` (`make site`).

Pages are copied to a staging directory with the places that they have in the repository. So a link to another
page, an example or a source file works in both. Anything that mkdocs warns about ends the build. Only the
playground needs a network, once; without one the site has a page that says so in its place.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.playground.assembly import assemble, write_placeholder
from tools.playground.runtime import RuntimeMissing, fetch

ROOT = Path(__file__).parent.parent
QUIET = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # about versions that constraints.txt does not admit
STAGING = ROOT / "build" / "site-source"
_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
_FOLDERS = ("docs", "examples", "deploy", "src/priocast")
_PLAYGROUND = Path("docs", "playground")


def stage(root: Path, staging: Path) -> None:
    """Copy everything that the site shows or links to."""
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    for page in _PAGES:
        shutil.copy(root / page, staging)
    for folder in _FOLDERS:
        if (root / folder).exists():
            shutil.copytree(root / folder, staging / folder, ignore=shutil.ignore_patterns("__pycache__"))
    write_placeholder(staging / _PLAYGROUND, "It was not asked for.")


def add_playground(staging: Path) -> None:
    """Put the playground where its placeholder is, if it can be built here; otherwise say why it cannot."""
    try:
        assemble(fetch(), staging / _PLAYGROUND)
    except RuntimeMissing as error:
        print(f"the site has no playground: {error}", file=sys.stderr)
        write_placeholder(staging / _PLAYGROUND, f"When it was built, {error}.")


def build(root: Path = ROOT) -> None:
    """Stage the pages and build the site; exits if there is a warning."""
    stage(root, STAGING)
    add_playground(STAGING)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(root / "mkdocs.yml")]
    done = subprocess.run(command, env=QUIET, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    build()
