"""The named cases of the two-phase accept protocol."""

import pytest

from services.cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_case_goes_well(name: str) -> None:
    assert CASES[name]() == []
