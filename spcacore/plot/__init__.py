"""Pictures of sparse components, with matplotlib (`pip install ".[plot]"` from the source directory).

Every function draws into one matplotlib Axes, given or new, and returns it. The functions do not show the
figure, and do not change settings of matplotlib. All pictures use the same colors for loadings: red above
zero, blue below, with limits of the same magnitude.
"""

from collections.abc import Callable

from .._records import filled
from .curves import comparison, path, scree, stability
from .drawing import PARAGRAPHS
from .loadings import bars, heatmap, images
from .scores import biplot

__all__ = ["bars", "biplot", "comparison", "heatmap", "images", "path", "scree", "stability"]
__dir__: Callable[[], list[str]] = __all__.copy

for _name in __all__:
    _picture = filled(PARAGRAPHS)(globals()[_name])
    _picture.__module__ = __name__  # the place for their users
