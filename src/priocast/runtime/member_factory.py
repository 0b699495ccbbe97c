"""Makes the incarnations of one member, one after the other."""

import time

from priocast.core.identity import ProcessId
from priocast.member import Member
from priocast.membership.unordered import UnorderedMessages
from priocast.network.interface import Network
from priocast.runtime.configuration import MemberConfiguration
from priocast.runtime.rejoining import Rejoining
from priocast.runtime.storage import Storage


class MemberFactory:
    """Everything that an incarnation is made of; `made` counts them."""

    def __init__(
        self, configuration: MemberConfiguration, network: Network, storage: Storage, rejoining: Rejoining
    ) -> None:
        self.made = 0
        self._configuration = configuration
        self._network = network
        self._storage = storage
        self._rejoining = rejoining

    def make(self, incarnation: int, unordered_messages: UnorderedMessages | None) -> Member:
        """An incarnation that begins to join now."""
        configuration = self._configuration
        me = ProcessId(configuration.name, incarnation)
        self.made += 1
        return Member(
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
        )
