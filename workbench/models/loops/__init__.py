"""Families that loop: the same blocks again and again on the same positions."""
