"""How well runs do, and what it costs."""
