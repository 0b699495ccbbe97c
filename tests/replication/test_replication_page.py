"""The code on the page about replicated objects runs as it stands."""

import pytest

from support.page import blocks_of, check_block

BLOCKS = blocks_of("replication.md")


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block: str) -> None:
    check_block(block, "replication.md")


def test_there_is_an_example_for_every_building_block() -> None:
    assert len(BLOCKS) >= 9
