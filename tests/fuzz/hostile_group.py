"""A live group under attack: one process sends frames that are invented, or mutated from what was seen.

Every attack has its target: what the attacking process is, and what it may therefore cause.

    stranger       no member, and does not know the group's options
    client         has members broadcast on its behalf
    other group    a member of a group with other options, whose traffic reaches this group as well
    bad member     a member of the view, whose own frames are mutated on their way

Nothing may end a member. Strangers, clients and other groups may not even disturb: the members stay in one
view, and deliver the same messages in the same order. A bad member may disturb: it can get members evicted,
which come back as new incarnations. Once it is gone, the others are in one view again, unless more processes
than a group survives have failed besides it.
"""

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Literal, get_args

import msgspec
from msgspec import inspect

from fuzz.invention import Inventor, type_of
from fuzz.mutation import mutate
from priocast.core.decoding import decode
from priocast.core.errors import GroupClosed, InvalidInput, NoQuorum, Overloaded, PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.core.protocol import Packet
from priocast.core.quality import ATOMIC, CAUSAL, RELIABLE, TIGHT, UNRELIABLE, at_least, best_effort
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.membership.datagrams import CHANNEL, frame_of, read
from priocast.membership.packets import AnyControl, ClientRequest, Control, Heartbeat, Ordering
from priocast.protocols import all_orders, find_protocol
from priocast.services.frames import SERVICE_CHANNEL, read_service_frame, service_frame
from priocast.services.packets import AnyServicePacket, ServicePacket
from support.stacks import MILLISECOND, Neighbourhood

Target = Literal["stranger", "client", "other group", "bad member"]

GOOD = "bcd"
_ATTACKERS = {
    "stranger": "z",
    "client": "k",
    "other group": "x",
    "bad member": "ae",  # the first founder is the coordinator, the last one is not
}
_CONTROLS = tuple(map(type_of, get_args(AnyControl)))
_SERVED = tuple(map(type_of, get_args(AnyServicePacket)))
_QUALITIES = (UNRELIABLE, best_effort(1), at_least(1), RELIABLE, CAUSAL, ATOMIC, TIGHT)
_ROUNDS = 40
_BURSTS = (0, 1, 1, 2, 5, 40)
_CALM_MS = 1_500
_RECOVERY_MS = 3_000
_encode = msgspec.msgpack.Encoder().encode


class Damage(AssertionError):
    """The attack had an effect that it must not have."""


class HostileGroup(Neighbourhood):
    """Three members b, c and d under attack, in the state that a seed leads to. `cases` counts frames."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.cases = 0
        self._random = random = Random(f"{target} {seed}")
        self._inventor = Inventor(random)
        self._attacker = ProcessId(random.choice(_ATTACKERS[target]))
        self._is_hostile = False
        self._has_crashed = False
        self._incarnations = dict.fromkeys(GOOD + self._attacker.name, 1)
        self._sent: list[Frame] = []
        policy = random.choice(("primary", "primary", "partitionable"))
        orders = [each for each in all_orders(()) if policy == "primary" or find_protocol(each).PARTITIONABLE]
        orders += ["time-parts/sequencer-ub", "count-parts/moving-bb"]
        super().__init__(
            "".join(sorted(GOOD + self._attacker.name)) if target == "bad member" else GOOD,
            order=random.choice(orders),
            policy=policy,
            delivery=random.choice(("agreed", "agreed", "safe")),
            state=random.random() < 0.3,
            window=random.choice((None, 2, 16)),
            distributed=random.random() < 0.3,
            part_ms=4.0,
        )
        self._other: Neighbourhood | None = None
        if target == "other group":
            self._other = Neighbourhood("wxy", order=random.choice(orders), policy=policy, window=77)

    def attack(self) -> None:
        """Found the group, attack it for a while, and see what is left; raises what went wrong."""
        random = self._random
        self.wait_view("".join(self.members))
        if self._other is not None:
            self._other.wait_view("wxy")
        for number in range(_ROUNDS):
            for name in self.members:
                if random.random() < 0.5:
                    payloads = [f"{name}{number}.{each}" for each in range(random.choice((1, 1, 3)))]
                    self.broadcast(name, *payloads, priority=random.choice((0, 7, 255)))
                if random.random() < 0.2:
                    self._send_with_quality(name)
            self._disturb()
            self._is_hostile = random.random() < 0.8
            for _ in range(random.choice(_BURSTS)):
                self._send(self._hostile_frame())
            self.run(random.choice((1, 1, 2, 3, 5)))
            self._is_hostile = False
            if self.target == "bad member":
                self._readmit()
        self._calm_down()

    def _send_with_quality(self, name: str) -> None:
        random, member = self._random, self.members[name]
        with suppress(InvalidInput, GroupClosed, NoQuorum, Overloaded):
            to = random.choice((None, ["b", "c"]))
            member.send([b"x"] * random.choice((1, 2)), random.choice(_QUALITIES), to, 7, self.now)

    def _readmit(self) -> None:
        """Most often, wait until the bad member is in the view again: inside it can do more."""
        for _ in range(self._random.choice((0, 1, 4))):
            bad = self.members[self._attacker.name]
            if bad.view is not None and all(bad.me in _members(self.members[name]) for name in GOOD):
                return
            self.run(60)

    # The attack

    def _disturb(self) -> None:
        """Let something happen that members do anyway."""
        random = self._random
        if random.random() < 0.06:
            name = random.choice(GOOD)
            order = random.choice(("sequencer-ub", "sequencer-bb", "moving-bb", "causal-history"))
            self.members[name].change_order(Ordering(order, random.random() < 0.7, "none"), self.now)
        if random.random() < 0.03 and self.target == "bad member":
            self._has_crashed = True
            self._restart(random.choice(GOOD))

    def _hostile_frame(self) -> tuple[str, Frame]:
        """A frame and the member that it goes to."""
        random = self._random
        to = random.choice(GOOD)
        member = self.members[to]
        kind = random.random()
        if kind < 0.1 or not self._sent:
            return to, self._framed(member, random.randbytes(random.randint(0, 60)))
        if kind < 0.4:
            frame = random.choice(self._sent)
            body = mutate(frame.body, random)
            if frame.channel in (CHANNEL, SERVICE_CHANNEL):
                return to, Frame(frame.channel, 0, 0, 0, body)
            return to, self._framed(member, body)
        return to, self._invented(member)

    def _invented(self, member: Member) -> Frame:
        random, epoch = self._random, member.epoch
        if self.target == "client" and random.random() < 0.7:
            return frame_of(self._inventor.invent(type_of(ClientRequest)))
        if epoch is not None and random.random() < 0.4:
            seen = self._inventor.seen(epoch.protocol.PACKETS)
            packet = self._changed(seen, random.choice([type_of(each) for each in epoch.protocol.PACKETS]))
            return self._framed(member, _encode(packet))
        if random.random() < 0.2:
            served = random.choice(_SERVED)
            packet = self._changed(self._inventor.seen((served.cls,)), served)
            assert isinstance(packet, ServicePacket)
            return service_frame(packet)
        kind = random.choice(_CONTROLS)
        control = self._changed(self._inventor.seen((kind.cls,)), kind)
        assert isinstance(control, Control)
        return frame_of(control)

    def _changed(self, seen: msgspec.Struct | None, kind: inspect.StructType) -> msgspec.Struct:
        """Something of this kind: invented, or seen and changed in a few places."""
        if seen is not None and self._random.random() < 0.6:
            varied: msgspec.Struct = self._inventor.vary(seen)
            return varied
        invented: msgspec.Struct = self._inventor.invent(kind)
        return invented

    def _without_options(self, frame: Frame) -> Frame:
        """Only a bad member knows the hash of the group's options."""
        with suppress(PeerFault):
            control = read(self._attacker, frame) if frame.channel == CHANNEL else None
            if isinstance(control, Heartbeat):
                return frame_of(msgspec.structs.replace(control, config=self._random.getrandbits(64)))
        return frame

    def _framed(self, member: Member, body: bytes) -> Frame:
        """A body on the link to a member, most often as the next one that the link expects."""
        random, epoch = self._random, member.epoch
        if epoch is None or random.random() < 0.1:
            return Frame(CHANNEL, 0, 0, 0, body)
        link = epoch.links.get(ProcessId(self._attacker.name, self._incarnations.get(self._attacker.name, 1)))
        sequence = link._received_last + 1 if link else random.choice((0, 1, 5))
        if random.random() < 0.1:
            sequence = random.choice((0, 1, sequence + 1, sequence + 70, (1 << 64) - 1))
        odd = random.random() < 0.05
        return Frame(
            epoch.channel,
            sequence,
            random.choice((1, 5, (1 << 64) - 1)) if odd else 0,
            random.getrandbits(64) if odd else 0,
            body,
        )

    def _send(self, addressed: tuple[str, Frame]) -> None:
        to, frame = addressed
        self.cases += 1
        process = self._attacker
        if self.target != "bad member":
            frame = self._without_options(frame)
        if self.target == "bad member":
            process = ProcessId(self._attacker.name, self._incarnations[self._attacker.name])
        elif self._random.random() < 0.1:
            process = ProcessId(process.name, self._random.choice((0, 2, 1 << 62)))
        self._receive(process, to, [frame], Role.CLIENT if self.target == "client" else Role.MEMBER)

    # The group

    def run(self, milliseconds: int) -> None:
        """Let this much time pass, from one event to the next."""
        until = self.now + milliseconds * MILLISECOND
        while self.now < until:
            due = [member.deadline for member in self.members.values()]
            due += [self._in_flight[0][0]] if self._in_flight else []
            self.now = max(self.now + MILLISECOND, min(until, *due))
            self._deliver()
            for name, member in list(self.members.items()):
                self._drive(name, member)

    def _drive(self, name: str, member: Member) -> None:
        if member.departed is not None:
            self._restart(name)
            return
        if member.deadline <= self.now:
            member.tick(self.now)
        member.turn(self.now)
        self.applications[name].take(member, self.now)
        member.turn(self.now)
        for to, frames in member.frames(self.now):
            self._see(member, frames)
            sent = list(self._damaged(frames)) if name == self._attacker.name and self._is_hostile else frames
            self._in_flight.append((self.now + MILLISECOND, member.me, to, sent))

    def _deliver(self) -> None:
        while self._in_flight and self._in_flight[0][0] <= self.now:
            _, sender, to, frames = self._in_flight.popleft()
            if to in self.members and self.members[to].departed is None:
                self._receive(sender, to, frames)
        if self._other is not None and self._is_hostile:
            self._other.run(1)
            for _, sender, _, frames in self._other._in_flight:
                if self._random.random() < 0.3:
                    self.cases += len(frames)
                    self._receive(sender, self._random.choice(GOOD), frames)

    def _receive(self, sender: ProcessId, to: str, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        member = self.members[to]
        member.receive(sender, frames, self.now, role)
        while member.faults:
            peer, error = member.faults.popleft()
            if peer != member.me:
                raise error

    def _see(self, member: Member, frames: list[Frame]) -> None:
        """An attacker may see what members send."""
        for frame in frames:
            if self._random.random() < 0.2:
                self._sent = [*self._sent[-40:], frame]
                with suppress(PeerFault):
                    self._inventor.see(_contents(member, frame))

    def _damaged(self, frames: list[Frame]) -> Iterator[Frame]:
        random = self._random
        for frame in frames:
            chance = random.random()
            if chance < 0.1:
                self.cases += 1
                yield msgspec.structs.replace(frame, body=mutate(frame.body, random))
            elif chance < 0.12:
                self.cases += 1
                yield msgspec.structs.replace(frame, acknowledged=random.choice((0, frame.acknowledged + 1)))
            elif chance > 0.02:
                yield frame

    def _restart(self, name: str) -> None:
        """A departed member's next incarnation, as the runtime starts it."""
        if self.target != "bad member":
            raise Damage(f"{name} departed: {self.members[name].departed}")
        self._incarnations[name] += 1
        member = self.members[name]
        member.end(self.now)
        self.start(name, self._incarnations[name], member.unordered_messages())

    # Afterwards

    def _calm_down(self) -> None:
        """The attack is over: without a bad member, the group must be as if nothing had happened."""
        if self.target == "bad member":
            self.kill(self._attacker.name)
            self.run(_CALM_MS // 5)
            self._recover()
            return
        self.run(_CALM_MS // 10)
        self.broadcast("b", "last", priority=0)
        self.run_until(lambda: all(b"last" in self.applications[name].payloads for name in GOOD))
        views = self.views()
        if any(sorted(members) != list(GOOD) for members in views.values()):
            raise Damage(f"the members are in {views}")
        if not self._delivered("b") == self._delivered("c") == self._delivered("d"):
            raise Damage("the members delivered different messages")

    def _recover(self) -> None:
        """Wait until the good members are in one view, unless no group could continue after what happened.

        A primary group continues if the bad member is the only one that failed. A partitionable group
        continues wherever a member is in a view; if none is, all founders must be there to found it anew.
        """
        is_lost = self._has_crashed if self.membership.primary else not any(self.views().values())
        if is_lost:
            return
        for _ in range(_RECOVERY_MS // 20):
            ids = {member.view.id if member.view else None for member in self.members.values()}
            if len(ids) == 1 and sorted(self.views()["b"]) == list(GOOD):
                return
            self.run(20)
        raise Damage(f"{_RECOVERY_MS} ms after the bad member was gone, the others are in {self.views()}")

    def _delivered(self, name: str) -> list[tuple[int, Message]]:
        """What a member delivered until the last message, of what was for all members."""
        deliveries = self.applications[name].deliveries
        last = max(each.position for each in deliveries if each.message.payload == b"last")
        return [
            (each.position, each.message)
            for each in deliveries
            if each.position <= last and not each.message.scope.to
        ]


def _members(member: Member) -> tuple[ProcessId, ...]:
    return member.view.members if member.view else ()


def _contents(member: Member, frame: Frame) -> Control | Packet | ServicePacket | None:
    if frame.channel == CHANNEL:
        return read(member.me, frame)
    if frame.channel == SERVICE_CHANNEL:
        return read_service_frame(member.me, frame)
    if member.epoch is None or not frame.body:
        return None
    packet: Packet = decode(member.epoch._decode, frame.body, member.me, "a packet")
    return packet


def run_group_case(target: Target, seed: int) -> int:
    """Attack a new group; return how many frames were sent. Raises what went wrong."""
    group = HostileGroup(target, seed)
    try:
        group.attack()
    except Exception as error:
        error.add_note(f"{target}, seed {seed}: {group.order}, {group.membership.policy}")
        raise
    return group.cases
