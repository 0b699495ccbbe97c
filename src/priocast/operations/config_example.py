"""A configuration with every key, each with what it is for and, commented out, its default."""

EXAMPLE = """\
# One member of a group. Check it with: priocast node --config group.toml --check
# Paths are relative to this file.

[node]
name = "a"                            # this member, unlike any other; its certificate has the same name
listen = "127.0.0.1:7401"             # where it listens; 0.0.0.0 for all of the machine's addresses
# advertise = "10.0.0.1:7401"         # what others dial, if that is another address
# transport = "tcp"                   # or "udp", where each group has a key_file
# multicast = "239.1.2.3:7400"        # UDP only: what goes to all is sent once
state_directory = "state"             # keeps the number of the last life, so that a restart is not mistaken
# start_seconds = 30                  # how long to wait for the group to be formed, or to admit us
# shutdown_seconds = 10               # how long to wait, at the end, for our messages to get their place

# [node.tls]                          # TCP only; without it everything is in the clear, and anybody may join
# certificate = "keys/a.crt"          # made by: priocast keys member a --group tickets
# key = "keys/a.key"
# authority = "keys/authority.crt"

[node.admin]                          # answers "priocast probe" and Prometheus (GET /metrics, GET /status)
listen = "127.0.0.1:9401"
# allow_remote = false                # true lets it listen on an address that other machines reach

[peers]                               # all members; the same table may be in every member's file
a = "127.0.0.1:7401"
b = "127.0.0.1:7402"
c = "127.0.0.1:7403"

[[group]]
name = "tickets"
# order = "sequencer-ub"              # the protocol that orders ("priocast orders"); "auto": by the load
# burst = 1                           # token-ring: messages sent at a visit of the token; all unless given
# bucket = 1                          # causal-history: timestamps that are delivered together, by priority
# part_ms = 10                        # time-parts/...: how long a part lasts that is put in order by priority
# part_count = 32                     # count-parts/...: how many messages are in such a part
# distributed = false                 # reorder: true lets members answer to all, for a hop less
# overtakes_max = 100                 # reorder: how many may overtake a message; any number unless given
# prioritised = true                  # false: first come, first served
# starvation = "none"                 # or "ageing:20ms", "flush:500ms"
# policy = "primary"                  # the majority goes on; "partitionable": each side of a cut does
# delivery = "agreed"                 # or "safe": only when every member has the message
# founders = 3                        # how many members found the group; all in [peers] unless it is given
# rejoin = true                       # come back, as a new life, when the others have put us out
# heartbeat_ms = 100                  # how often a sign of life is given
# failure_ms = 1000                   # a member that is silent for so long has failed
# slow_ms = 10000                     # a member that the order waits for so long is put out
# window = 100                        # messages ordered and not consumed; by speed unless it is given
# window_ms = 20                      # by speed: as many as the application takes in this time
# window_bytes = 16777216
# queue_max = 8192                    # messages that may wait here to be sent
# queue_bytes_max = 33554432
# submit_max = 8192                   # messages of one member that may wait to be ordered
# submit_bytes_max = 16777216
# key_file = "keys/tickets.key"       # UDP only; made by: priocast keys group keys/tickets.key
# trace = "trace"                     # records the run, for "priocast verify"
# trace_journal = false               # true: nothing is missing even if the process is killed

# [[group]]                           # as many as there are; then lines are typed as "audit: text"
# name = "audit"
"""
