"""Families that think: a last-layer state becomes the input at the next position."""
