"""Every option of every public function refuses what it cannot be, and says which option it was.

`BASE` has the arguments of a good call of each function, `BAD` what no option of that name may be. A new
option, or one of a new function, must be in both.
"""

import ast
import importlib
import inspect
import re
from fractions import Fraction
from functools import partial
from numbers import Real

import flat
import numpy as np
import pytest
from calls import APART, COVARIANCE, LABELS, METRIC, SETTINGS, SPARSE, V0, X0, K, P, R, found, pca
from extras import skipping

import spcacore
from spcacore.methods import METHODS
from spcacore.options import OPTIONS, declared

pytestmark = pytest.mark.usefixtures("few_starts")

STRANGE = [object(), 1j, [[1.0]], {"a": 1}, "three", b"3"]
FLAG = [1, 0, 1.0, "yes", None, np.nan, [True]]
WORD = ["nothing", "", 1, 1.5, True, None, b"l1", ["tpower"], np.nan]
WHOLE = [-1, 1.5, 2.0, np.float64(2), True, np.True_, np.nan, np.inf, None, Fraction(5, 2), *STRANGE]
POSITIVE = [0, *WHOLE]
NUMBER = [-1.0, -np.inf, np.nan, True, np.True_, None, 10**400, np.complex64(1), *STRANGE]
RNG = ["seed", 1.5, True, -1, np.random, object(), [1.5], np.nan]
CALLBACK = [5, "print", [print], 0, False, 1]


def without(values, *allowed):
    return [v for v in values if not any(v is a or (type(v) is type(a) and v == a) for a in allowed)]


def named(values, names):
    """The same values for options of these names."""
    return dict.fromkeys(names.split(), values)


BAD = {
    **named(
        FLAG, "center overwrite ratio normalize renormalize relative nonnegative refine certify relaxation"
    ),
    "scale": FLAG,
    "swaps": FLAG,
    "persist": without(FLAG, None),
    **named(
        WORD,
        "kind method deflation screening definition strategy norm rotation threshold constraint "
        "criterion rule solver kernel metric of support",
    ),
    **named(
        POSITIVE,
        "n_components n_clusters n_resamples n_starts n_folds n_repeats n_permutations n_init n_samples "
        "n_features k block_bytes degree node_limit random_features more",
    ),
    **named(WHOLE, "max_iter n_restarts ddof first"),
    "n_jobs": without(POSITIVE, -1),
    "power": [0.5, 101, *NUMBER],
    "cardinality": [*POSITIVE, 10**30],
    **named(
        NUMBER, "tol ridge level sample_l1_bound l1_bound penalty bandwidth memory_limit time_limit bound"
    ),
    **named(without(NUMBER, -1.0), "gamma coef0"),
    "share": [0, 1.1, *NUMBER],
    "l1_bounds": [-1.0, np.nan, [], [np.nan], [1.2, -1], "1.2", [None], object(), [[1.2]], [1.2, np.inf]],
    "rng": RNG,
    "callback": CALLBACK,
    "start": [
        "nothing",
        np.ones(P - 1),
        np.ones((P, R + 3)),
        np.full(P, np.nan),
        np.zeros(P),
        object(),
        3,
        1j,
    ],
    "names": [["a"], 5, [*"abcdefghijkl"][:-1]],
    "label": [3, None, b"given", ["given"]],
    "results": [
        [],
        {},
        3,
        "abc",
        None,
        SPARSE,
        {3, 4},
        [object()],
        [SPARSE, V0[:, 0, None, None]],
        {1: V0, "1": V0},
    ],
    "reference": [2, -1, "nothing", 1.5, True, None, "loadings"],
    "block": FLAG,
    "mu": [0, -1.0, "one", [0.0, 1.0], [1.0, np.nan], object()],
    "shrinkage": without(NUMBER, None),
    "model": [*WORD, 2, np.sum, X0, spcacore.varimax, partial(spcacore.sparse_pca, 2)],
    "grid": [[], {}, 5, "34", [0, 2], [2, 2], {"penalty": [1.0]}, {"cardinality": 3}, [2, None], object()],
    **named([3, "x1", [0.5], [-1], [99], [True], ["x1"], {"a": 1}, object(), 1j], "include exclude"),
    "groups": [3, "abc", [1, 2], np.ones((3, 4)), object(), {"x1": 1}],
    "signs": [0, 2, 1.5, "one", True, [1, 2], np.full(P, 2), np.full(P, np.nan), object(), 1j],
    "count": WORD,
    **named(
        [5, 1.5, "tpower", {}, {"include": [1]}, [1], object(), spcacore.Choice, spcacore.TPower],
        "options choice prior",
    ),
    "mask": [np.ones(2, bool), "mask", np.ones((3, 3)), 5],
    "shape": [(), (0,), (2, -1), (2.5,), "34", None, (True,), 1.5],
}


BASE = {
    **{f: ((X0, R), {"cardinality": K}) for f in ("sparse_pca", "spca")},
    **{f: ((X0, K), {}) for f in ("tpower", "greedy", "branch_and_bound", "optimality_bound", "dspca")},
    "least_squares_component": ((X0, K), {}),
    **{f: ((X0, 1.5), {}) for f in ("gpower", "pmd", "scotlass", "sparse_dissimilarity")},
    **{f: ((X0, V0), {}) for f in ("explained_variance", "renormalize")},
    **{f: ((X0, R), {}) for f in ("oppca", "ppca", "kernel_pca")},
    **{f: ((V0,), {}) for f in ("varimax", "orthomax", "l1_rotation", "oblimin", "promax")},
    "refine": ((X0, SPARSE), {}),
    "compare": (([SPARSE, V0], X0), {}),
    "from_loadings": ((SPARSE, X0), {}),
    "sca": ((X0, R), {"l1_bound": 3.0}),
    "sma": ((X0, R), {"l1_bound": 3.0}),
    "soppca": ((X0, R, K), {}),
    "select_prior": ((X0, partial(spcacore.oppca, n_components=R), {"none": None}), {}),
    "random_fourier_features": ((X0, 20), {}),
    "sparse_lda": ((X0, LABELS), {"cardinality": K}),
    "sparse_cca": ((X0[:, :6], X0[:, 6:]), {"l1_bound": (1.5, 1.5)}),
    "sparse_cca_permutation": ((X0[:, :6], X0[:, 6:], [1.2, 1.5]), {"n_permutations": 3}),
    "sparse_dissimilarity_gap": ((X0, [1.2, 2.0]), {"n_permutations": 2}),
    "sparse_kmeans": ((X0, 3, 1.5), {"n_init": 2}),
    "sparse_kmeans_gap": ((X0, 3, [1.2, 2.0]), {"n_permutations": 2, "n_init": 2}),
    "sparse_eigen": ((COVARIANCE, METRIC, K), {}),
    "sparse_eigen_bound": ((COVARIANCE, METRIC, K), {}),
    "sparse_cca_bound": ((X0[:, :6], X0[:, 6:], (2, 2)), {}),
    "sparsity_path": ((X0, spcacore.sparse_pca, [6, 3]), {}),
    "select_sparsity": ((X0, spcacore.sparse_pca, [6, 3]), {}),
    "select_n_components": ((X0, pca(1, K), 2), {}),
    "deflate": ((COVARIANCE, V0[:, 0]), {}),
    "prs": ((V0, 3.0), {}),
    "truncate": ((V0[:, 0], K), {}),
    "soft_threshold": ((V0[:, 0], 0.3), {}),
    "l1_threshold": ((V0[:, 0], 1.5), {}),
    "row_blocks": ((X0,), {}),
    "grid_laplacian": (((3, 4),), {}),
}
ARRAYS = {  # whose rows are in test_bad_input and test_weights
    "X", "Y", "A", "B", "M", "a", "x", "y", "loadings", "earlier", "mean", "priors",
    "covariance", "precision", "sample_weight",
}  # fmt: skip
ALLOWED = {  # what one function takes and no other of these names
    ("truncate", "k"): [0],
    **{(f, "n_components"): [None] for f in ("oppca", "soppca")},
    ("sparse_pca", "refine"): [1],  # attempts
    ("sparse_pca", "certify"): [1, 1.0],  # seconds
}
MORE = {  # what one function does not take, where another of these names may
    ("sparse_pca", "n_components"): [P + 1, 10**30, "2"],
    ("sparse_pca", "refine"): [-1, 1.5, 10**30],
    ("sparse_pca", "certify"): [-1.0, "optimum"],
    ("sparse_pca", "support"): ["commonly"],
    ("sparse_cca", "choice"): [(None,), (None,) * 3, (None, 5)],
    ("sparse_cca", "cardinality"): [(2,), (2, 2, 2), (0, 2), (2, P), (2, 1.5)],
    ("sparse_cca", "l1_bound"): [(1.5,), (1.5, 1.5, 1.5), (0.5, 1.5), (1.5, "2")],
    ("sparse_pca", "cardinality"): [
        [K], [K] * 3, [], [K, 0], [K, P + 1], [K, 2.0], [K, True], [[K, K]], [[K], [K]], [K, [K]], {K, 4},
        (k for k in (K, K)), np.array([3.0, 3.0]), "33",
    ],
}  # fmt: skip
FUNCTIONS = [
    name
    for name in spcacore.__all__
    if inspect.isfunction(getattr(spcacore, name)) and name not in SETTINGS | APART
]


NEEDED = {"l1_bound": {"l1_bound": 1.5}, "penalty": {"penalty": 0.5}, "cardinality": {}}
INSIDE = [  # records: of which function, as which argument, and what it needs
    *[(f, "options", METHODS[method], {}) for f, method in flat.ONE.items() if f in FUNCTIONS],
    *[("sparse_pca", "method", one, NEEDED[one.sparsity]) for one in METHODS.values()],
    ("sparse_pca", "method", spcacore.GPower, {"penalty": 0.5, "block": True}),
    *[(f, "options", spcacore.RatioSearch, {}) for f in ("sparse_eigen", "sparse_lda")],
    *[
        (f, "choice", spcacore.Choice, {})
        for f in FUNCTIONS
        if "choice" in inspect.signature(getattr(spcacore, f)).parameters
    ],
    *[(f, "prior", spcacore.Prior, {}) for f in ("oppca", "soppca")],
    ("sparse_pca", "cardinality", spcacore.Explained, {"share": 0.9}),
    ("sparse_pca", "cardinality", spcacore.Total, {"count": 6}),
]
COUNT_OF_TOTAL = [*POSITIVE, 1, 10**30]
CALLED = {"share": "Explained"}  # what a message says


def test_every_option_of_every_function_is_in_the_tables():
    assert set(BASE) == set(FUNCTIONS)
    known = ARRAYS | set(BAD)
    for name in FUNCTIONS:
        assert known >= set(inspect.signature(getattr(spcacore, name)).parameters), name
    inside = {(function, argument) for function, argument, *_ in INSIDE}
    for name in FUNCTIONS:
        taken = set(inspect.signature(getattr(spcacore, name)).parameters) & {"options", "choice", "prior"}
        assert taken == {argument for function, argument in inside if function == name} & {
            "options", "choice", "prior"
        }, name  # fmt: skip
    for _, _, record, *_ in INSIDE:
        assert known >= set(inspect.signature(record).parameters), record


def test_every_option_has_a_row_with_its_meaning():
    """Of functions and of records; and no row is of nothing."""
    takers = [getattr(spcacore, name) for name in FUNCTIONS]
    records = [*METHODS.values(), spcacore.RatioSearch, spcacore.Choice, spcacore.Explained, spcacore.Total]
    known = {f"{one.__name__}.{name}" for one in records for name in inspect.signature(one).parameters}
    known |= {name for one in [*takers, *records] for name in inspect.signature(one).parameters}
    known |= {*inspect.signature(spcacore.Prior).parameters}
    assert set(OPTIONS) <= known
    for record in records:
        assert set(declared(record)) == set(inspect.signature(record).parameters), record
        for name, one in declared(record).items():
            if one.kind == "words":
                assert one.default in one.words, name
            if one.kind in ("whole", "number") and one.default is not inspect.Parameter.empty:
                assert one.default is None or one.option.low <= one.default <= one.option.high, name


def documented_defaults(thing):
    """{name: value} of what the docstring says of parameters: `name, other : type, default 3 and 4`."""
    section = re.search(
        r"\n *Parameters\n *-+\n(.*?)(?=\n *\w[\w ]*\n *-{3,}\n|\Z)", thing.__doc__ or "", re.S
    )
    said = {}
    for names, kind in re.findall(r"^ *((?:\w+, )*\w+) : (.*)$", section[1] if section else "", re.M):
        names, default = names.split(", "), re.search(r"default (.+)$", kind)
        if default:
            values = default[1].split(" and ")
            said |= dict(zip(names, values * (len(names) if len(values) == 1 else 1), strict=True))
    return said


@pytest.mark.parametrize("module", ["spcacore", "spcacore.sklearn", "spcacore.plot"])
def test_defaults_are_those_documented(module):
    with skipping():
        module = importlib.import_module(module)
    compared = 0
    for name in module.__all__:
        thing = getattr(module, name)
        if not callable(thing):
            continue
        parameters = inspect.signature(thing).parameters
        for option, value in documented_defaults(thing).items():
            assert parameters[option].default == ast.literal_eval(value), (name, option)
            compared += 1
    assert compared > 3


OTHER_NAMES = {
    "SparseHierarchical": "sparsedissimilarity", "StabilitySelector": "stability", "StructuredPCA": "soppca",
}  # fmt: skip


def test_defaults_of_estimators_are_those_of_their_functions():
    with skipping():
        estimators = importlib.import_module("spcacore.sklearn")
    functions = {name.replace("_", ""): getattr(spcacore, name) for name in (*FUNCTIONS, "stability")}
    for name in estimators.__all__:
        ours = inspect.signature(getattr(estimators, name)).parameters
        theirs = inspect.signature(functions[OTHER_NAMES.get(name, name.lower())]).parameters
        given = {option for option, p in theirs.items() if p.default is not inspect.Parameter.empty}
        assert set(ours) - set(theirs) <= {"random_state", "n_clusters", "linkage"}, name  # none is ignored
        for option in set(ours) & given - {"n_components", "cardinality", "options"}:
            if (name, option) == ("SCA", "center"):  # None is for scale="degree", which SCA refuses
                assert (ours[option].default, theirs[option].default) == (True, None)
                continue
            assert ours[option].default == theirs[option].default, (name, option)


COUNTS = {  # refused before anything else is looked at, as are flags, words and callbacks
    "max_iter", "n_starts", "n_folds", "n_repeats", "n_permutations", "n_init", "n_jobs", "n_clusters",
    "n_restarts", "random_features", "ddof", "first", "block_bytes",
}  # fmt: skip


def error_of(option, value):
    """TypeError where no value of that type will do."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if option in COUNTS or option == "tol":
        return ValueError if number and (option == "tol" or isinstance(value, int)) else TypeError
    if BAD.get(option) is WORD and option not in ("method", "kernel"):
        return ValueError
    flag = BAD.get(option) is FLAG and option not in ("center", "scale")
    return TypeError if flag or option == "callback" else (TypeError, ValueError)


def refused(call, given, option, value):
    """What is wrong with the way in which a value is refused, if it is."""
    handed_on = option not in call.__code__.co_varnames  # TypeError if that function does not take it
    errors = (TypeError, ValueError) if handed_on else error_of(option, value)
    try:
        call(**{**given, option: value})
    except errors as error:
        return None if re.search(rf"\b{option}\b", str(error)) else f"says {error}"
    except Exception as error:
        return f"raises {error!r}"
    return "is accepted"


@pytest.mark.share(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_values_are_refused_by_name(name):
    call = getattr(spcacore, name)
    signature = inspect.signature(call)
    arguments, options = BASE[name]
    given = signature.bind(*arguments, **options).arguments
    call(**given)
    before = X0.tobytes(), COVARIANCE.tobytes(), V0.tobytes()
    wrong = [
        f"{option}={value!r} {complaint}"
        for option, parameter in signature.parameters.items()
        if option not in ARRAYS
        for value in [*without(BAD[option], *ALLOWED.get((name, option), ())), *MORE.get((name, option), ())]
        if not (value is None and parameter.default is None)
        if (complaint := refused(call, given, option, value)) is not None
    ]
    assert not wrong, "\n".join(wrong)
    assert (X0.tobytes(), COVARIANCE.tobytes(), V0.tobytes()) == before
    with pytest.raises(TypeError, match="nonsense"):
        call(**given, nonsense=1)


@pytest.mark.share(3)
@pytest.mark.parametrize(("name", "argument", "record", "needed"), INSIDE)
def test_bad_values_in_records_are_refused_by_name(name, argument, record, needed):
    """Whether the record refuses them, or the function that is given it."""
    function = getattr(spcacore, name)
    arguments, options = BASE[name]
    given = inspect.signature(function).bind(*arguments, **options).arguments
    if argument == "method":
        given.pop("cardinality" if name == "sparse_pca" and record.sparsity != "cardinality" else "", None)

    def call(**fields):
        made = record(**fields)
        return function(**{**given, argument: (made, None) if name == "sparse_cca" else made})

    call(**needed)
    wrong = []
    for option, parameter in inspect.signature(record).parameters.items():
        values = COUNT_OF_TOTAL if record is spcacore.Total else BAD.get(option, [])
        for value in values if option not in ARRAYS else []:
            if value is None and parameter.default is None:
                continue
            words = rf"\b({option}|{CALLED.get(option, option)}|{record.__name__})\b"
            try:
                call(**{**needed, option: value})
            except (TypeError, ValueError) as error:
                if not re.search(words, str(error)):
                    wrong.append(f"{option}={value!r} says {error}")
            except Exception as error:
                wrong.append(f"{option}={value!r} raises {error!r}")
            else:
                wrong.append(f"{option}={value!r} is accepted")
    assert not wrong, "\n".join(wrong)
    with pytest.raises(TypeError, match="nonsense"):
        record(**needed, nonsense=1)


NO_ITERATION = {  # where 0 asks for the start as it is, or the values on its support
    "dspca", "gpower", "l1_rotation", "orthomax", "pmd", "scotlass", "select_n_components", "select_sparsity",
    "sparse_pca", "sparsity_path", "tpower", "varimax",
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_iteration_at_least_is_made(name):
    call = getattr(spcacore, name)
    arguments, options = BASE[name]
    given = inspect.signature(call).bind(*arguments, **options).arguments
    if "max_iter" in inspect.signature(call).parameters and name not in NO_ITERATION:
        assert refused(call, given, "max_iter", 0) is None


OF_RESULTS = [
    ("sparse_pca", "extend", "more", (X0,), [*POSITIVE, P + 1, 10**30]),
    ("sparse_pca", "extend", "cardinality", (X0, 1), [*without(POSITIVE, None), P + 1, [], [K] * 3]),
    ("sparse_pca", "extend", "callback", (X0, 1), CALLBACK),
    ("soppca", "extend", "more", (X0,), [*POSITIVE, P + 1, 10**30]),
    ("soppca", "extend", "cardinality", (X0, 1), [*without(POSITIVE, None), P + 1, [], [K] * 3]),
    ("soppca", "extend", "callback", (X0, 1), CALLBACK),
    ("soppca", "posterior_covariance", "component", (), [*WHOLE, R]),
    ("ppca", "sample", "n_samples", (), POSITIVE),
    ("ppca", "sample", "rng", (3,), without(RNG, None)),
    ("greedy", "at", "k", (), [*POSITIVE, K + 1]),
]


@pytest.mark.parametrize(("function", "method", "option", "arguments", "values"), OF_RESULTS)
def test_bad_values_of_methods(function, method, option, arguments, values):
    call = getattr(found(function), method)
    given = inspect.signature(call).bind_partial(*arguments).arguments
    wrong = {repr(v): c for v in values if (c := refused(call, given, option, v)) is not None}
    assert not wrong
