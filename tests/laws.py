"""What holds of every call, whatever it computes: a column a law, a row a function, and why not.

As a program, it writes the table of docs/developer/laws.md; test_laws.py asks that it is this one.
The tests that are named here ask each law of each call of calls.py that has no reason.
"""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path

from calls import CALLS, Call

import spcacore

PAGE = Path(__file__).resolve().parents[1] / "docs" / "developer" / "laws.md"
BEGIN, END = "<!-- laws -->\n", "<!-- end -->"
Reasons = dict[str, str]


@dataclasses.dataclass(frozen=True)
class Law:
    """`reasons`: why a call, by its name, does not obey; `applies`: of which calls the law says anything."""

    says: str
    asked_by: str
    reasons: Reasons = dataclasses.field(default_factory=dict)
    applies: Callable[[Call], bool] = lambda _: True

    def calls(self):
        return [call for call in CALLS if self.applies(call) and plain(call) not in self.reasons]


def plain(call):
    return call.name.removesuffix(", covariance")


def of_data(call):
    return call.takes == "data"


def takes(call, *options):
    """Whether the function takes these."""
    owner = spcacore
    for part in call.function.split("."):
        owner = getattr(owner, part)
    return of_data(call) and {*options} <= {*inspect.signature(owner).parameters}


def weighted(call):
    return takes(call, "sample_weight")


def standardized(call):
    """Of one set of variables, and not scaled already."""
    return takes(call, "center", "scale") and not call.name.startswith(("sparse_cca", "sparse_pca, scale"))


def paired(call):
    return f"{call.name}, covariance" in {other.name for other in CALLS}


def each(reason, *names):
    return dict.fromkeys(names, reason)


PERMUTED = "sparse_cca_permutation", "sparse_dissimilarity_gap", "sparse_kmeans_gap"
FOLDED = (
    "select_n_components",
    "select_sparsity",
    "select_sparsity, correlation",
    "select_sparsity, permutation",
)
DISTANT = (
    "kernel_pca",
    "kernel_pca, features",
    "random_fourier_features",
    "sparse_dissimilarity",
    "sparse_kmeans",
)
GIVEN = (
    *(f"explained_variance{of}" for of in ("", ", adjusted", ", regression")),
    *("compare", "from_loadings", "deflate", "deflate, schur"),
    "SparsePCAResult.transform",
)
FEATURES = "kernel_pca, features", "random_fourier_features"
LAWS = {
    "order of rows": Law(
        "The rows in another order: scores and labels in that order, all else as before.",
        "test_invariances::test_order_of_rows_and_columns",
        each("permutations are drawn by the number of the row", *PERMUTED)
        | each("folds are dealt, or rows permuted, by the number of the row", *FOLDED),
        of_data,
    ),
    "order of columns": Law(
        "The columns in another order: loadings, means and weights in that order, all else as before.",
        "test_invariances::test_order_of_rows_and_columns",
        each("each column is permuted, by numbers drawn in turn", *PERMUTED, "select_sparsity, permutation")
        | each("frequencies are drawn column after column", *FEATURES),
    ),
    "signs": Law(
        "Some columns times -1: the signs of their loadings change, and nothing else.",
        "test_laws::test_other_signs_of_columns",
        each("loadings or a mean are given", *GIVEN)
        | each("signs are asked for", "tpower, nonnegative", "branch_and_bound, chosen")
        | each("frequencies are drawn column after column", "kernel_pca, features"),
        lambda call: call.takes in ("data", "covariance"),
    ),
    "unit": Law(
        "X in another unit: no loading changes, and by a power of two no bit; variances have its square.",
        "test_invariances::test_a_power_of_two_changes_no_bit",
    ),
    "rotation": Law(
        "The samples rotated about their mean: the covariance is the same, and so is all but the scores.",
        "test_laws::test_samples_rotated_about_their_mean",
        each("a bound on the l1 norm of scores depends on the samples", "pmd, two-way", "sma")
        | each("distances between rows change", *DISTANT, "sparse_dissimilarity, absolute")
        | each("classes are of rows", "sparse_lda")
        | each("rows are permuted or held out", *PERMUTED, *FOLDED),
        of_data,
    ),
    "weights": Law(
        "A sample_weight of 0, 1, 2 or 3 is the row left out or repeated.",
        "test_laws::test_weights_are_repeated_rows",
        each("a bound on the l1 norm of the scores counts rows, however heavy", "pmd, two-way"),
        weighted,
    ),
    "vectors": Law(
        "Vectors for center and scale: as of the data that were centered and scaled before.",
        "test_laws::test_vectors_for_center_and_scale",
        applies=standardized,
    ),
    "constant column": Law(
        "The value of a constant column changes nothing but a mean, and the column has no loading.",
        "test_laws::test_the_value_of_a_constant_column_changes_nothing",
        each("columns are not centered", "sma", "deflate", "deflate, schur"),
        of_data,
    ),
    "covariance": Law(
        "The covariance in place of the data gives the same, where the function takes it.",
        "test_calls::test_a_covariance_gives_what_its_data_give",
        each("the results are matrices of different kinds", "deflate", "deflate, schur"),
        paired,
    ),
    "float32": Law(
        "Single precision is near double precision, and loadings stay in it.",
        "test_calls::test_single_precision_is_near_double",
    ),
    "threads": Law(
        "Any number of threads gives the same bits.",
        "test_threads::test_bits_of_every_call",
    ),
    "again": Law(
        "A second call gives the same bits, X stays as it was; the largest entry of a loading is positive.",
        "test_calls::test_every_call_answers_and_repeats",
    ),
    "copies": Law(
        "Results are frozen; copied and pickled, they are the same to the bit.",
        "test_calls::test_results_are_frozen_copied_and_pickled",
    ),
}  # fmt: skip


def table():
    """The page's part: what each law says, a row a function, and the reasons that its numbers name."""
    reasons = []
    lines = [f"* **{name}**: {law.says}" for name, law in LAWS.items()]
    lines += ["", f"| | {' | '.join(LAWS)} |", "| --- |" + " --- |" * len(LAWS)]
    for function in sorted({call.function for call in CALLS}):
        cells = []
        for law in LAWS.values():
            calls = [call for call in CALLS if call.function == function and law.applies(call)]
            told = {law.reasons[plain(call)]: 0 for call in calls if plain(call) in law.reasons}
            reasons += [reason for reason in told if reason not in reasons]
            notes = " ".join(f"({reasons.index(reason) + 1})" for reason in told)
            obeys = any(plain(call) not in law.reasons for call in calls)
            cells.append(" ".join(filter(None, ("yes" if obeys else "no" if told else "", notes))))
        lines.append(f"| `{function}` | {' | '.join(cells)} |")
    lines += ["", *(f"{i}. {reason[0].upper()}{reason[1:]}." for i, reason in enumerate(reasons, 1)), ""]
    return "\n".join(lines)


def parts():
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    written, after = rest.split(END)
    return before, written, after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
