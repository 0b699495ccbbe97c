"""The live page in a real browser: what it shows of a group, and how it changes an order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from tools.browser import browser, missing_browser, show_as

from priocast.core.priority import BACKGROUND, URGENT
from priocast.operations.group_console import GroupConsole
from priocast.runtime.admin.server import AdminServer
from priocast.runtime.admin.token_file import RUN_DIRECTORY
from priocast.runtime.group import Group
from priocast.runtime.node import Node
from support.nodes import nodes
from support.waiting import PATIENCE_SECONDS, run

MISSING = missing_browser()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no browser: {MISSING}")


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    """One browser for all tests here."""
    with browser() as made:
        yield made


@pytest.fixture(autouse=True)
def token_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tokens are, for this test only."""
    monkeypatch.setenv(RUN_DIRECTORY, str(tmp_path / "run"))
    return tmp_path / "run"


async def in_browser(act: Callable[[], Any]) -> Any:
    """Do something with the browser, while the event loop of the nodes goes on."""
    return await asyncio.to_thread(act)


async def shown(driver: Chrome, condition: Callable[[], Any], what: str) -> None:
    """Wait until the page shows something."""
    last = ""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await in_browser(condition):
                last = await in_browser(lambda: driver.find_element(By.TAG_NAME, "body").text)
            return
    raise AssertionError(f"the page does not show {what}; it shows:\n{last}")


def text(driver: Chrome, selector: str) -> str:
    """The text of an element, as it is at this moment."""
    return str(
        driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)
    )


def errors_of(driver: Chrome) -> list[str]:
    """What went wrong in the page since the last time; a server that has ended, or rejects, is no error."""
    entries: list[dict[str, str]] = driver.get_log("browser")  # type: ignore[no-untyped-call]
    messages = [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
    return [each for each in messages if "ERR_" not in each and "403" not in each]


async def load(node: Node, group: str) -> None:
    """Broadcast faster than is consumed, urgent and other messages."""
    handle = Group(node.groups[group])

    async def consume() -> None:
        async for _ in handle:
            await asyncio.sleep(0.002)

    async def send() -> None:
        while True:
            for priority in (BACKGROUND, BACKGROUND, BACKGROUND, URGENT):
                await handle.broadcast(b"seat", priority)
            await asyncio.sleep(0.002)

    await asyncio.gather(consume(), send())


def test_a_node_shows_its_group_and_an_urgent_message_overtaking(driver: Chrome) -> None:
    async def look(url: str) -> None:
        await in_browser(lambda: driver.get(url))
        await shown(driver, lambda: "live" in text(driver, "#connection"), "that it is connected")
        await shown(driver, lambda: "overtook" in text(driver, "#overtaking"), "a message that overtakes")
        await shown(driver, lambda: "urgent" in text(driver, "#priorities"), "the priorities")
        row = "#priorities tbody tr:last-child"
        await shown(driver, lambda: text(driver, f"{row} td:nth-child(6)").endswith("s"), "the oldest wait")
        assert text(driver, f"{row} td:first-child") == "background"
        await shown(driver, lambda: text(driver, "#members tbody").startswith("a"), "the members")
        assert "the group was founded" in text(driver, "#views")
        assert text(driver, "#title") == "tickets"

    run(_with_load(look, driver))


def _with_load(look: Callable[[str], Awaitable[None]], driver: Chrome) -> Callable[[], Awaitable[None]]:
    """A test of the page of a node whose group is under load."""

    async def test() -> None:
        async with nodes(1, "tickets") as (node,), node.serve_admin("127.0.0.1:0") as admin:
            loading = asyncio.create_task(load(node, "tickets"))
            await look(admin.url)
            loading.cancel()
        assert not await in_browser(lambda: errors_of(driver))

    return test


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_the_screen_light_and_dark(driver: Chrome, width: int, dark: bool) -> None:
    async def look(url: str) -> None:
        await in_browser(lambda: show_as(driver, width, 900, dark=dark))
        await in_browser(lambda: driver.get(url))
        await shown(driver, lambda: "urgent" in text(driver, "#priorities"), "the priorities")
        wide = await in_browser(lambda: driver.execute_script("return document.documentElement.scrollWidth"))
        assert wide <= width
        colour = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        brightness = sum(await in_browser(lambda: driver.execute_script(colour))) / 3
        assert (brightness < 128) is dark

    run(_with_load(look, driver))


def change_to(driver: Chrome, order: str, token: str) -> None:
    chosen = Select(driver.find_element(By.ID, "order"))
    chosen.select_by_visible_text(order)
    if token:
        driver.find_element(By.ID, "token").send_keys(token)
    driver.find_element(By.CSS_SELECTOR, "#order-form button").click()


def the_token_in(directory: Path) -> str:
    [path] = directory.iterdir()
    return path.read_text()


def test_the_order_is_changed_with_the_token_which_is_asked_for_once(
    driver: Chrome, token_directory: Path
) -> None:
    async def look(url: str) -> None:
        await in_browser(lambda: driver.get(url))
        await shown(driver, lambda: "sequencer-ub" in text(driver, "#subtitle"), "the order")

        def result() -> str:
            return text(driver, "#order-result")

        await in_browser(lambda: change_to(driver, "causal-history", ""))
        await shown(driver, lambda: "token" in result(), "that a token is needed")
        await in_browser(lambda: change_to(driver, "causal-history", "guessed"))
        await shown(driver, lambda: "needs the token" in result(), "that this is not the token")
        await in_browser(lambda: change_to(driver, "causal-history", the_token_in(token_directory)))
        await shown(driver, lambda: "causal-history" in text(driver, "#subtitle"), "the new order")
        await in_browser(lambda: change_to(driver, "all-ack", ""))
        await shown(driver, lambda: "all-ack" in text(driver, "#subtitle"), "the next order")
        await shown(driver, lambda: "the order changed to all-ack" in text(driver, "#views"), "the reason")
        changes = await in_browser(lambda: text(driver, "#views").count("the order changed to"))
        assert changes == 2, "neither the missing nor the guessed token changed anything"

    run(_with_load(look, driver))


def test_the_console_shows_all_members_and_one_that_has_gone(driver: Chrome) -> None:
    async def test() -> None:
        async with nodes(2, "tickets") as made, made[0].serve_admin("127.0.0.1:0") as first:
            second = made[1].serve_admin("127.0.0.1:0")
            await second.__aenter__()
            addresses = [each.url.removeprefix("http://").removesuffix("/") for each in (first, second)]
            async with AdminServer(GroupConsole(addresses), "127.0.0.1:0") as console:
                await in_browser(lambda: driver.get(console.url))
                states = "#members tbody tr td:nth-child(2)"
                await shown(driver, lambda: text(driver, "#members tbody").count("active") == 2, states)
                await second.__aexit__(None, None, None)
                await shown(driver, lambda: addresses[1] in text(driver, "#problems"), "the missing node")
                assert addresses[0] not in await in_browser(lambda: text(driver, "#problems"))

    run(test)
