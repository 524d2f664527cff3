"""How training went."""
