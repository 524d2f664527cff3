"""One file a view: choose, analyse, show."""
