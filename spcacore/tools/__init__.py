"""Kernels as functions: thresholds, rotations, deflation of a matrix in place."""
