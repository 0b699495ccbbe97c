"""The site: it builds without a warning, and its API reference has every public name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.site import QUIET, stage

import priocast
import priocast.sql
from priocast.core import errors
from support.page import ROOT

API = ROOT / "docs" / "api"
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def _documented(package: str) -> list[str]:
    names = [name for path in sorted(API.glob("*.md")) for name in DIRECTIVE.findall(path.read_text())]
    return [name.removeprefix(package) for name in names if name.startswith(package)]


def test_every_public_name_is_documented_once() -> None:
    of_errors = [name for name, kind in vars(errors).items() if isinstance(kind, type)]
    assert "priocast.core.errors" in _documented("")
    assert sorted([*_documented("priocast.api."), *of_errors]) == sorted(priocast.__all__)


def test_every_public_name_of_sql_is_documented_once() -> None:
    assert sorted(_documented("priocast.sql.")) == sorted(priocast.sql.__all__)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy of the pages."""
    root = tmp_path_factory.mktemp("site")
    stage(ROOT, root / "build" / "site-source")
    (root / "mkdocs.yml").write_text(
        (ROOT / "mkdocs.yml").read_text().replace("paths: [src]", f"paths: [{ROOT / 'src'}]")
    )
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    done = subprocess.run(command, cwd=root, env=QUIET, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return root / "build" / "site"


def test_pages_have_the_places_that_they_have_in_the_repository(site: Path) -> None:
    assert (site / "index.html").exists()
    assert (site / "docs" / "tutorial.html").exists()
    assert (site / "examples" / "tickets.py").exists()


def test_signatures_are_generated(site: Path) -> None:
    shown = re.sub(r"<[^>]+>", "", (site / "docs" / "api" / "joining.html").read_text())
    assert "member: str" in shown
    assert "broadcast_nowait" in shown


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"""<(?:script|img|link rel="stylesheet")[^>]* (?:src|href)="(https?:)?//""")
    for page in site.rglob("*.html"):
        assert not loading.search(page.read_text()), page
