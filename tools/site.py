"""Builds the documentation as a site, without a network: `python -m tools.site` (`make site`).

Pages are copied to a staging directory with the places that they have in the repository. So a link to another
page, an example or a source file works in both. Anything that mkdocs warns about ends the build.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUIET = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # about versions that constraints.txt does not admit
STAGING = ROOT / "build" / "site-source"
_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
_FOLDERS = ("docs", "examples", "deploy", "src/priocast")


def stage(root: Path, staging: Path) -> None:
    """Copy everything that the site shows or links to."""
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    for page in _PAGES:
        shutil.copy(root / page, staging)
    for folder in _FOLDERS:
        if (root / folder).exists():
            shutil.copytree(root / folder, staging / folder, ignore=shutil.ignore_patterns("__pycache__"))


def build(root: Path = ROOT) -> None:
    """Stage the pages and build the site; exits if there is a warning."""
    stage(root, STAGING)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(root / "mkdocs.yml")]
    done = subprocess.run(command, env=QUIET, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    build()
