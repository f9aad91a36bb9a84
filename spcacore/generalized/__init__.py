"""Sparse generalized eigenproblems, discriminants and canonical pairs."""
