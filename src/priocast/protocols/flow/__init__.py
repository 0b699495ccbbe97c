"""Flow control and bookkeeping that all families of protocols share."""
