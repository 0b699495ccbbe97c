"""Campaigns: very many seeds of the simulator on Spark's executors, with the verdicts in one table.

    plan ─▶ seeds in rounds ─▶ executors: simulator and checkers ─▶ table of results ─▶ summary

A campaign is a set of cells, each with the same seeds. A cell fixes some options of the scenario, such as the
order. The table of results is a directory of Parquet files, on any storage that Spark can write. It is also
what makes a campaign resumable: a seed that is in it is not run again.
"""
