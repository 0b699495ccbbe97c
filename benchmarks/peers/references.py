"""What the systems are compared with in the same run: a raw round trip, and the floor of `make bench`."""

from benchmarks.delivery import by_bare_sequencer, by_echo, median_of_followers
from benchmarks.floor import run_floor
from benchmarks.members import Load, run_members, slowest
from benchmarks.peers.load import PeerLoad

_LARGE_BYTES, _LARGE_GROUP = 1024, 8


def measure_round_trip(load: PeerLoad) -> tuple[None, float]:
    """No rate; the median time of a raw round trip to the first member, in microseconds."""
    return None, median_of_followers(run_members(by_echo, _lone(load))) * 1e6


def measure_floor(load: PeerLoad) -> tuple[float, float]:
    """The rate of the slowest member of a sequencer with nothing around it, and its delivery time."""
    delivery = median_of_followers(run_members(by_bare_sequencer, _lone(load)))
    return slowest(full_load(load), run_floor), delivery * 1e6


def full_load(load: PeerLoad) -> Load:
    """Bursts, window and frames as in `make bench`."""
    is_large = load.size >= _LARGE_BYTES
    burst = 512 if load.members >= _LARGE_GROUP else 1024 if is_large else 4096
    frame_messages = 64 if is_large else 1024
    return Load(load.members, load.messages, load.size, burst, 8 * burst, frame_messages)


def _lone(load: PeerLoad) -> Load:
    return Load(load.members, load.deliveries, load.size, burst=1, window=1, frame_messages=1)
