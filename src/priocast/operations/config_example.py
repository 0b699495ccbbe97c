"""An example configuration with every key, its meaning and its default."""

EXAMPLE = """\
# One member of a group. Check it with: priocast node --config group.toml --check
# Paths are relative to this file.

[node]
name = "a"                            # unique name of this member; the same as in its certificate
listen = "127.0.0.1:7401"             # address to listen on; 0.0.0.0 for all addresses of the machine
# advertise = "10.0.0.1:7401"         # address that the others connect to, if different
# transport = "tcp"                   # or "udp"; then each group needs a key_file
# multicast = "239.1.2.3:7400"        # UDP only: send to all members with one multicast
# datagram_bytes = 1400               # UDP only: more cost less, if the network carries them whole
state_directory = "state"             # keeps the last incarnation number across restarts
# start_seconds = 30                  # how long to wait for the first view that contains this member
# shutdown_seconds = 10               # how long to wait, when leaving, until own messages are ordered

# [node.tls]                          # without it, nothing is encrypted over TCP, and any process can join;
#                                     # over UDP, members with the group's key can pose as each other
# certificate = "keys/a.crt"          # created by: priocast keys member a --group tickets
# key = "keys/a.key"
# authority = "keys/authority.crt"
# revoked = "keys/revoked.crl"        # created by: priocast keys revoke; SIGHUP reads all key files again

[node.admin]                          # for "priocast probe" and Prometheus (GET /metrics, GET /status)
listen = "127.0.0.1:9401"
# allow_remote = false                # true: allow an address that other machines can reach

[peers]                               # all members; the same table can be in every member's file
a = "127.0.0.1:7401"
b = "127.0.0.1:7402"
c = "127.0.0.1:7403"

[[group]]
name = "tickets"
# order = "sequencer-ub"              # the ordering protocol (see "priocast orders"); "auto": by load
# burst = 1                           # token-ring: most messages per visit of the token; default: no limit
# bucket = 1                          # causal-history, all-ack: timestamps per bucket, sorted by priority
# acknowledge_ms = 50                 # all-ack: how long a silent member lets the others wait
# part_ms = 10                        # time-parts/...: duration of a part that is sorted by priority
# part_count = 32                     # count-parts/...: messages per part that is sorted by priority
# distributed = false                 # reorder: true: members answer to all, which saves a hop
# overtakes_max = 100                 # reorder: how many messages may overtake one; default: no limit
# adaptation = "sliding-window"       # adaptive: the policy that gives slots to members (docs/adaptive.md)
# prioritised = true                  # false: first in, first out
# starvation = "none"                 # or "ageing:20ms", or "flush:500ms" (periodic release)
# policy = "primary"                  # after a partition the side with a quorum continues; or "partitionable"
# delivery = "agreed"                 # or "safe": only when every member has received the message
# founders = 3                        # members that form the first view together; default: all in [peers]
# rejoin = true                       # rejoin with a new incarnation after an eviction
# heartbeat_ms = 100                  # interval between heartbeats
# failure_ms = 1000                   # a member that is silent for longer has failed
# slow_ms = 10000                     # a member that the order waits for longer is evicted
# window = 100                        # most messages ordered and not consumed; default: adaptive
# window_ms = 20                      # adaptive: as many as the application consumes in this time
# window_bytes = 16777216
# queue_max = 8192                    # most messages that wait to be sent
# queue_bytes_max = 33554432
# submit_max = 8192                   # most messages of one member that wait to be ordered
# submit_bytes_max = 16777216
# response_ms = 50                    # qualities of service: a message that is not answered is sent again
# precision_ms = 10                   # how far clocks may be apart for the quality "delta"
# in_flight_max = 256                 # most messages of one member with a quality that are transmitted
# held_max = 4096                     # most of them that a member holds for its application
# omission_degree = 2                 # most transmissions in a row that your network loses; default: unknown
# delay_ms = 5                        # how long a frame is in transit at most; default: unknown
# inaccessibility_ms = 0              # how long your whole network may be silent without a failure
# key_file = "keys/tickets.key"       # UDP only; created by: priocast keys group keys/tickets.key
# trace = "trace"                     # record a trace here, a path or a URL, for "priocast verify"
# trace_journal = false               # true: the trace is complete even if the process is killed

# [[group]]                           # with several groups, type lines as "audit: text"
# name = "audit"
"""
