"""Weights of variables for dissimilarities and K-means."""

__all__: list[str] = []
__dir__ = __all__.copy
