"""Several components, one after another or all at once; probabilistic and kernel PCA."""

__all__: list[str] = []
__dir__ = __all__.copy
