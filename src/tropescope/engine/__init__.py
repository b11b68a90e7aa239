"""Running stages: progress, memory limits, commits. Knows nothing of what a stage computes."""
