"""The names of the guarantees: protocols, the simulator's checkers and the Spark checks use the same ones.

`docs/guarantees.md` defines each of them.
"""

INTEGRITY = "Integrity"
TOTAL_ORDER = "Total order"
AGREEMENT = "Agreement"
UNIFORMITY = "Uniformity"
VIEW_SYNCHRONY = "View synchrony"
FIFO_AMONG_EQUALS = "FIFO among equals"
PRIORITY = "Priority"
PRIORITY_ACCOUNTING = "Priority accounting"
BOUNDED_OVERTAKING = "Bounded overtaking"
BOUNDED_WINDOW = "Bounded window"
LIVENESS = "Liveness"
