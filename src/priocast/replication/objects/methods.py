"""Methods that are executed at every replica, and methods that read: `@replicated` and `@query`.

    class Account(priocast.ReplicatedObject):
        balance: int = 0

        @priocast.replicated
        def deposit(self, amount: int) -> int:
            self.balance += amount
            return self.balance

Outside, a call returns an awaitable: `await account.deposit(5)` returns when the method was executed at this
replica, in the total order, and gives its result. `account.deposit.at(priority=URGENT)(5)` has options.
Within another replicated method, `self.deposit.apply(5)` executes it as a part of that one.

Arguments and results travel as msgpack; they are converted to the types of the signature.
"""

import inspect
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.priority import ROUTINE, check_priority
from priocast.replication.replica import SUBMIT_SECONDS
from priocast.replication.state_machine import Continue

if TYPE_CHECKING:
    from priocast.replication.objects.replicated_object import ReplicatedObject

P = ParamSpec("P")
R = TypeVar("R")

_PATH_LENGTH_MAX = 256
_encode = msgspec.msgpack.Encoder().encode


class Call(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command of replicated objects: which method of which object, and its encoded arguments."""

    path: Annotated[str, msgspec.Meta(max_length=_PATH_LENGTH_MAX)]
    arguments: msgspec.Raw


class CallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one call is made; those of `Replica.submit` and `Replica.read`."""

    priority: int = ROUTINE
    staleness_seconds: float = 0.0
    timeout_seconds: float = SUBMIT_SECONDS


class ReplicatedMethod(Generic[P, R]):
    """A method of a replicated object, as the class has it. `is_query`: it reads, and is not broadcast."""

    def __init__(self, function: Callable[Concatenate[Any, P], R], priority: int, is_query: bool) -> None:
        self.function = function
        self.is_query = is_query
        self.options = CallOptions(priority=check_priority(priority))
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.signature = inspect.signature(function)
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise InvalidInput(
                    f"{self.name} cannot be replicated: it has *{parameter.name}; name each parameter"
                )
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise InvalidInput(
                f"{self.name} cannot be replicated: it must not wait, so write 'def' without 'async'"
            )
        kinds = {parameter.kind for parameter in self.signature.parameters.values()}
        is_positional = inspect.Parameter.KEYWORD_ONLY not in kinds
        self._positional_count = len(self.signature.parameters) - 1 if is_positional else -1
        self._decoders: tuple[Callable[[Any], tuple[Any, ...]], Callable[[Any], Any]] | None = None

    @overload
    def __get__(self, instance: None, owner: type) -> "ReplicatedMethod[P, R]": ...
    @overload
    def __get__(self, instance: "ReplicatedObject", owner: type) -> "BoundMethod[P, R]": ...
    def __get__(
        self, instance: "ReplicatedObject | None", owner: type
    ) -> "ReplicatedMethod[P, R] | BoundMethod[P, R]":
        return self if instance is None else BoundMethod(self, instance, self.options)

    def encode_call(self, path: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
        """A `Call` with all arguments in the order of the signature; raises an error if they do not fit."""
        if keywords or len(arguments) != self._positional_count:
            bound = self.signature.bind(None, *arguments, **keywords)
            bound.apply_defaults()
            arguments = tuple(bound.arguments.values())[1:]
        try:
            return _encode((path, arguments))
        except (TypeError, OverflowError, ValueError) as error:
            raise InvalidInput(f"an argument of {self.name} cannot be encoded: {error}") from None

    def decode_result(self, result: bytes) -> R:
        """The result as the signature's type."""
        return cast("R", (self._decoders or self.decoders())[1](result))

    def decoders(self) -> tuple[Callable[[Any], tuple[Any, ...]], Callable[[Any], Any]]:
        """What decodes arguments and results; to be asked for at a call.

        Types of the signature may be defined after the class.
        """
        hints = typing.get_type_hints(self.function)
        kinds = tuple(hints.get(name, Any) for name in list(self.signature.parameters)[1:])
        result = hints.get("return", Any)
        arguments = msgspec.msgpack.Decoder(types.GenericAlias(tuple, kinds))
        self._decoders = arguments.decode, msgspec.msgpack.Decoder(result).decode
        return self._decoders


class BoundMethod(Generic[P, R]):
    """A method of one replicated object; calling it has it executed."""

    def __init__(
        self, method: ReplicatedMethod[P, R], instance: "ReplicatedObject", options: CallOptions
    ) -> None:
        self._method = method
        self._instance = instance
        self._options = options

    async def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        method, options, replica = self._method, self._options, self._instance.replica
        call = method.encode_call(self._instance.path_of(method.name), arguments, keywords)
        if method.is_query:
            result = await replica.read(
                lambda machine: machine.query(call),
                options.priority,
                staleness_seconds=options.staleness_seconds,
                timeout_seconds=options.timeout_seconds,
            )
        else:
            result = await replica.submit(call, options.priority, timeout_seconds=options.timeout_seconds)
        return method.decode_result(result)

    def at(
        self,
        *,
        priority: int | None = None,
        staleness_seconds: float | None = None,
        timeout_seconds: float | None = None,
    ) -> "BoundMethod[P, R]":
        """The same method, to be called with other options: those of `Replica.submit` and `Replica.read`."""
        changed = {
            "priority": priority,
            "staleness_seconds": staleness_seconds,
            "timeout_seconds": timeout_seconds,
        }
        given: dict[str, Any] = {name: value for name, value in changed.items() if value is not None}
        return BoundMethod(self._method, self._instance, msgspec.structs.replace(self._options, **given))

    def apply(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Execute the method now, as a part of another replicated method of the same group."""
        return self._method.function(self._instance, *arguments, **keywords)

    def again(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """What a long method returns: it is called with these arguments in the next slot.

        Calls that are more urgent are executed in between. The caller gets the result of the last slot.
        """
        path = self._instance.path_of(self._method.name)
        return cast("R", Continue(self._method.encode_call(path, arguments, keywords)))


@overload
def replicated(function: Callable[Concatenate[Any, P], R], /) -> ReplicatedMethod[P, R]: ...
@overload
def replicated(
    *, priority: int = ROUTINE
) -> Callable[[Callable[Concatenate[Any, P], R]], ReplicatedMethod[P, R]]: ...
def replicated(function: Any = None, /, *, priority: int = ROUTINE) -> Any:
    """Have a method executed at every replica when it is called at one.

    - `function`: the method. It must be deterministic, see `StateMachine`; `self.context` has time and seed.
    - `priority`: that of its calls, unless `at(priority=...)` says otherwise.
    """
    if function is None:
        return lambda method: ReplicatedMethod(method, priority, is_query=False)
    return ReplicatedMethod(function, priority, is_query=False)


def query(function: Callable[Concatenate[Any, P], R], /) -> ReplicatedMethod[P, R]:
    """Have a method read at the replica where it is called: linearizable, or `at(staleness_seconds=...)`.

    - `function`: the method, which changes nothing.
    """
    return ReplicatedMethod(function, ROUTINE, is_query=True)
