"""The protocol stack of JGroups 2.12 for a comparison: SEQUENCER over TCP or UDP multicast.

The stock stack waits longer for bundles, and bundles no unicasts: every message on its way to the sequencer
is then sent by itself. With credits of a million instead of 200,000 receive buffers overflow, and the rate
falls to a tenth. Multicasts go to the loopback interface and live for no hop.
"""

from pathlib import Path

from priocast.network.address import Address

TCP, UDP = "TCP", "UDP"
_MULTICAST_HOST = "239.77.0.2"
#: Java finds the interface of multicasts by this address, and by no other of the loopback range.
_LOOPBACK = "127.0.0.1"
_BUNDLING = """enable_bundling="{bundling}" enable_unicast_bundling="{bundling}"
       max_bundle_size="64000" max_bundle_timeout="1"
"""
_THREADS = """enable_diagnostics="false"
       thread_pool.enabled="true" thread_pool.min_threads="2" thread_pool.max_threads="8"
       thread_pool.queue_enabled="true" thread_pool.queue_max_size="100000"
       oob_thread_pool.enabled="true" oob_thread_pool.min_threads="1" oob_thread_pool.max_threads="8"
       oob_thread_pool.queue_enabled="false"
"""
_TRANSPORTS = {
    TCP: f"""<TCP bind_addr="{{host}}" bind_port="{{port}}" port_range="0" loopback="true"
       recv_buf_size="2000000" send_buf_size="640000"
       {_BUNDLING} {_THREADS}/>
  <TCPPING timeout="3000" initial_hosts="{{hosts}}" port_range="0" num_initial_members="{{members}}"/>""",
    UDP: f"""<UDP bind_addr="{{host}}" loopback="true"
       mcast_addr="{_MULTICAST_HOST}" mcast_port="{{multicast_port}}" ip_ttl="0"
       ucast_recv_buf_size="20000000" ucast_send_buf_size="640000"
       mcast_recv_buf_size="25000000" mcast_send_buf_size="640000"
       {_BUNDLING} {_THREADS}/>
  <PING timeout="3000" num_initial_members="{{members}}"/>""",
}
_STACK = """<config xmlns="urn:org:jgroups">
  {transport}
  <MERGE2 min_interval="10000" max_interval="30000"/>
  <FD_SOCK bind_addr="{host}"/>
  <FD timeout="60000" max_tries="5"/>
  <pbcast.NAKACK use_mcast_xmit="{multicasts}" gc_lag="0" retransmit_timeout="300,600,1200"
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


def write_stack(
    directory: Path, rank: int, addresses: list[Address], *, transport: str, bundling: bool
) -> Path:
    """Write the stack of one member."""
    path = directory / f"jgroups-{rank}.xml"
    values = {
        "host": _LOOPBACK if transport == UDP else addresses[rank].host,
        "port": addresses[rank].port,
        "multicast_port": addresses[0].port,
        "bundling": str(bundling).lower(),
        "hosts": ",".join(f"{address.host}[{address.port}]" for address in addresses),
        "members": len(addresses),
        "multicasts": str(transport == UDP).lower(),
    }
    text = _STACK.replace("{transport}", _TRANSPORTS[transport]).format(**values)
    path.write_text(text, encoding="utf-8")
    return path
