"""The protocol stack of JGroups 2.12 for a comparison: SEQUENCER over TCP, with or without bundling.

The stock stack waits longer for bundles. With credits of a million instead of 200,000 receive buffers
overflow, and the rate falls to a tenth.
"""

from pathlib import Path

from priocast.network.address import Address

_STACK = """<config xmlns="urn:org:jgroups">
  <TCP bind_addr="{own.host}" bind_port="{own.port}" port_range="0" loopback="true"
       recv_buf_size="2000000" send_buf_size="640000"
       enable_bundling="{bundling}" max_bundle_size="64000" max_bundle_timeout="1" enable_diagnostics="false"
       thread_pool.enabled="true" thread_pool.min_threads="2" thread_pool.max_threads="8"
       thread_pool.queue_enabled="true" thread_pool.queue_max_size="100000"
       oob_thread_pool.enabled="true" oob_thread_pool.min_threads="1" oob_thread_pool.max_threads="8"
       oob_thread_pool.queue_enabled="false"/>
  <TCPPING timeout="3000" initial_hosts="{hosts}" port_range="0" num_initial_members="{members}"/>
  <MERGE2 min_interval="10000" max_interval="30000"/>
  <FD_SOCK bind_addr="{own.host}"/>
  <FD timeout="60000" max_tries="5"/>
  <pbcast.NAKACK use_mcast_xmit="false" gc_lag="0" retransmit_timeout="300,600,1200"
                 discard_delivered_msgs="true"/>
  <UNICAST2 timeout="300,600,1200"/>
  <pbcast.STABLE stability_delay="1000" desired_avg_gossip="50000" max_bytes="4000000"/>
  <pbcast.GMS print_local_addr="false" join_timeout="5000" view_bundling="true"/>
  <SEQUENCER/>
  <UFC max_credits="200000" min_threshold="0.4"/>
  <MFC max_credits="200000" min_threshold="0.4"/>
  <FRAG2 frag_size="60000"/>
</config>
"""


def write_stack(directory: Path, rank: int, addresses: list[Address], *, bundling: bool) -> Path:
    """Write the stack of one member."""
    path = directory / f"jgroups-{rank}.xml"
    hosts = ",".join(f"{address.host}[{address.port}]" for address in addresses)
    text = _STACK.format(
        own=addresses[rank], bundling=str(bundling).lower(), hosts=hosts, members=len(addresses)
    )
    path.write_text(text, encoding="utf-8")
    return path
