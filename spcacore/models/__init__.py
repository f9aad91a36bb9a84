"""Several components, one after another or all at once; probabilistic and kernel PCA."""
