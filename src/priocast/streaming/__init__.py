"""The ordered stream of a group in Spark: a source and a sink by the name `priocast`.

Importing this package imports pyspark, which takes seconds: import it where it is used, not at start-up.
"""
