"""Families that think: a state of the last layer becomes an input."""
