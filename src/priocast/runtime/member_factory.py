"""Makes the incarnations of one member, one after the other."""

import time

from priocast.core.identity import ProcessId
from priocast.member import Member
from priocast.membership.message_meter import MessageMeter
from priocast.membership.unordered import UnorderedMessages
from priocast.network.interface import Network
from priocast.runtime.configuration import MemberConfiguration
from priocast.runtime.rejoining import Rejoining
from priocast.runtime.storage import Storage


class MemberFactory:
    """Everything that an incarnation is made of; `made` counts them, `meter` what they do."""

    def __init__(
        self, configuration: MemberConfiguration, network: Network, storage: Storage, rejoining: Rejoining
    ) -> None:
        self.made = 0
        self.meter = MessageMeter()
        self._configuration = configuration
        self._network = network
        self._storage = storage
        self._rejoining = rejoining

    def make(self, incarnation: int, unordered_messages: UnorderedMessages | None) -> Member:
        """An incarnation that begins to join now."""
        configuration = self._configuration
        me = ProcessId(configuration.name, incarnation)
        self.made += 1
        self.meter.on_incarnation(me)
        member = Member(
            me,
            configuration.order,
            configuration.options,
            configuration.membership,
            self._network.link_options,
            self._storage.observe(me),
            time.monotonic_ns(),
            unordered_messages,
            on_probation=self._rejoining.on_probation,
            service_options=configuration.services,
            meter=self.meter,
        )
        if configuration.state is not None and configuration.state.base is not None:
            member.state.base = configuration.state.base()
        return member
