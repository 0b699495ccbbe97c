"""The soak: real members under load and random faults for an hour, judged by Spark: `make soak`."""
