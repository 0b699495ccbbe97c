"""Questions to other members: a request in the total order that each recipient's handler answers.

The handler runs at the place of the question in the order, when everything before it was applied. It may
look at more than the replicated state: its answer is its own, and changes nothing. A recipient that leaves
the view before its answer was ordered does not answer.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from priocast.core.errors import CommandFailed, DeadlineExceeded, GroupClosed, InvalidInput
from priocast.core.identity import ProcessId, check_name
from priocast.core.priority import ROUTINE
from priocast.core.view import View
from priocast.replication.arguments import check_body, check_command
from priocast.replication.commands import ERROR_LENGTH_MAX, Answer, CommandId, Question, encode_envelope

ASK_SECONDS = 30.0

Handler = Callable[[bytes], bytes | Awaitable[bytes]]
Send = Callable[[bytes, int, tuple[str, ...] | None], None]


class _OpenQuestion(msgspec.Struct):
    """A question that this member asks.

    `asked` are the processes that the view had when the question was delivered; a later incarnation of one
    does not answer. None before that.
    """

    question: Question
    priority: int
    done: asyncio.Future[None]
    answers: dict[str, Answer | None] = {}
    asked: dict[str, ProcessId] | None = None

    @property
    def missing(self) -> list[str]:
        """Who has not answered."""
        return [name for name in self.question.to if name not in self.answers]

    def on_answer(self, name: str, answer: Answer | None) -> None:
        """A member has answered, or will not."""
        self.answers.setdefault(name, answer)
        if not self.missing and not self.done.done():
            self.done.set_result(None)


class Questions:
    """Asks members, and answers what they ask; `Replica.questions` is one."""

    def __init__(self, session: str, name: str, send: Send, view: Callable[[], View | None]) -> None:
        self._session = session
        self._name = name
        self._send = send
        self._view = view
        self._next = 0
        self._handler: Handler | None = None
        self._open: dict[int, _OpenQuestion] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._closed: GroupClosed | None = None

    def answer_with(self, handler: Handler) -> None:
        """Answer the questions of members with `handler`, a function or a coroutine function.

        If the asking member is evicted meanwhile, it may ask a second time.
        """
        if not callable(handler):
            raise InvalidInput(f"handler must be a function of the question's bytes, not {handler!r}")
        self._handler = handler

    async def ask(
        self, body: bytes, to: str, priority: int = ROUTINE, *, timeout_seconds: float = ASK_SECONDS
    ) -> bytes:
        """The answer of the member `to` to the question `body`.

        - `priority`: that of the question and of the answer.
        - `timeout_seconds`: how long to wait. Then, or when the member leaves the view, `DeadlineExceeded` is
          raised.

        `CommandFailed` is raised if the handler raised an exception.
        """
        answer = (await self._ask(body, (to,), priority, timeout_seconds))[to]
        if answer is None:
            raise DeadlineExceeded(f"{to} is not in the group, or left it before it answered")
        found = _body_of(answer)
        if isinstance(found, CommandFailed):
            raise found
        return found

    async def ask_all(
        self,
        body: bytes,
        priority: int = ROUTINE,
        *,
        to: Iterable[str] | None = None,
        timeout_seconds: float = ASK_SECONDS,
    ) -> dict[str, bytes | CommandFailed | None]:
        """The answers of all members, by name; None for one that left before it answered.

        `body`, `priority` and `timeout_seconds` are those of `ask`. `to`: the names of the members to ask; if
        it is None, all members of the view, this one included. An exception of a handler is in the answers.
        """
        view = self._view()
        names = to if to is not None else [member.name for member in view.members] if view else []
        answers = await self._ask(body, tuple(names), priority, timeout_seconds)
        return {name: _body_of(answer) if answer else None for name, answer in answers.items()}

    async def _ask(
        self, body: bytes, to: tuple[str, ...], priority: int, timeout_seconds: float
    ) -> dict[str, Answer | None]:
        check_command(body, priority, timeout_seconds)
        if self._closed is not None:
            raise self._closed
        number, self._next = self._next, self._next + 1
        recipients = tuple(check_name(name, "member") for name in to)
        question = Question(CommandId(self._session, number), recipients, body)
        opened = _OpenQuestion(question, priority, asyncio.get_running_loop().create_future())
        self._open[number] = opened
        self._broadcast(opened)
        try:
            async with asyncio.timeout(timeout_seconds):
                await opened.done
        except TimeoutError:
            raise DeadlineExceeded(
                f"timed out after {timeout_seconds:g} s: no answer from {', '.join(opened.missing)}"
            ) from None
        finally:
            del self._open[number]
        return {name: opened.answers[name] for name in recipients}

    def _broadcast(self, opened: _OpenQuestion) -> None:
        """A question is delivered at its sender, too: from there on, the view says who can answer."""
        names = dict.fromkeys((*opened.question.to, self._name))
        self._send(encode_envelope(opened.question), opened.priority, tuple(names))

    # Called by the replica

    def on_question(self, question: Question, asker: str, priority: int) -> None:
        """A question was delivered here."""
        opened = self._open.get(question.id.number) if question.id.session == self._session else None
        view = self._view()
        if opened is not None and view is not None:
            opened.asked = {member.name: member for member in view.members}
            self._check_members(opened, view)
        if self._name in question.to:
            task = asyncio.create_task(self._answer(question, asker, priority))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    def on_answer(self, answer: Answer) -> None:
        """An answer was delivered here."""
        opened = self._open.get(answer.id.number) if answer.id.session == self._session else None
        if opened is not None and answer.member in opened.question.to:
            opened.on_answer(answer.member, answer)

    def on_view(self, view: View) -> None:
        """A view begins: who is gone does not answer."""
        for opened in list(self._open.values()):
            self._check_members(opened, view)

    def on_restored(self) -> None:
        """Questions may have been ordered while this member was away: ask again."""
        for opened in list(self._open.values()):
            self._broadcast(opened)

    def close(self, reason: GroupClosed) -> None:
        """There will be no more answers."""
        self._closed = reason
        for task in self._answering:
            task.cancel()
        for opened in self._open.values():
            if not opened.done.done():
                opened.done.set_exception(reason)

    @staticmethod
    def _check_members(opened: _OpenQuestion, view: View) -> None:
        if opened.asked is None:
            return
        for name in opened.missing:
            if opened.asked.get(name) not in view.members:
                opened.on_answer(name, None)

    async def _answer(self, question: Question, asker: str, priority: int) -> None:
        failed = False
        try:
            if self._handler is None:
                raise InvalidInput(f"{self._name} answers no questions: it has not called answer_with")
            answer = self._handler(question.body)
            body = await answer if inspect.isawaitable(answer) else answer
            check_body("an answer", body)
        except Exception as error:
            failed, body = (
                True,
                f"{type(error).__name__}: {error}"[:ERROR_LENGTH_MAX].encode(errors="replace"),
            )
        self._send(encode_envelope(Answer(question.id, self._name, body, failed)), priority, (asker,))


def _body_of(answer: Answer) -> bytes | CommandFailed:
    if not answer.failed:
        return answer.body
    text = answer.body.decode(errors="replace")
    return CommandFailed(f"{answer.member}: {text}", text.partition(":")[0])
