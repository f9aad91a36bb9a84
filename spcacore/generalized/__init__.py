"""Sparse generalized eigenproblems, discriminants and canonical pairs."""

__all__: list[str] = []
__dir__ = __all__.copy
