"""Reverse mode of loops, branches and checkpointed functions."""
