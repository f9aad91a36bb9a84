"""Pictures of sparse components, with matplotlib (`pip install "spcacore[plot]"`).

Every function draws into one matplotlib Axes, a new one or the one it is given, and returns it. Nothing is
shown, and no setting of matplotlib is changed. Loadings have one diverging scale of colors everywhere, red
above zero and blue below, with limits of the same magnitude.
"""

from .frequencies import stability
from .loadings import bars, heatmap, images
from .scores import biplot
from .selection import path
from .variances import comparison, scree

__all__ = ["bars", "biplot", "comparison", "heatmap", "images", "path", "scree", "stability"]
__dir__ = __all__.copy

for _picture in (bars, biplot, comparison, heatmap, images, path, scree, stability):
    _picture.__module__ = __name__  # the place for their users
