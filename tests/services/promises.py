"""The properties Px4 to Px13 of the xAMp paper (Table 1), as checks, and who promises them (Table 3).

Each check returns the violations that it finds. *Correct* are the processes that did not fail.
"""

from collections.abc import Callable, Iterable
from itertools import combinations

from priocast.core.identity import ProcessId
from priocast.core.quality import QualityKind
from priocast.services.packets import TransmissionId
from services.trials import Sent, Trial

Check = Callable[[Trial], list[str]]


def px4_non_triviality(trial: Trial) -> list[str]:
    """What is delivered was sent, with these units in this order."""
    return [
        f"{process} delivered {message} with {payloads}"
        for (process, message), payloads in trial.lan.payloads.items()
        if message not in trial.sent
        or payloads != [b"%d" % index for index in range(trial.sent[message].units)][: len(payloads)]
    ]


def px5_accessibility(trial: Trial) -> list[str]:
    """A message is delivered once, to a recipient that did not reject it."""
    found = []
    for process, delivered in trial.lan.delivered.items():
        if len(set(delivered)) < len(delivered):
            found.append(f"{process} delivered twice")
        for message, _ in delivered:
            receipt = trial.lan.receipts.get(message)
            is_rejected = receipt is not None and process.name in receipt.rejected
            if process not in trial.sent[message].recipients or is_rejected:
                found.append(f"{process} delivered {message} and should not")
    return found


def px6_delivery(trial: Trial) -> list[str]:
    """What a correct sender sends is delivered, unless its receipt says that it could not be accepted."""
    found = []
    for message, sent in trial.sent.items():
        if sent.sender not in trial.lan.alive:
            continue
        receipt = trial.lan.receipts.get(message)
        if receipt is None:
            found.append(f"no receipt for {message}")
        elif receipt.accepted:
            missing = [name for name in receipt.answered if name not in _names(trial.holders(message))]
            gone = _names(trial.crashed)
            found += [
                f"{name} answered and did not deliver {message}" for name in missing if name not in gone
            ]
    return found


def px7_tightness(trial: Trial) -> list[str]:
    """All recipients deliver at the same time, up to the precision of the clocks, after Δ + δ."""
    found = []
    precision, within_ms = trial.lan.options.precision_ns, trial.quality.within_ms
    for message, sent in trial.sent.items():
        times = [at for (_, each), at in trial.lan.times.items() if each == message]
        if times and max(times) - min(times) > precision:
            found.append(f"{message} within {max(times) - min(times)} ns")
        if times and within_ms is not None and max(times) > sent.at + int(within_ms * 1e6) + 2 * precision:
            found.append(f"{message} after {max(times) - sent.at} ns")
    return found


def px8_unanimity(trial: Trial) -> list[str]:
    """What one correct recipient delivers, all correct recipients deliver."""
    found = []
    for message, sent in trial.sent.items():
        correct = [each for each in sent.recipients if each in trial.lan.alive]
        having = [each for each in correct if each in trial.holders(message)]
        if having and having != correct:
            found.append(f"{message}: only {_names(having)} of {_names(correct)}")
    return found


def px9_at_least(trial: Trial) -> list[str]:
    """What a correct recipient delivers, n recipients deliver, or all named ones.

    Neither the sender counts if it fails, nor do recipients that fail: they may have been among the n.
    """
    found = []
    for message, sent in trial.sent.items():
        holders = [each for each in trial.holders(message) if each in trial.lan.alive]
        correct = [each for each in _wanted(trial, sent) if each in trial.lan.alive]
        failed = [each for each in sent.recipients if each not in trial.lan.alive and each != sent.sender]
        count = trial.quality.count
        needed = len(correct) if count is None else min(count - len(failed), len(correct))
        if holders and sum(each in holders for each in correct) < needed:
            found.append(f"{message} only at {_names(holders)}")
    return found


def px10_best_effort(trial: Trial) -> list[str]:
    """The same, if the sender does not fail."""
    correct = {message: sent for message, sent in trial.sent.items() if sent.sender in trial.lan.alive}
    return px9_at_least(trial._replace(sent=correct))


def px11_total_order(trial: Trial) -> list[str]:
    """Correct recipients deliver the same messages in the same order."""
    found = []
    for one, other in combinations(trial.lan.alive, 2):
        mine, theirs = trial.lan.delivered[one], trial.lan.delivered[other]
        common = set(mine) & set(theirs)
        if [each for each in mine if each in common] != [each for each in theirs if each in common]:
            found.append(f"{one} and {other} differ")
    return found


def px12_causal_order(trial: Trial) -> list[str]:
    """No message is delivered before one that may have caused it."""
    past: dict[TransmissionId, set[TransmissionId]] = {}
    for message, sent in trial.sent.items():
        direct = {*_sent_in_turn(trial, sent), *sent.delivered_before}
        past[message] = direct.union(*(past[each] for each in direct))
    return _inversions(trial, lambda earlier, later: earlier in past[later])


def px13_fifo_order(trial: Trial) -> list[str]:
    """The messages of one sender are delivered in the order of sending; tight ones within a priority."""
    return _inversions(trial, lambda earlier, later: earlier in _sent_in_turn(trial, trial.sent[later]))


def _inversions(trial: Trial, precedes: Callable[[TransmissionId, TransmissionId], bool]) -> list[str]:
    return [
        f"{process} delivered {later} before {earlier}"
        for process in trial.lan.alive
        for later, earlier in combinations(_first_units(trial, process), 2)
        if later != earlier and precedes(earlier, later)
    ]


def _first_units(trial: Trial, process: ProcessId) -> list[TransmissionId]:
    return [message for message, index in trial.lan.delivered[process] if index == 0]


def _sent_in_turn(trial: Trial, sent: Sent) -> list[TransmissionId]:
    """What the same sender sent before with the same priority."""
    return [each for each in sent.sent_before if trial.sent[each].priority == sent.priority]


def _wanted(trial: Trial, sent: Sent) -> list[ProcessId]:
    names = trial.quality.names
    return [each for each in sent.recipients if not names or each.name in names]


def _names(processes: Iterable[ProcessId]) -> str:
    return "".join(each.name for each in processes)


VALIDITY: dict[str, Check] = {
    "Px4": px4_non_triviality,
    "Px5": px5_accessibility,
    "Px6": px6_delivery,
}
FIFO: dict[str, Check] = {"Px13": px13_fifo_order}
CAUSAL: dict[str, Check] = {**FIFO, "Px12": px12_causal_order}
TOTAL: dict[str, Check] = {**CAUSAL, "Px11": px11_total_order}
ALL: dict[str, Check] = {"Px8": px8_unanimity}

#: Table 3: what each quality promises.
PROMISED: dict[QualityKind, dict[str, Check]] = {
    QualityKind.BEST_EFFORT: {**VALIDITY, **FIFO, "Px10": px10_best_effort},
    QualityKind.AT_LEAST: {**VALIDITY, **FIFO, "Px9": px9_at_least, "Px10": px10_best_effort},
    QualityKind.RELIABLE: {**VALIDITY, **FIFO, **ALL},
    QualityKind.CAUSAL: {**VALIDITY, **CAUSAL, **ALL},
    QualityKind.ATOMIC: {**VALIDITY, **TOTAL, **ALL},
    QualityKind.TIGHT: {**VALIDITY, **TOTAL, **ALL},
    QualityKind.DELTA: {**VALIDITY, **TOTAL, **ALL, "Px7": px7_tightness},
}


def violations(trial: Trial) -> list[str]:
    """Every promise of the quality that the trial breaks."""
    return [
        f"{name}: {found}" for name, check in PROMISED[trial.quality.kind].items() for found in check(trial)
    ]
