"""Recipes that ship: `{name}.yaml` in this folder."""
