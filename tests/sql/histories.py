"""Random histories of a replicated database, and the check that each is a serial execution in its order.

Three machines apply the same order, each as far as it has come. Clients execute programs on a machine: what a
program writes depends on what it has read. At the end all machines must be equal, byte by byte, and equal to
one machine on which the committed transactions were executed one after the other, in the order, with the
same results at every step.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from priocast.core.errors import PriocastError
from priocast.sql.requests import (
    BoundStatement,
    Committed,
    CommitTransaction,
    ExecuteStatements,
    SqlRequest,
    Verdict,
)
from sql.databases import LocalClient, LocalMachine

SCHEMA = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, v INTEGER NOT NULL CONSTRAINT solvent CHECK (v >= 0))",
    """CREATE TABLE notes (
        name TEXT NOT NULL,
        n INTEGER NOT NULL,
        r INTEGER DEFAULT (random()),
        at TEXT DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (name, n)
    ) WITHOUT ROWID""",
    """CREATE TABLE touched (
        id INTEGER PRIMARY KEY REFERENCES accounts ON DELETE CASCADE,
        times INTEGER NOT NULL
    )""",
    """CREATE TRIGGER touch AFTER UPDATE ON accounts BEGIN
        INSERT INTO touched VALUES (new.id, 1) ON CONFLICT (id) DO UPDATE SET times = times + 1;
    END""",
    "INSERT INTO accounts VALUES (1, 3), (2, 3), (3, 5)",
)
STATEMENTS = (
    "UPDATE accounts SET v = v + 1 WHERE id = 1",
    "UPDATE accounts SET v = v - 2 WHERE id = 2",
    "DELETE FROM accounts WHERE v > 8",
    "INSERT INTO accounts VALUES (4, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO notes (name, n) SELECT 'direct', count(*) FROM notes",
)

Step = tuple[str, tuple[Any, ...]]
Observed = tuple[tuple[Any, ...], int]
Program = Generator[Step, Observed, None]
NewMachine = Callable[[str], LocalMachine]


def read_and_increment() -> Program:
    (value, *_), _ = yield "SELECT v FROM accounts WHERE id = 1", ()
    yield "UPDATE accounts SET v = ? WHERE id = 1", (value[0] + 1,)


def withdraw_if_the_sum_allows() -> Program:
    ((total,),), _ = yield "SELECT sum(v) FROM accounts", ()
    if total >= 5:
        yield "UPDATE accounts SET v = v - 2 WHERE id = 2", ()


def insert_the_number_of_rows() -> Program:
    ((count,),), _ = yield "SELECT count(*) FROM notes WHERE name = 'counted'", ()
    yield "INSERT INTO notes (name, n) VALUES ('counted', ?) RETURNING r", (count,)


def note_how_many_were_changed() -> Program:
    _, changed = yield "UPDATE accounts SET v = v + 1 WHERE v < 5", ()
    yield "INSERT INTO notes (name, n) SELECT 'changed', ? + 100 * (SELECT count(*) FROM notes)", (changed,)


def read_own_writes() -> Program:
    yield "UPDATE accounts SET v = v + 3 WHERE id = 3", ()
    ((value,), *_), _ = yield "SELECT v FROM accounts WHERE id = 3 UNION ALL SELECT 0", ()
    yield "DELETE FROM accounts WHERE id = 4", ()
    yield "UPDATE accounts SET v = ? WHERE id = 1", (value,)


def increment_blindly() -> Program:
    yield "UPDATE accounts SET v = v + 1 WHERE id = 1", ()


PROGRAMS: tuple[Callable[[], Program], ...] = (
    read_and_increment,
    withdraw_if_the_sum_allows,
    insert_the_number_of_rows,
    note_how_many_were_changed,
    read_own_writes,
    increment_blindly,
)


class ProgramClient:
    """A client that executes a program on one machine, and remembers what it observed."""

    def __init__(self, machine: LocalMachine, program: Callable[[], Program], seed: int) -> None:
        self.program = program
        self.client = LocalClient(machine, seed)
        self.observed: list[Observed] = []
        self._running = program()
        self._next: Step | None = next(self._running)

    @property
    def is_done(self) -> bool:
        return self._next is None

    def step(self) -> None:
        """Execute the next statement; a transaction that fails here is not continued."""
        assert self._next is not None
        local = self.client.local
        try:
            result = self.client.machine.workspace.execute(local, self._next[0], list(self._next[1]))
        except PriocastError:
            self._next = None
            return
        self.observed.append((result.rows, result.changed))
        try:
            self._next = self._running.send(self.observed[-1])
        except StopIteration:
            self._next = None

    def request(self) -> CommitTransaction | None:
        """What is broadcast at commit; None if the transaction failed, or has read only."""
        if self.client.local.failed is not None:
            return None
        try:
            request: CommitTransaction | None = self.client.finish()
        except PriocastError:
            return None
        return request


class History:
    """One history; `choices` decides what happens, and `new_machine` makes the copies, by name."""

    def __init__(self, choices: Iterable[int], new_machine: NewMachine) -> None:
        self.new_machine = new_machine
        self.machines = [new_machine(member) for member in "abc"]
        self.order: list[SqlRequest] = []
        self.verdicts: list[list[Verdict]] = [[] for _ in self.machines]
        self.clients: list[ProgramClient] = []
        self.committed: dict[int, ProgramClient] = {}
        for choice in choices:
            self._act(choice)

    def _act(self, choice: int) -> None:
        action, detail = choice % 8, choice // 8
        if action == 0 and len(self.clients) < 6:
            machine, program = self.machines[detail % 3], PROGRAMS[detail // 3 % len(PROGRAMS)]
            self.clients.append(ProgramClient(machine, program, seed=detail))
        elif action == 1:
            sql = STATEMENTS[detail % len(STATEMENTS)]
            self.order.append(ExecuteStatements((BoundStatement(sql, []),)))
        elif action == 2 and detail % 4 == 0:
            self._restore(detail % 3, (detail + 1) % 3)
        elif action in (2, 3):
            self._apply(detail % 3)
        elif self.clients:
            client = self.clients[detail % len(self.clients)]
            if client.is_done:
                self._commit(client)
            else:
                client.step()

    def _commit(self, client: ProgramClient) -> None:
        self.clients.remove(client)
        request = client.request()
        if request is not None:
            self.committed[len(self.order)] = client
            self.order.append(request)

    def _apply(self, number: int) -> None:
        """The machine with this number applies the next request of the order."""
        verdicts = self.verdicts[number]
        if len(verdicts) < len(self.order):
            verdicts.append(self.machines[number].request(self.order[len(verdicts)]))

    def _restore(self, target: int, source: int) -> None:
        """A machine receives the state of another one, if that is ahead."""
        if len(self.verdicts[source]) > len(self.verdicts[target]):
            self.machines[target].restore(self.machines[source].snapshot())
            self.machines[target].next_position = self.machines[source].next_position
            self.verdicts[target] = list(self.verdicts[source])

    def finish(self) -> None:
        """All clients commit, and all machines apply the whole order."""
        for client in list(self.clients):
            while not client.is_done:
                client.step()
            self._commit(client)
        for number in range(len(self.machines)):
            while len(self.verdicts[number]) < len(self.order):
                self._apply(number)

    def violations(self) -> Iterator[str]:
        """What is wrong with the finished history."""
        if not self.verdicts[0] == self.verdicts[1] == self.verdicts[2]:
            yield "verdicts differ"
        dumps = [machine.lines() for machine in self.machines]
        if not dumps[0] == dumps[1] == dumps[2]:
            yield "copies differ"
        serial = self.new_machine("d")
        last_commit = serial.engine.position
        for number, (request, verdict) in enumerate(zip(self.order, self.verdicts[0], strict=True)):
            client = self.committed.get(number)
            if client is None or not isinstance(request, CommitTransaction):
                if serial.request(request) != verdict:
                    yield f"request {number} has another verdict in a serial execution"
            elif isinstance(verdict, Committed):
                if _execute_serially(serial, client) != client.observed:
                    yield f"transaction {number} has observed what a serial execution does not show"
            else:
                serial.next_position += 1
                if request.snapshot == last_commit:
                    yield f"transaction {number} was not committed although nothing was before it"
            last_commit = serial.engine.position
        if serial.lines() != dumps[0]:
            yield "the result is not that of the serial execution"


def _execute_serially(serial: LocalMachine, client: ProgramClient) -> list[Observed]:
    """Execute a client's program at once, and commit it as it is; return what it observes."""
    engine, local = serial.engine, client.client.local
    serial.workspace.suspend()
    engine.begin(local.context)
    observed: list[Observed] = []
    running = client.program()
    step: Step | None = next(running)
    while step is not None:
        result = engine.execute(step[0], list(step[1]))
        observed.append((result.rows, result.changed))
        try:
            step = running.send(observed[-1])
        except StopIteration:
            step = None
    engine.commit(serial.next_position)
    serial.next_position += 1
    return observed


def on_sqlite(member: str) -> LocalMachine:
    """A copy in memory."""
    return LocalMachine(SCHEMA, member)


def violations_of(choices: Iterable[int], new_machine: NewMachine = on_sqlite) -> list[str]:
    """Run a history and return what is wrong with it."""
    history = History(choices, new_machine)
    history.finish()
    return list(history.violations())
