"""Bounds on what comes from outside: images, paths, checkpoints, secrets."""
