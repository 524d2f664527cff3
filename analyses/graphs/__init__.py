"""Graphs: what is held of each node, and how thoughts search."""
