"""Several components, one after another or all at once; probabilistic and kernel PCA."""

__all__: list[str] = []
