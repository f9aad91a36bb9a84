"""Calls from tables: options by name, put into the records that the functions take.

`flat.sparse_pca(X, 2, cardinality=3, groups=...)` is `spcacore.sparse_pca` with these in their records.
"""

import spcacore
from spcacore._asked import SPARSITY
from spcacore.choice import Choice, Explained, Prior, Total
from spcacore.methods import METHODS, RatioSearch

OF_METHODS = {field for one in METHODS.values() for field in one.__dataclass_fields__} - {"_"}
OF_CHOICES = ("include", "exclude", "groups", "nonnegative", "count")
ONE = {name: name for name in METHODS} | {"least_squares_component": "least_squares"}
UNFITTED = ("pmd", "scotlass")  # whose tables say renormalize where values are re-fitted


def record(method, **options):
    """The record of a method, whose name a table gives."""
    return METHODS[method](**{name: value for name, value in options.items() if value is not None})


def choice_of(given, side=""):
    """What is known of the variables, taken out of the options."""
    known = {word: given.pop(side + word) for word in OF_CHOICES if side + word in given}
    signs = known.pop("nonnegative", False)
    known["signs"] = 1 if signs is True else None if signs is False else signs
    return Choice(**known) if any(value is not None for value in known.values()) else None


def known(given):
    """The same as `Supports.checked` takes it."""
    signs = given.get("nonnegative", False)
    return {word: given[word] for word in OF_CHOICES if word in given and word != "nonnegative"} | {
        "signs": 1 if signs is True else None if signs is False else signs
    }


def taken(given, names):
    return {name: given.pop(name) for name in list(given) if name in names}


def recorded(function, given):
    """The same options as the function takes them."""
    given = dict(given)
    if function in ("sparse_cca", "SparseCCA"):
        choices = choice_of(given, "x_"), choice_of(given, "y_")
        if choices != (None, None):
            given["choice"] = choices
        for word in ("cardinality", "l1_bound"):
            if {"x_" + word, "y_" + word} & set(given):
                given[word] = given.pop("x_" + word, None), given.pop("y_" + word, None)
        return given
    if function in ("sparse_lda", "SparseLDA", "sparse_eigen"):
        options = taken(given, RatioSearch.__dataclass_fields__)
        return given | ({"options": RatioSearch(**options)} if options else {})
    if function in ("oppca", "soppca", "StructuredPCA"):
        of = {"prior_covariance": "covariance", "prior_precision": "precision", "rng": "rng"}
        known = {of[word]: value for word, value in taken(given, of).items() if value is not None}
        given |= {"prior": Prior(**known)} if known else {}
    choice = choice_of(given)
    if choice is not None:
        given["choice"] = choice
    if given.get("explained") is not None:
        given["cardinality"] = Explained(given.pop("explained"), given.pop("explained_of", "variance"))
    if given.get("total_cardinality") is not None:
        given["cardinality"] = Total(given.pop("total_cardinality"))
    if function in ("sparse_pca", "SparsePCA"):
        if given.get("constraint") is not None:
            given["deflation"] = given["constraint"]
        if given.pop("n_restarts", 0):
            raise AssertionError("say refine=1 + n_restarts")
        objective = given.pop("objective", None)
        method = given.pop("method", None) or ("least_squares" if objective == "least_squares" else "tpower")
        for name in ("constraint", "explained", "explained_of", "total_cardinality"):
            given.pop(name, None)
        if given.get("certify") is True and "time_limit" in given and method != "branch_and_bound":
            given["certify"] = given.pop("time_limit") or "bounds"
        options = taken(given, OF_METHODS)
        return given | {"method": record(method, **options) if isinstance(method, str) else method}
    if function in ONE:
        sparsity = METHODS[ONE[function]].sparsity
        names = OF_METHODS - set(SPARSITY) - ({"start"} if function == "branch_and_bound" else set())
        options = ({"renormalize": False} if function in UNFITTED else {}) | taken(given, names)
        assert sparsity in SPARSITY
        return given | ({"options": record(ONE[function], **options)} if options else {})
    return given


def __getattr__(name):
    function = getattr(spcacore, name)
    return lambda *arguments, **options: function(*arguments, **recorded(name, options))
