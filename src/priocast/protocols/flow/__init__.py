"""Flow control and bookkeeping that all protocol families share."""
