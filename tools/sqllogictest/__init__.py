"""Runs files of sqllogictest on replicated databases: replicas and expected results must agree."""
