"""How sparse and how many: paths, folds, permutations."""
