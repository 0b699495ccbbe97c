"""The simulator: runs whole groups in virtual time, with faults, and checks every guarantee.

Everything that happens in a run follows from its seed. The modules that a simulated process runs use no
clock, socket, thread or operating system call; the only source of randomness is `seeded_random`. Two modules
are outside of that: `swarm` runs many seeds in parallel processes, `trace_writer` writes a run to disk.
"""
