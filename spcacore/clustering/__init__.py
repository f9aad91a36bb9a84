"""Weights of variables for dissimilarities and K-means."""

__all__: list[str] = []
