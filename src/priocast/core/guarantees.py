"""The names of the guarantees. Protocols, the simulator's checkers and the Spark checks use the same ones.

`docs/guarantees.md` defines each of them exactly. The last two are not guarantees to an application: the
simulator and the model checker report them besides.
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
TIMESTAMP_ORDER = "Timestamp order"
LIVENESS = "Liveness"

BOUNDED_MEMORY = "Bounded memory"
NO_ERROR = "No error"
