"""The campaign of the saturation study: what it covers, and that it stays affordable."""

from pathlib import Path

import pytest

from priocast.core.errors import InvalidOption
from priocast.protocols import PROTOCOLS
from priocast.study.saturation import BURSTS, LAN, PROCESSES, SLOW_MEMBER, WAN
from priocast.study.saturation_campaign import KIB, campaign, estimated_seconds, quick_campaign
from priocast.study.saturation_cells import planned_cells

PAYLOAD_BYTES_MAX = 64_000_000
RATE_BYTES_MAX = 250_000_000


def test_a_campaign_has_all_sizes_places_and_shapes(tmp_path: Path) -> None:
    cells = {planned.cell for planned in planned_cells(campaign(1), tmp_path)}
    for place, sizes in ((LAN, {2, 4, 16, 64, 256}), (WAN, {2, 4, 16, 64, 256}), (PROCESSES, {2, 4, 8, 16})):
        of_place = {cell for cell in cells if cell.place == place}
        assert sizes <= {cell.members for cell in of_place}
        assert {64, KIB, 64 * KIB} <= {cell.payload_bytes for cell in of_place}
        assert {SLOW_MEMBER, BURSTS} <= {cell.shape for cell in of_place}
        assert {cell.order for cell in of_place if cell.members == 4} == set(PROTOCOLS)


def test_a_campaign_takes_a_bounded_time_and_memory(tmp_path: Path) -> None:
    planned = planned_cells(campaign(1), tmp_path)
    assert 1.0 < estimated_seconds(planned, jobs=2) / 3_600 < 2.0
    assert estimated_seconds(planned, jobs=8) < estimated_seconds(planned, jobs=2)
    for each in planned:
        cell = each.cell
        messages = each.plan.messages_of(cell) * cell.members
        assert messages * cell.payload_bytes <= PAYLOAD_BYTES_MAX, cell
        assert cell.load * cell.payload_bytes <= RATE_BYTES_MAX, cell
        assert messages * cell.members <= 600_000, cell


def test_a_part_of_a_campaign_has_all_its_groups_of_some_orders_and_places(tmp_path: Path) -> None:
    whole = [planned.cell for planned in planned_cells(campaign(1), tmp_path)]
    part = [planned.cell for planned in planned_cells(campaign(1, ["reorder"], [WAN, LAN]), tmp_path)]
    assert part == [cell for cell in whole if cell.order == "reorder" and cell.place != PROCESSES]
    with pytest.raises(InvalidOption, match="no group with the order 'reorder'"):
        quick_campaign(1, ["sequencer-ub", "reorder"])


def test_a_quick_campaign_has_a_little_of_everything(tmp_path: Path) -> None:
    planned = planned_cells(quick_campaign(7), tmp_path)
    assert {each.cell.place for each in planned} == {LAN, WAN, PROCESSES}
    assert {BURSTS, SLOW_MEMBER} < {each.cell.shape for each in planned}
    assert estimated_seconds(planned, jobs=2) < 120
    assert {each.plan.seed for each in planned} == {7}
