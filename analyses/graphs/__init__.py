"""Graphs: which nodes a model marks as reached, and how thoughts search."""
