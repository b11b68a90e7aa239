"""Adapters to the models of the outside world, behind small protocols."""
