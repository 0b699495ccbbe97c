"""Members who hold consensus, crash, and send letters that are lost and overtaken as a schedule says."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.message import Reference
from priocast.core.protocol import Packet
from priocast.protocols.agreement.consensus import Consensus, Value

INSTANCES = 4


class Broken(AssertionError):
    """Consensus was not kept: Agreement, Validity or Termination."""

    def __init__(self, promise: str, how: str) -> None:
        super().__init__(f"{promise}: {how}")
        self.promise = promise


class Decision(NamedTuple):
    """What a leader tells all."""

    instance: int
    value: Value


class Letter(NamedTuple):
    sender: ProcessId
    to: ProcessId
    content: Packet | Decision


class Councillor:
    """One member: its part in the consensus, and what it knows to be decided."""

    def __init__(self, me: ProcessId, council: "Council") -> None:
        self.me = me
        self._council = council
        self.consensus = Consensus(me, council.names, self._send, self._send_each, self._decide)
        self.known: list[Value] = []
        self.since = 0
        self._early: dict[int, Value] = {}

    @property
    def waits(self) -> bool:
        return len(self.known) < INSTANCES

    def receive(self, letter: Letter, now: int) -> None:
        if isinstance(letter.content, Decision):
            self._on_decision(letter.content, now)
            return
        ballot = self.consensus.ballot
        self.consensus.receive(letter.sender, letter.content)
        if ballot != self.consensus.ballot:
            self.since = now

    def propose(self) -> None:
        self.consensus.propose(self._fresh)

    def _fresh(self) -> Value:
        return self._council.new_value(self.me) if self.waits else ()

    def _on_decision(self, decision: Decision, now: int) -> None:
        self._council.check_decision(decision)
        if decision.instance >= len(self.known):
            self._early[decision.instance] = decision.value
        while (value := self._early.pop(len(self.known), None)) is not None:
            self.known.append(value)
            self.since = now
            self.consensus.decided(value)

    def _send(self, to: ProcessId, packet: Packet) -> None:
        self._council.letters.append(Letter(self.me, to, packet))

    def _send_each(self, packet: Packet) -> None:
        for name in self._council.names:
            self._send(name, packet)

    def _decide(self, value: Value) -> None:
        decision = Decision(self.consensus.instance, value)
        self._council.letters += [Letter(self.me, name, decision) for name in self._council.names]


class Council:
    """All members and the letters on their way; nothing happens unless a schedule says so."""

    def __init__(self, size: int) -> None:
        self.names = tuple(ProcessId(name) for name in "abcde"[:size])
        self.letters: list[Letter] = []
        self.members = {name: Councillor(name, self) for name in self.names}
        self.now = 0
        self._proposed: list[Value] = []
        self._decided: dict[int, Value] = {}

    def new_value(self, proposer: ProcessId) -> Value:
        value = (Reference(proposer, 0, len(self._proposed), 1),)
        self._proposed.append(value)
        return value

    def check_decision(self, decision: Decision) -> None:
        if decision.value not in self._proposed:
            raise Broken("Validity", f"nobody proposed {decision.value}")
        if self._decided.setdefault(decision.instance, decision.value) != decision.value:
            raise Broken("Agreement", f"two values are decided in instance {decision.instance}")

    # What a schedule is made of

    def deliver(self, index: int) -> None:
        """One of the letters arrives, and whoever gets it acts on it."""
        if self.letters:
            letter = self.letters.pop(index % len(self.letters))
            member = self.members.get(letter.to)
            if member is not None:
                member.receive(letter, self.now)
                member.propose()

    def talk(self, index: int) -> None:
        """Some of the members hear what they have said to each other, and nothing else."""
        among = [name for rank, name in enumerate(self.names) if index >> rank & 1 and name in self.members]
        for _ in range(1 + (index >> len(self.names))):
            for place, letter in enumerate(self.letters):
                if letter.sender in among and letter.to in among:
                    self.deliver(place)
                    break

    def lose(self, index: int) -> None:
        """One of the letters is lost, unless it is for its own sender."""
        others = [letter for letter in self.letters if letter.sender != letter.to]
        if others:
            self.letters.remove(others[index % len(others)])

    def take_over(self, index: int) -> None:
        """A member has lost its patience."""
        member = list(self.members.values())[index % len(self.members)]
        member.consensus.take_over()

    def crash(self, index: int) -> None:
        """A member is no more, as long as a majority is left; some of its last letters may still arrive."""
        if 2 * (len(self.members) - 1) > len(self.names):
            del self.members[list(self.members)[index % len(self.members)]]

    # The end of all faults

    def heal(self, timeouts_max: int) -> None:
        """From now on nothing is lost, and members lose their patience only when it is over."""
        timeouts = 0
        while self.letters or any(member.waits for member in self.members.values()):
            for member in self.members.values():
                member.propose()
            if self.letters:
                self.deliver(0)
                continue
            waiting = [member for member in self.members.values() if member.waits]
            timeouts += 1
            if not waiting or timeouts > timeouts_max:
                break
            first = min(waiting, key=lambda member: member.since + member.consensus.timeout_ns)
            self.now = first.since + first.consensus.timeout_ns
            first.since = self.now
            first.consensus.take_over()
        for member in self.members.values():
            if member.waits:
                raise Broken("Termination", f"{member.me} knows {len(member.known)} of {INSTANCES} decisions")


Action = tuple[Callable[[Council, int], None], int]


class Schedule(NamedTuple):
    size: int
    actions: list[Action]


def rolled(seed: int) -> Schedule:
    """Members take over from each other, and hear some of what others say: that is how leaders overlap."""
    dice = Random(seed)
    size = dice.choice((1, 2, 3, 3, 3, 3, 4, 5))
    actions: list[Action] = []
    for _ in range(dice.randint(0, 8)):
        if dice.random() < 0.7:
            actions.append((Council.take_over, dice.randrange(size)))
        actions += [(Council.talk, dice.randrange(14 << size)) for _ in range(dice.randint(1, 3))]
        for deed in (Council.deliver, Council.lose):
            actions += [(deed, dice.randrange(256)) for _ in range(dice.choice((0, 0, 0, 1, 5)))]
        if dice.random() < 0.05:
            actions.append((Council.crash, dice.randrange(size)))
    return Schedule(size, actions)


def hold(schedule: Schedule) -> Council:
    """Let a schedule happen, and then the end of all faults; raise what was broken."""
    council = Council(schedule.size)
    for deed, index in schedule.actions:
        deed(council, index)
    council.heal(timeouts_max=4 * schedule.size)
    return council
