"""The calls on the pages for users of other programs give what those programs gave."""

import doctest
from pathlib import Path

import numpy as np
import pytest
from oracles import covariance, difference, reference

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"


@pytest.fixture(scope="module")
def page():
    """The names that the pages define, with the data that the other programs had as their X."""
    text = "".join(
        (GUIDE / name).read_text(encoding="utf-8") for name in ("coming_from_r.md", "coming_from.md")
    )
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    found = {"X": reference("small40x12_X")}
    for block in blocks:
        if "sklearn" not in block:  # these say themselves whether they agree
            for example in doctest.DocTestParser().get_examples(block):
                if not example.source.startswith("X, _ ="):
                    exec(compile(example.source, "coming_from", "exec"), found)
    return found


pytestmark = pytest.mark.filterwarnings("ignore:X is symmetric")  # as the page says


@pytest.mark.parametrize(
    ("name", "file", "atol", "columns"),
    [
        ("penalized", "pitprops_elasticnet_spca_penalty_tight1e-10_loadings", 1e-3, 6),
        ("counted", "pitprops_elasticnet_spca_varnum_7_4_4_1_1_1_loadings", 1e-12, 6),
        ("predictor", "small_elasticnet_spca_penalty20_lambda1_loadings", 1e-3, 3),
        ("array", "small_elasticnet_arrayspc_para20_loadings", 1e-4, 3),
        ("spc", "pitprops_root_PMA_SPC_sumabsv2.4_K6_niter200_v", 1e-4, 6),
        ("spc_orth", "pitprops_root_PMA_SPC_orth_sumabsv2.4_v", 1e-4, 6),
        ("grand_mean", "small_PMA_SPC_center_grandmean_sumabsv2_v", 1e-5, 3),
        ("plain", "small_nsprcomp_k4_rotation", 1e-6, 2),
        ("nonnegative", "small_nsprcomp_k4_nneg_rotation", 1e-6, 3),
        ("rotated", "pitprops_root_epca_sca_k6_gamma9_loadings", 1e-3, 6),
        ("small", "small_epca_sca_k3_soft_gamma5_loadings", 1e-3, 3),
        ("power", "small_TPower_card4_4_4_V", 1e-6, 2),
        ("generalized_power", "pitprops_GPower_l0_rho0.1_V", 1e-3, 1),
        ("factominer", "small_FactoMineR_PCA_ncp3_coord", 1e-12, 3),
        ("psych", "small_psych_principal_3_varimax", 2e-3, 3),  # whose varimax ends early
        ("oblique", "small_psych_principal_3_oblimin", 1e-4, 3),
    ],
)
def test_loadings_are_those_of_the_other_program(page, name, file, atol, columns):
    ours, theirs = page[name], reference(file)[:, :columns]
    ours = getattr(ours, "loadings", getattr(ours, "loading", ours)).reshape(len(theirs), -1)
    assert (difference(ours[:, :columns], theirs) < atol).all()


@pytest.mark.parametrize(
    ("name", "file"), [("plain", "small_nsprcomp_k4_rotation"), ("power", "small_TPower_card4_4_4_V")]
)
def test_where_the_third_component_differs_it_has_more_variance(page, name, file):
    theirs, A = reference(file), covariance(page["X"])
    Q = np.linalg.qr(theirs[:, :2])[0]
    P = np.eye(12) - Q @ Q.T
    ours = page[name].loadings[:, 2]
    assert ours @ P @ A @ P @ ours > theirs[:, 2] @ P @ A @ P @ theirs[:, 2]


def test_penalties_of_sparsepca_are_relative_and_its_columns_have_other_lengths(page):
    theirs = reference("small_sparsepca_spca_alpha0.01_beta1e-4_loadings")
    assert (difference(page["relative"].loadings, theirs / np.linalg.norm(theirs, axis=0)) < 1e-3).all()
    assert ((page["relative"].loadings != 0) == (theirs != 0)).all()
