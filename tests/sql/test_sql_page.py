"""The code on the page about replicated SQL runs as it stands."""

import pytest

from support.page import blocks_of, check_block

BLOCKS = blocks_of("sql.md")


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block: str) -> None:
    check_block(block, "sql.md")


def test_there_is_an_example_in_every_section() -> None:
    assert len(BLOCKS) >= 7
