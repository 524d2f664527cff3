"""User input and how it is parsed: configs, recipes, files, plugins, and their errors."""
