"""Attacks of the day: whatever a process sends, nothing but counted rejections and evictions comes of it.

`make fuzz` runs the same attacks for longer.
"""

from itertools import count
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from fuzz.decoders import DECODERS, PERMISSION, check_input
from fuzz.invention import Inventor, type_of
from fuzz.mutation import mutate
from fuzz.targets import TARGETS
from priocast.protocols import PROTOCOLS

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
_SEEDS_PER_DAY = 1_000_000
_SHARE_OF_TIME = 0.5


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_corpus_is_decoded_or_rejected(path: Path) -> None:
    check_input(path.read_bytes())


@pytest.mark.parametrize("order", PROTOCOLS)
def test_inputs_that_are_named_after_a_protocol_are_for_its_decoder(order: str) -> None:
    """A new protocol moves the decoders after it: the first byte of their inputs has to follow."""
    longer = tuple(f"{each}-" for each in PROTOCOLS if each.startswith(f"{order}-"))
    named = [
        path for path in CORPUS if path.name.startswith(f"{order}-") and not path.name.startswith(longer)
    ]
    assert {path.read_bytes()[0] for path in named} == {1 + list(PROTOCOLS).index(order)}


def test_the_corpus_has_inputs_for_every_decoder() -> None:
    assert {path.read_bytes()[0] for path in CORPUS} >= set(range(len(DECODERS))) - {PERMISSION}


def mutated(inputs: list[bytes], seed: int) -> bytes:
    """One of the inputs, for the same decoder, with a mutated rest."""
    random = Random(seed)
    chosen = random.choice(inputs)
    return chosen[:1] + mutate(chosen[1:], random)


def test_mutated_inputs_find_a_check_of_service_packets_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The decoder that is a member's qualities of service, by itself: about one input in a thousand fails."""
    monkeypatch.setattr("priocast.services.services.check_packet", lambda *_, **__: None)
    inputs = [path.read_bytes() for path in CORPUS if path.name.startswith("served-")]
    with pytest.raises(ValueError, match="not in tuple"):
        for seed in range(20_000):
            check_input(mutated(inputs, seed))


@pytest.mark.fresh
def test_mutated_inputs_are_decoded_or_rejected(fresh_seed: int, fresh_seconds: float) -> None:
    deadline = monotonic() + _SHARE_OF_TIME * fresh_seconds
    inputs = [path.read_bytes() for path in CORPUS]
    for number in count(fresh_seed * _SEEDS_PER_DAY):
        data = mutated(inputs, number)
        try:
            check_input(data)
        except BaseException as error:
            error.add_note(f"input {data!r}")
            raise
        if monotonic() > deadline:
            return


@pytest.mark.fresh
@pytest.mark.parametrize("target", TARGETS)
def test_an_attack_ends_no_member(target: str, fresh_seed: int, fresh_seconds: float) -> None:
    deadline = monotonic() + _SHARE_OF_TIME * fresh_seconds
    for seed in count(fresh_seed * _SEEDS_PER_DAY):
        assert TARGETS[target](seed) >= 0
        if monotonic() > deadline:
            return


@pytest.mark.parametrize("seed", [5002, 5015, 5388, 5489, 6026, 6350, 6425])
def test_a_group_that_did_not_recover_from_a_bad_member_does_now(seed: int) -> None:
    """Positions beyond all that can be sent on, and members that one false notice talked out of the group."""
    assert TARGETS["bad member"](seed) > 0


@pytest.mark.parametrize("order", PROTOCOLS)
def test_every_packet_of_a_protocol_can_be_invented(order: str) -> None:
    inventor = Inventor(Random(order))
    for packet in PROTOCOLS[order].PACKETS:
        for _ in range(20):
            assert isinstance(inventor.invent(type_of(packet)), packet)


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_repeats_an_attack(target: str) -> None:
    frames = TARGETS[target](7)
    assert frames > 0 and TARGETS[target](7) == frames


@pytest.mark.parametrize(
    ("target", "check", "result"),
    [
        ("bad member", "membership.validation.DatagramValidator.check", None),
        ("bad member", "services.services.check_packet", None),
        ("stranger", "membership.validation.DatagramValidator.knows", True),
        ("other group", "membership.validation.DatagramValidator.knows", True),
    ],
)
def test_an_attack_finds_a_check_that_is_missing(
    target: str, check: str, result: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"priocast.{check}", lambda *_, **__: result)
    with pytest.raises(Exception, match=r".") as found:  # whatever it is
        for seed in range(100):
            TARGETS[target](seed)
    assert target in found.value.__notes__[0]
