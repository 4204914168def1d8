"""What runs in a recipe's own process: the standard library and torch, which is imported here and nowhere else."""
