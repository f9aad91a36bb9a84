"""The caller's matrix as a symmetric operator: storages, statistics, screening, deflation."""
