"""Weights of variables for dissimilarities and K-means."""
