"""What Priocast costs, as ratios to a floor measured in the same run. `python -m benchmarks` runs all."""
