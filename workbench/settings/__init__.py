"""What a user writes and what is made of it: configs, recipes, files, plugins, and their errors."""
