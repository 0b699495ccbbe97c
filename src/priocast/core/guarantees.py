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
CAUSAL_ORDER = "Causal order"
PRIORITY = "Priority"
PRIORITY_ACCOUNTING = "Priority accounting"
BOUNDED_OVERTAKING = "Bounded overtaking"
BOUNDED_WINDOW = "Bounded window"
TIMESTAMP_ORDER = "Timestamp order"
LIVENESS = "Liveness"

BOUNDED_MEMORY = "Bounded memory"
NO_ERROR = "No error"

NON_TRIVIALITY = "Non-triviality (Px4)"
ACCESSIBILITY = "Accessibility (Px5)"
DELIVERY = "Delivery (Px6)"
TIGHTNESS = "Tightness (Px7)"
UNANIMITY = "Unanimity (Px8)"
AT_LEAST = "At least (Px9)"
BEST_EFFORT = "Best effort (Px10)"
SERVICE_TOTAL_ORDER = "Total order (Px11)"
SERVICE_CAUSAL_ORDER = "Causal order (Px12)"
SERVICE_FIFO_ORDER = "FIFO order (Px13)"
"""Those of the qualities of service, with the numbers that the xAMp paper gives them (its Table 1)."""
