"""The reference world: a small world in which the truth is known. See docs/world.md."""
