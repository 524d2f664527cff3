"""Analyses of a model's answers under interventions on its activations."""
