"""Kernels as functions: thresholds, rotations, deflation of a matrix in place."""

__all__: list[str] = []
