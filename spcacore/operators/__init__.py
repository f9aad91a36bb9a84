"""The caller's matrix as a symmetric operator: storages, statistics, screening, deflation."""

__all__: list[str] = []
__dir__ = __all__.copy
