"""Building blocks of analyses: declaration, results, tables, labels and figures."""
