"""The words of the page that `defaults.py` writes."""

PAGE = """# Defaults on real data

{short}

Sets come from scikit-learn, those that come with the package, leukemias and embryos, and where classes are
needed four from other packages; of each at most {rows} rows and the {variables} variables of largest
variance.

## How many nonzeros

`select_sparsity` chooses on one half of the rows, for {components} components. In brackets is what the
components predict of the other half: the share of the squares of its entries, in percent, each predicted from
the others of its row. Default: "one_se".

{sparsities}

## How many components

The same for `select_n_components`. Default: "one_se".

{numbers}

`cross_validated_eigenvalues` of kind "normal", for ordinary components, by the level of its tests (default:
.05):

{eigenvalues}

## Components in turn

`sparse_pca`, two components of as many variables as the square root of p: what they predict of the other
half, as above. Default: "tpower", projection deflation, and no refinement.

{in_turn}

## One component

`sparse_pca`, one component of as many variables as the square root of p: its variance in percent of the
optimum, which `branch_and_bound` proves, or of the best that is known. Defaults: "tpower" from starts of its
choice; of `greedy` the strategy "auto".

{singles}

`pmd` and `scotlass` with values as they are, and l1 norms of at most {bounds}: x'Ax in percent of the best
from any variable.

{bounded}

`least_squares_component`: what it explains, in percent of the best strategy. Default: "auto".

{squares}

## The bandwidth of a kernel

Percent of rows that five neighbors among four kernel scores classify correctly, by multiples of the median
distance, which is the default of `kernel_pca`.

{bandwidths}

## The bound of sparse K-means

Adjusted Rand index with the known classes, and the number of variables with a weight: at the bound of the
largest gap, at the smallest bound within one standard error of it, and with all variables.

{clusters}

The objective of `sparse_kmeans` by the number of starts, `n_init`, in percent of the best. Default: 20.

{restarts}

## The bound of sparse hierarchical clustering

The same of trees by average linkage of `sparse_dissimilarity`, at the bounds that its gap chooses.

{trees}

## Shrinkage of discriminants

Percent of rows that `sparse_lda` classifies wrongly, with ten variables in each direction. Default: "auto".

{shrinkages}

The first value of `sparse_lda`, a ratio as `sparse_eigen` seeks it, by its strategy, in percent of the best.
Default: "auto".

{ratios}

## Which variables are stable

For each half of the rows, the variables that `stability` calls stable, of two components of a fifth of
the variables. The cells have their number, how far the two halves agree (variables of both over
variables of either), and in brackets what loadings of these variables alone predict of the other half,
as above. Default: the threshold that lets one false variable be expected.

{stabilities}

## Elastic nets

`spca`, two components of a tenth of the variables: what they predict of the other half, in percent, as above.
Defaults: with a cardinality an infinite ridge, and `refine=True`.

{nets}

## Rotated components

`sca`: the same. Defaults: "varimax", "soft", and the bound `sqrt(p r)`. The last columns have multiples of
this bound.

{rotations}

`sma`:

{middles}

## Components with a prior

`soppca` and `oppca`, with the default prior: the same by deflation (default: "orthogonal"), and with
twice the default number of nonzeros, which is the square root of p.

{priors}

{whole_priors}

## Pairs of canonical variables

`sparse_cca` between every other variable and the rest: the correlation of the first pair in the other half.
Defaults: "pmd", nonzeros or a bound by the square root of the number of variables, and no ridge. No figure
where a variable of one half is constant.

{pairs}

`sparse_cca_permutation` chooses between five pairs of bounds, a fifth to all of the square root of the
number of variables. The correlation in the other half by default, as chosen (in brackets which), and at each.

{permuted_pairs}

## Starts of generalized power

`gpower` with penalties of {penalties} of the largest norm: its objective, computed anew, in percent of the
best that is reached from any column.

{powers}

## Divisor and tolerance of a probabilistic model

`ppca`: the log-density of the other half, for each entry, by the divisor of the covariance; and the root
mean squared error of a tenth of the entries, which were hidden, relative to the error of the mean, by the
tolerance of EM. Defaults: `ddof=1` and `tol=1e-9`.

{models}

{origin}
"""

SHORT = """## Summary

* No default loses to another value on most of the sets, so that none was changed.
* How sparse, and how many components: the rows held out are mostly predicted best with many variables and
  components. "best" follows them to the end of its grid. "one_se" predicts at most 2.5 points less than
  "best", often with half of its variables, and up to 25 more where few rows mislead (components of wine and
  diabetes).
* No multiple of the median distance is a better bandwidth beyond chance: four times it classifies better on
  six of ten sets, by .6 to 4 points, and worse on three, where the standard error of an accuracy is about 3
  points. A quarter is worse on nine.
* `sparse_pca`: "tpower" and `greedy` reach the optimum on all sets; forward strategies and thresholding miss
  it by up to 20 %. The deflation hardly matters to what is predicted, but on linnerud. Refining predicts more
  on two sets and less on one. Twice as many nonzeros predict more on eight: the default is for loadings that
  can be read.
* `pmd` and `scotlass` reach the best from any variable in all of forty cases, other starts miss it by up to
  13 %. The strategies "auto" of `least_squares_component` and of ratios are the best on all sets.
* A level of .05 for eigenvalues predicts as much as .01 on nine sets and more on one; .2 predicts more on one
  and less on two.
* K-means with the bound of the largest gap finds classes as well as with all variables, or better, on six of
  ten sets, and up to .09 worse on the others. Twenty starts reach the best of a hundred on nine; one start
  ends up to 13 % lower.
* Trees: squared differences find classes better than absolute ones on six of ten sets, at the bound of the
  largest gap. The bound has no default: where classes differ in many variables (digits, faces), a tree of
  all variables is better.
* Shrinkage "auto" has the least error, or equals it, on five of ten sets; .5 has less on five and more on
  three, by at most 4 points.
* `spca`: the infinite ridge predicts as much as a small one on seven of ten sets, more on one and less on
  two; refining predicts more on nine.
* `sca`: no other rotation or threshold predicts more on most sets. Half of the bound predicts less on all,
  1.5 times more on five, with loadings that are less sparse. The same holds of `sma`.
* `soppca` and `oppca`: the deflation hardly matters to what is predicted, but on linnerud, where
  "constrained" is worse. Twice as many nonzeros predict more on eight of ten sets.
* `sparse_cca`: no ridge is as good as one. "generalized", which a `cardinality` asks for, is at least as
  good as "pmd" on seven of eight sets. The bounds that permutations choose are mostly the smallest, with a
  correlation at least as large as by default on six of eight.
* `gpower`: the default starts reach the best of all columns in all of thirty cases, other starts miss it in
  up to three.
* The threshold of `stability` bounds how many false variables are expected. It is not made to predict: a
  lower one keeps more variables and predicts more on seven of ten sets. Where nearly all variables are
  chosen (iris, linnerud), or only few rows have a word (help topics), no variable is stable by that bound.
* `ppca`: the divisor n - 1 predicts better on nine of ten sets. Ending EM early fills hidden entries better
  on seven of ten, mostly by less than 1 %, but by 13 % on word counts, where the largest likelihood fits
  noise."""
