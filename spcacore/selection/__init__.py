"""How sparse and how many: paths, folds, permutations."""

__all__: list[str] = []
