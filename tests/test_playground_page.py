"""The page of the playground in a real browser: the package runs there, with the same digests as here."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from tools.browser import browser, missing_browser, show_as
from tools.playground import runtime
from tools.playground.assembly import assemble, write_placeholder, zip_sources
from tools.playground.runtime import RuntimeMissing, fetch
from tools.playground.serving import served

from priocast.simulation.playground.link import parse_link
from priocast.simulation.playground.playground import play
from priocast.simulation.swarm import run_seed
from support.waiting import PATIENCE_SECONDS

MISSING = missing_browser()
LOAD_SECONDS = 5 * PATIENCE_SECONDS
in_browser = pytest.mark.skipif(bool(MISSING), reason=f"no browser: {MISSING}")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page."""
    directory = tmp_path_factory.mktemp("playground")
    try:
        assemble(fetch(), directory)
    except RuntimeMissing as error:
        pytest.skip(f"no Python for WebAssembly: {error}")
    with served(directory) as url:
        yield url


@pytest.fixture(scope="module")
def driver(page: str) -> Iterator[Chrome]:
    """A browser in which Python has been loaded, once for all tests: it takes seconds."""
    with browser() as made:
        made.get(f"{page}#load=0&do=1:heal")
        shown(made, lambda: text(made, "#status") == "stopped", LOAD_SECONDS)
        yield made


def text(driver: Chrome, selector: str) -> str:
    """The text of an element, as it is at this moment."""
    return str(
        driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
    )


def shown(driver: Chrome, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the page shows something."""
    WebDriverWait(driver, seconds, poll_frequency=0.1).until(lambda _: condition(), text(driver, "body"))


def opened(driver: Chrome, page: str, link: str) -> None:
    """Open a link in the page that is loaded already."""
    driver.get(f"{page}#{link}")
    shown(driver, lambda: text(driver, "#command") == parse_link(link).command)


def click(driver: Chrome, selector: str) -> None:
    driver.find_element(By.CSS_SELECTOR, selector).click()


def ended(driver: Chrome) -> str:
    """Press the button that ends the run; return the digest."""
    if not text(driver, "#digest"):
        click(driver, "#finish")
    shown(driver, lambda: len(text(driver, "#digest")) == 64)
    assert text(driver, "#verdict") == "all hold"
    return text(driver, "#digest")


def errors_of(driver: Chrome) -> list[str]:
    entries: list[dict[str, str]] = driver.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]


@in_browser
@pytest.mark.parametrize("seed", [3, 7])
def test_a_seed_has_the_digest_that_it_has_here(driver: Chrome, page: str, seed: int) -> None:
    opened(driver, page, f"run=drawn&seed={seed}")
    assert text(driver, "#command") == f"priocast simulate --seeds {seed}"
    assert ended(driver) == run_seed(seed).digest


@in_browser
def test_an_urgent_message_is_seen_overtaking_and_the_link_gives_the_run_again(
    driver: Chrome, page: str
) -> None:
    opened(driver, page, "seed=5&load=0&do=100:send:a:32:40;105:send:c:32:10")
    click(driver, "[data-member=b] .send.p3")
    shown(driver, lambda: "send:b:224:1" in driver.current_url)
    click(driver, "#play")
    shown(driver, lambda: "urgent message b1 overtook" in text(driver, "#overtaking"))
    for member in "abcd":
        ring = f"[data-member={member}] .newest .chip.overtook"
        shown(driver, lambda ring=ring: text(driver, ring).startswith("b1"))  # type: ignore[misc]
    click(driver, "[data-member=a] .kill")
    shown(driver, lambda: text(driver, "[data-member=a] .pill") == "down")
    shown(driver, lambda: "a failed" in text(driver, "#events"), LOAD_SECONDS)
    digest = ended(driver)
    link = driver.current_url.partition("#")[2]
    assert "kill:a" in link and link.endswith(":end")
    assert digest == play(parse_link(link)).digest
    assert not errors_of(driver)


@in_browser
def test_what_cannot_be_done_is_said(driver: Chrome, page: str) -> None:
    opened(driver, page, "members=3&load=0&do=100:kill:a")
    click(driver, "[data-member=b] .kill")
    shown(driver, lambda: "the group would stop for good" in text(driver, "#problems"))
    driver.get(f"{page}#seed=nine")
    shown(driver, lambda: "seed is 'nine'" in text(driver, "#problems"))
    assert not errors_of(driver)


@in_browser
def test_choices_start_another_run(driver: Chrome, page: str) -> None:
    opened(driver, page, "seed=5&load=50&do=1:heal")
    driver.execute_script(
        "const fields = document.getElementById('choices').elements;"
        "fields.order.value = 'token-ring'; fields.members.value = '3'; fields.priorities.value = 'plain'"
    )
    click(driver, "#choices button")
    wanted = "run=group&seed=5&order=token-ring&priorities=plain&members=3&load=50"
    shown(driver, lambda: driver.current_url.endswith(wanted) and text(driver, "#status") == "running")
    assert text(driver, "#ordering") == "token-ring, plain, primary group"
    assert ended(driver) == play(parse_link(driver.current_url)).digest


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_the_screen_light_and_dark(driver: Chrome, page: str, width: int, dark: bool) -> None:
    opened(driver, page, "members=5&load=300&do=300:heal")
    show_as(driver, width, 900, dark=dark)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    colour = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert (sum(driver.execute_script(colour)) / 3 < 128) is dark
    show_as(driver, 1280, 900, dark=False)


def test_the_sources_are_packed_the_same_way_each_time(tmp_path: Path) -> None:
    zip_sources(tmp_path / "first.zip")
    zip_sources(tmp_path / "second.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()
    with ZipFile(tmp_path / "first.zip") as archive:
        names = set(archive.namelist())
    assert "priocast/simulation/playground/bridge.py" in names and not any(
        "pipeline" in name for name in names
    )


def test_the_packed_sources_suffice(tmp_path: Path) -> None:
    zip_sources(tmp_path / "priocast.zip")
    program = (
        "from priocast.simulation.playground.bridge import Bridge; import priocast; print(priocast.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "priocast.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "priocast.zip" in done.stdout


def test_without_npm_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeMissing, match="there is no npm"):
        fetch(tmp_path / "cache")
    write_placeholder(tmp_path / "page", "There is no npm.")
    assert "There is no npm." in (tmp_path / "page" / "index.html").read_text()


def test_a_file_that_is_not_the_one_that_was_tried_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\necho other > pyodide-{runtime.PYODIDE}.tgz\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RuntimeMissing, match="is not the file that was tried"):
        fetch(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())
