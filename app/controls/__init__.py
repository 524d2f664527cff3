"""Controls and displays from which the views are built."""
