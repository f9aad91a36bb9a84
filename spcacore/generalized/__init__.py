"""Sparse generalized eigenproblems, discriminants and canonical pairs."""

__all__: list[str] = []
