"""Kills the driver of a Spark query, and members, again and again; the sink must have each position once."""
