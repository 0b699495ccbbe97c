"""The few pieces of HTML that the report is made of. Whatever comes from outside is escaped here, once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Html:
    """Text that is HTML already."""

    text: str


Content = Html | str | int | float


def render(content: Content) -> str:
    """A value as HTML: text is escaped, integers get thousands separators."""
    if isinstance(content, Html):
        return content.text
    if isinstance(content, int):
        return f"{content:,}"
    return escape(str(content))


def element(name: str, *contents: Content, css: str = "", style: str = "") -> Html:
    """An element with its contents."""
    attributes = f' class="{escape(css)}"' if css else ""
    attributes += f' style="{escape(style)}"' if style else ""
    return Html(f"<{name}{attributes}>{''.join(map(render, contents))}</{name}>")


def tag(text: str, kind: str) -> Html:
    """A word on a coloured background: good, bad or quiet."""
    return element("span", text, css=f"tag {kind}")


def table(
    headings: Sequence[str], rows: Iterable[Sequence[Content]], numbers_from: int | None = None
) -> Html:
    """A table in a card; a row starts with its heading, columns from `numbers_from` on are numbers."""

    def css(column: int) -> str:
        return "number" if numbers_from is not None and column >= numbers_from else ""

    head = element("tr", *(element("th", text, css=css(column)) for column, text in enumerate(headings)))
    body = [
        element(
            "tr",
            *(
                element("th" if column == 0 else "td", cell, css=css(column))
                for column, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    return element("div", element("table", element("thead", head), element("tbody", *body)), css="card")


def folded(summary: str, *contents: Content) -> Html:
    """Contents that are shown when a reader opens them."""
    return element("details", element("summary", summary), *contents)


def figure(svg: str, caption: str) -> Html:
    """A figure with its caption."""
    drawing = element("div", Html(svg), css="card")
    return element("figure", drawing, element("figcaption", caption))
