"""What one chooses and what is shown: the parts that views are made of."""
