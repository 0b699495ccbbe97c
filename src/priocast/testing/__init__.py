"""What exploration, studies, tests and benchmarks share: a protocol by itself, groups of processes."""
