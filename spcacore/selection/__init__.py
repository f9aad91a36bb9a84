"""How sparse and how many: paths, folds, permutations."""

__all__: list[str] = []
__dir__ = __all__.copy
