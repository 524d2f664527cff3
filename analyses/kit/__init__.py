"""What analyses are made of: results, tables, labels, figures, and how they are declared."""
