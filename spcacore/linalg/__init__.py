"""Linear algebra that every floor above uses: eigenpairs, orthonormal bases, pencils, scaling, threads."""
