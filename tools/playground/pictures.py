"""Pictures of the playground for the docs: `python -m tools.playground.pictures docs/images`.

The run is that of a link, so that a picture can be taken again.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.browser import browser, show_as, take_picture
from tools.playground.assembly import assemble
from tools.playground.runtime import fetch
from tools.playground.serving import served

LINK = "seed=3&load=200&do=330:send:b:224:1;400:kill:d;480:send:c:224:1;620:heal"
PICTURES = {
    "playground": (1280, 1190, False),
    "playground-dark": (1280, 1190, True),
    "playground-phone": (390, 2000, False),
    "playground-phone-dark": (390, 2000, True),
}
_SHOWN = """
const done = arguments[0];
const look = () => (document.querySelector(".chip") ? done() : setTimeout(look, 100));
look();
"""
_SETTLED = "const done = arguments[0]; setTimeout(done, 500)"


def main(directory: str, *names: str) -> None:
    """Take the pictures of these names, or all."""
    with TemporaryDirectory() as place:
        assemble(fetch(), Path(place))
        with served(Path(place)) as url, browser() as driver:
            driver.get(f"{url}#{LINK}")
            driver.execute_async_script(_SHOWN)
            for name in names or PICTURES:
                width, height, dark = PICTURES[name]
                show_as(driver, width, height, dark=dark)
                driver.execute_async_script(_SETTLED)
                take_picture(driver, Path(directory) / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
