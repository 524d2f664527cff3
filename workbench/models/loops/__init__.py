"""Families that loop: the same blocks run repeatedly on the same positions."""
