"""A real browser without a screen, for tests and pictures of pages: Chromium, driven by selenium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
LOAD_SECONDS = 120.0


def missing_browser() -> str:
    """Why no browser can be driven here; empty if one can."""
    if _found(_BROWSERS) is None:
        return f"there is none of {', '.join(_BROWSERS)} (on Debian: apt install chromium chromium-driver)"
    if shutil.which("chromedriver") is None:
        return "there is no chromedriver (on Debian: apt install chromium-driver)"
    return ""


@contextmanager
def browser(width: int = 1280, height: int = 900, *, dark: bool = False) -> Iterator[Chrome]:
    """A browser with a window of this size, which prefers light or dark pages."""
    options = ChromeOptions()
    options.binary_location = _found(_BROWSERS) or ""
    with TemporaryDirectory(prefix="priocast-browser-", ignore_cleanup_errors=True) as directory:
        for argument in (*_ARGUMENTS, f"--user-data-dir={directory}", f"--window-size={width},{height}"):
            options.add_argument(argument)
        driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            driver.set_page_load_timeout(LOAD_SECONDS)
            driver.set_script_timeout(LOAD_SECONDS)
            show_as(driver, width, height, dark=dark)
            yield driver
        finally:
            driver.quit()


def show_as(driver: Chrome, width: int, height: int, *, dark: bool) -> None:
    """Show pages in this size, light or dark."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def take_picture(driver: Chrome, path: Path) -> None:
    """Write a picture of what is shown, as PNG with 256 colours: that is less than half of the size.

    They are chosen to cover what occurs, however rarely: a small swatch keeps its colour.
    """
    with Image.open(BytesIO(driver.get_screenshot_as_png())) as picture:
        colours = picture.convert("RGB")
        reduced = colours.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
        reduced.save(path, optimize=True)


def _found(names: tuple[str, ...]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)
