"""Imports in a fresh process; the difference is the package's own."""


def timeraw_numpy_and_scipy():
    return "import numpy, scipy.linalg"


def timeraw_spcacore():
    return "import numpy, scipy.linalg, spcacore"
