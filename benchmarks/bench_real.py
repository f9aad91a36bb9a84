"""The default on real wide data: how far below the best known, beside the time: neither is traded unseen.

The 72 cases of `real_data.py` (golub, blogs and blood cells), whose best supports are in real_best.json. They
are left out without the files of SPCACORE_TEST_DATA.
"""

import json
import sys
from pathlib import Path

import numpy as np

import spcacore

BEST = Path(__file__).with_name("real_best.json")
COMPONENTS = 4
sys.path.append(str(Path(__file__).parent))  # of the scripts, which import each other by their names


class RealData:
    """Four components, each on the data without the best ones before it."""

    params = (["golub", "blogs", "blood cells"], ["raw", "scaled"], [5, 20, 50])
    param_names = ("set", "columns", "cardinality")
    timeout = 300
    number, repeat, warmup_time = 1, 3, 0

    def setup(self, name, columns, k):
        import real_data
        import real_sets

        try:
            X = real_sets.SETS[name].read()
        except FileNotFoundError as missing:
            raise NotImplementedError(str(missing)) from None
        best = json.loads(BEST.read_text())
        D, _ = real_data.chosen(X, columns == "scaled", real_sets.SETS[name].limit)
        self.k, self.cases = k, []
        for t in range(COMPONENTS):
            one = best[f"{name}-{columns}-{k}-{t + 1}"]
            self.cases.append((D, one["value"]))
            S = np.array(one["support"])
            x = np.linalg.svd(D[:, S], full_matrices=False)[2][0]
            D = D.copy()
            D[:, S] -= np.outer(D[:, S] @ x, x)

    def time_default(self, name, columns, k):
        for D, _ in self.cases:
            spcacore.tpower(D, k)

    def track_worst(self, name, columns, k):
        """Percent of the variance below the best known, of the worst component."""
        import real_data

        return max(
            100 * (1 - real_data.value(D, spcacore.tpower(D, k).loading) / best) for D, best in self.cases
        )

    track_worst.unit = "%"
