"""The properties that a network declares."""

import pytest

from priocast.core.errors import InvalidOption
from priocast.core.network_properties import NetworkProperties


@pytest.mark.parametrize("name", ["omission_degree", "delay_ns", "inaccessibility_ns"])
@pytest.mark.parametrize("value", [-1, "2", 1.5])
def test_a_bound_is_a_number_that_is_not_negative(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"{name} is "):
        NetworkProperties(**{name: value})  # type: ignore[arg-type]


def test_a_network_that_declares_nothing_guarantees_nothing() -> None:
    nothing = NetworkProperties()
    assert not any((nothing.broadcast, nothing.error_detection, nothing.full_duplex, nothing.network_order))
    assert (nothing.omission_degree, nothing.delay_ns, nothing.inaccessibility_ns) == (None, None, 0)
