"""The values of the cost paper's Tables 1, 2 and 3, to be shown beside ours (`docs/papers.md`)."""

from typing import NamedTuple

#: The columns of the tables: our name of an order, and its variant.
COLUMNS = tuple(
    (order, variant)
    for order in ("sequencer-ub", "token-ring", "causal-history")
    for variant in ("plain", "prioritised")
)
SHORT_NAMES = {"sequencer-ub": "UB", "token-ring": "TR", "causal-history": "CH"}


class Quartiles(NamedTuple):
    """Mean and quartiles of delivery times, in milliseconds."""

    mean: float
    first: float
    median: float
    third: float


class PaperRow(NamedTuple):
    """One group size and rate, a value for each column.

    `prioritisation_us` is of the first four columns only: the paper has none for communication history.
    """

    delivery_ms: tuple[Quartiles, ...]
    prioritisation_us: tuple[float, ...]
    collections: tuple[float, ...]


#: By members, and messages per second and member.
PAPER = {
    (4, 10): PaperRow(
        (
            Quartiles(1.45, 1.2, 1.28, 1.36),
            Quartiles(1.25, 1.08, 1.18, 1.26),
            Quartiles(6.69, 0.89, 1.26, 9.3),
            Quartiles(6.33, 0.89, 1.28, 7.52),
            Quartiles(76.77, 65.13, 81.1, 93.38),
            Quartiles(77.0, 65.16, 81.35, 93.44),
        ),
        (4.115, 13.898, 4.477, 5.297),
        (43.5, 54.25, 975.75, 985.0, 51.0, 51.0),
    ),
    (4, 40): PaperRow(
        (
            Quartiles(1.5, 1.11, 1.24, 1.34),
            Quartiles(1.46, 1.09, 1.31, 1.54),
            Quartiles(1.29, 0.72, 1.02, 1.27),
            Quartiles(1.27, 0.72, 1.02, 1.27),
            Quartiles(17.77, 13.13, 17.12, 20.84),
            Quartiles(17.86, 13.1, 17.01, 20.84),
        ),
        (4.034, 9.834, 4.255, 3.504),
        (27.0, 30.75, 62.0, 62.5, 41.25, 42.0),
    ),
    (4, 60): PaperRow(
        (
            Quartiles(1.3, 0.97, 1.09, 1.24),
            Quartiles(1.51, 1.09, 1.32, 1.53),
            Quartiles(1.7, 0.75, 1.07, 1.32),
            Quartiles(1.7, 0.76, 1.08, 1.35),
            Quartiles(12.22, 8.83, 12.6, 12.88),
            Quartiles(11.95, 8.77, 12.61, 12.91),
        ),
        (3.263, 9.257, 3.515, 3.17),
        (18.5, 22.25, 39.25, 39.5, 20.5, 19.75),
    ),
    (4, 80): PaperRow(
        (
            Quartiles(3.43, 1.17, 1.27, 1.53),
            Quartiles(2.2, 1.27, 1.42, 1.7),
            Quartiles(2.36, 0.87, 1.2, 1.51),
            Quartiles(2.75, 0.77, 1.09, 1.37),
            Quartiles(9.13, 4.97, 8.66, 8.98),
            Quartiles(9.29, 4.96, 8.62, 8.96),
        ),
        (3.52, 9.834, 3.717, 2.175),
        (17.25, 26.25, 31.5, 30.75, 17.0, 15.75),
    ),
    (4, 100): PaperRow(
        (
            Quartiles(134.25, 1.12, 1.28, 1.79),
            Quartiles(487.36, 1.35, 1.6, 2.75),
            Quartiles(4.85, 0.83, 1.17, 1.51),
            Quartiles(26.14, 0.83, 1.18, 1.52),
            Quartiles(7.1, 4.62, 4.84, 5.14),
            Quartiles(6.71, 4.59, 4.83, 5.2),
        ),
        (3.376, 11.431, 3.315, 2.03),
        (17.5, 22.75, 23.75, 23.5, 17.0, 15.75),
    ),
    (8, 10): PaperRow(
        (
            Quartiles(1.89, 1.34, 1.53, 1.7),
            Quartiles(11.35, 1.53, 1.73, 1.92),
            Quartiles(2.05, 1.37, 1.86, 2.39),
            Quartiles(2.08, 1.39, 1.87, 2.4),
            Quartiles(90.33, 85.21, 97.62, 101.79),
            Quartiles(90.96, 85.4, 94.21, 101.74),
        ),
        (3.741, 14.105, 4.527, 5.18),
        (35.5, 41.62, 228.0, 230.25, 52.75, 53.0),
    ),
    (8, 40): PaperRow(
        (
            Quartiles(3.84, 1.4, 1.62, 2.04),
            Quartiles(221.37, 1.65, 1.93, 2.86),
            Quartiles(7.85, 1.53, 2.19, 2.91),
            Quartiles(7.6, 1.5, 2.17, 2.86),
            Quartiles(23.62, 20.76, 21.18, 21.89),
            Quartiles(23.2, 20.74, 21.17, 21.68),
        ),
        (3.547, 12.12, 5.129, 4.833),
        (18.62, 25.12, 25.0, 24.75, 18.62, 18.87),
    ),
    (8, 60): PaperRow(
        (
            Quartiles(190.82, 1.42, 1.86, 3.65),
            Quartiles(670.48, 1.72, 2.51, 9.94),
            Quartiles(75.53, 1.68, 2.54, 3.69),
            Quartiles(151.49, 1.69, 2.53, 3.6),
            Quartiles(17.09, 12.96, 13.28, 17.07),
            Quartiles(17.22, 12.98, 13.27, 17.05),
        ),
        (3.685, 16.84, 4.877, 3.589),
        (19.87, 24.87, 21.0, 21.75, 17.37, 18.0),
    ),
    (8, 80): PaperRow(
        (
            Quartiles(6718.52, 6373.32, 6660.33, 6882.63),
            Quartiles(13608.62, 13.32, 604.56, 24776.3),
            Quartiles(460.35, 2.24, 3.8, 340.26),
            Quartiles(750.16, 2.21, 3.7, 34.26),
            Quartiles(86.96, 9.02, 9.88, 65.51),
            Quartiles(136.8, 9.18, 13.8, 237.24),
        ),
        (3.644, 15.255, 4.794, 5.024),
        (22.12, 25.5, 19.87, 20.12, 18.0, 18.37),
    ),
    (8, 100): PaperRow(
        (
            Quartiles(20102.49, 14290.93, 18435.5, 23159.88),
            Quartiles(25264.85, 104.6, 17349.36, 47670.92),
            Quartiles(5477.03, 5119.25, 5517.79, 5891.15),
            Quartiles(5148.22, 5.14, 65.87, 6908.98),
            Quartiles(100.05, 5.78, 9.27, 58.16),
            Quartiles(125.82, 5.7, 9.64, 145.75),
        ),
        (4.063, 15.217, 5.75, 9.411),
        (23.0, 27.0, 19.0, 19.87, 18.0, 18.12),
    ),
}


def column_of(order: str, variant: str) -> int | None:
    """Where the values of an order and variant are in a row, if the paper has them."""
    return COLUMNS.index((order, variant)) if (order, variant) in COLUMNS else None
