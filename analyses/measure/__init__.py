"""How well runs perform, and what it costs."""
