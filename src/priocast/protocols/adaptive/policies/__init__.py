"""The adaptation policies, by name.

A user's own policy is a subclass of `AdaptationPolicy` that is registered under its name before the group is
joined, in every member's process (`docs/adaptive.md` has an example).
"""

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols.adaptive.policies.decay import Decay
from priocast.protocols.adaptive.policies.policy import AdaptationPolicy, EqualShares
from priocast.protocols.adaptive.policies.schedule import Schedule
from priocast.protocols.adaptive.policies.steady import SteadyKeeper
from priocast.protocols.adaptive.policies.window import PriorityWindow, SlidingWindow

POLICIES: dict[str, type[AdaptationPolicy]] = {
    policy.NAME: policy
    for policy in (SlidingWindow, PriorityWindow, SteadyKeeper, Decay, Schedule, EqualShares)
}


def register_policy(policy: type[AdaptationPolicy]) -> type[AdaptationPolicy]:
    """Make a policy available under its name; can be used as a decorator."""
    if POLICIES.setdefault(policy.NAME, policy) is not policy:
        raise InvalidOption(f"there is another adaptation policy with the name {policy.NAME!r}")
    return policy


def check_adaptation(text: str) -> type[AdaptationPolicy]:
    """The policy that the option `adaptation` names; raises an error if there is none, or it is not valid."""
    name, _, argument = text.partition(":")
    policy = POLICIES.get(name)
    if policy is None:
        raise InvalidOption(
            f"adaptation is {text!r}: there is no such policy; there are: {', '.join(sorted(POLICIES))}"
        )
    policy.check(argument)
    return policy


def make_policy(text: str, me: ProcessId, view: View) -> AdaptationPolicy:
    """A member's policy for a view."""
    return check_adaptation(text)(me, view, text.partition(":")[2])
