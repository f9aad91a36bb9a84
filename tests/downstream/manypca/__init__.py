"""Sparse principal components of many small matrices, in one loop without the GIL."""

from ._many import components

__all__ = ["components"]
