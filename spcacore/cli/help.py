"""What `spcacore --help` says: a row for each option, and the pages of the commands."""

from __future__ import annotations

import re

OPTIONS = """\
[components]
n_components -n --components N
  how many
n_components.stability -n --components N
  how many (default: 2)
n_components.path -n --components N
  how many (default: 1)
n_components.fit -n --components N
  how many (default: 5), or the share of the variance that they explain together: -n 0.8
cardinality -k K
  how many variables each component has, one number or several: -k 10, -k 7,4,4 (default: the square
  root of the number of variables, rounded up)
cardinality.certify -k GRID
  variables: -k 10, -k 5,10, -k 1:9
cardinality.path -k GRID
  variables in every component: -k 1:50, -k 1,2,5,10 (default: up to 15 values)
explained S
  instead of -k: as few variables as explain this share (0 to 1) of what ordinary components explain
explained_of NAME
  requires --explained; what its share refers to: the variance, or the score (R^2) (default: variance)
total K
  instead of -k: nonzeros of all components together, divided so that they explain the most
method NAME
  what is fitted (default: tpower)
l1_bound C
  instead of -k: bounds the sum of magnitudes
l1_bound.path GRID
  instead of -k: the values to try, as 1:5:0.5
penalty P
  instead of -k: what a variable must add at least
penalty.path GRID
  instead of -k: the values to try
sample_l1_bound C
  bounds the sum of magnitudes of the scores, too
deflation NAME
  how a component is removed; orthogonal and uncorrelated keep components so (default: projection; for
  least_squares: schur)
refine
  improve the components jointly
support NAME
  common: the same -k variables in all components; disjoint: no variable in two (default: free)
ridge R
  the weight of squared loadings
certify
  bound what any other components can explain
loadings FILE
  loadings as written by fit -o (.csv or .npz); for compare, one file after another
reference I
  number of the file that the others are matched with (default: 1, the first)
relaxation
  also bound by the semidefinite relaxation (default: up to 100 variables)
[matrix]
covariance
  FILE is a covariance or correlation matrix
scale
  divide variables by their standard deviations (default: no)
center
  subtract the means (default: yes; for sma: no)
float32
  compute in single precision
[choosing]
criterion --select NAME
  choose by cross-validation, by permutation of the data, by the correlation of scores with scores of
  left-out rows, by the index of sparseness, by the likelihood of a normal model (BIC), or by the agreement
  of half-samples
rule NAME
  requires --criterion; take the sparsest within one standard error of the best, or the best (default: one_se)
n_folds --folds N
  requires --criterion cv or correlation; folds of cross-validation (default: 5)
n_repeats --repeats N
  requires --criterion cv or correlation; how often folds are drawn anew (default: 1)
n_permutations --permutations N
  requires --criterion permutation; how many (default: 20)
resampling NAME
  complementary halves of the samples, single halves, or as many samples drawn with replacement (default:
  complementary)
n_resamples --resamples N
  how many resamples
n_resamples.path --resamples N
  requires --criterion stability; how many resamples
threshold.stability S
  a variable is stable if this share of the resamples chooses it
max_false V
  or: choose that share so that at most V false variables are expected in a component (default: 1)
assumption NAME
  what the bound on false variables assumes of pairs of halves (default: unimodal)
level S
  level of the intervals (default: 0.95)
alignment NAME
  procrustes: intervals of loadings rotated to the loadings of all the data (default: assignment)
warm_start
  search resamples from the components of all the data, and quickly (default: for a bootstrap)
n_jobs --jobs N
  run this many folds, permutations or resamples at a time (default: 1)
n_jobs.path --jobs N
  requires --criterion; run this many folds, permutations or resamples at a time (default: 1)
[search]
max_iter N
  most iterations (default: 1000)
tol TOL
  stop at this relative change, or for branch_and_bound at this gap (tpower: 1e-8)
rng --seed N
  seed of random choices (default: fixed)
n_starts N
swaps
renormalize
screening NAME
  how to avoid reading all of the data for every product (default: auto)
strategy NAME
  how variables are added or removed (default: auto)
norm NAME
relative
block
node_limit N
n_samples N
  the number of samples that a covariance comes from
ddof N
  sums of squares are divided by the number of samples minus this (default: 1)
rotation NAME
  how the basis is rotated (default: varimax)
threshold NAME
  how small loadings become zero (default: soft)
time_limit S
  seconds for each component, after which an exact search ends, or the search of --certify
[what you know about the variables]
include NAMES
exclude NAMES
groups FILE
  the group of each variable, one per line, or lines of name,group: a group is in or out as a whole, and -k
  counts groups
count NAME
  requires --groups; what -k counts (default: groups); variables: whole groups, with at most that many
  variables together
signs S
  1: no negative loadings; -1: no positive ones; or 1, -1 or 0 (either) for each variable: --signs 1,0,-1
[reading FILE]
orientation {rows|columns}
  which are the samples (default: rows)
format {csv|tsv|npy|npz|mtx|parquet|h5ad}
  what FILE holds (default: by its extension; for -: csv)
names FILE
  names of the variables, one per line
array NAME
  the array of an .npz, or the layer of an .h5ad
drop NAMES
  leave out these columns, by name or number
index_column NAMES
  .csv, .tsv, .parquet: the columns, by name or number, that name the rows
row_names
  .csv, .tsv, .parquet: the first column has names, or has none
header
  .csv, .tsv: the first line has names, or has none
delimiter MARK
  .csv, .tsv: what separates cells: one character, or tab (default: comma, semicolon or tab, as found)
decimal {.|,}
  .csv, .tsv: the decimal mark (default: .)
thousands MARK
  .csv, .tsv: what separates thousands, as , in 10,500 (default: nothing does)
comment MARK
  .csv, .tsv: what begins a comment, as #
[writing]
json
  print the result as JSON instead of text
output -o FILE
  write the file
output.compare -o FILE
  write the comparison (.csv or .html)
output.transform -o FILE
  write the scores (.csv or .npz) instead of printing them
output.stability -o FILE
  write what was found for each variable (.csv), or everything (.npz)
output.path -o FILE
  write the curve (.csv, or .npz with what was chosen)
output.fit -o FILE
  write the loadings (.csv) or all results (.npz)
scores FILE
  write the scores of the samples (.csv or .npz)
plot FILE
  draw the result (.png, .pdf or .svg)
plot.compare FILE
  draw the variances (.png, .pdf or .svg)
plot.stability FILE
  draw the frequencies (.png, .pdf or .svg)
plot.path FILE
  draw the curve (.png, .pdf or .svg)
plot.fit FILE
  draw loadings and variances (.png, .pdf or .svg)
quiet -q
  print errors and warnings only, and what --json asks for
"""
_TEXT = """\
@description
Sparse principal component analysis: components that explain much variance and use few variables each,
so that they can be read. Ordinary principal components mix all variables.

Without a command: an example, the pit props, 13 measurements of 180 mine timbers. Each command explains its
options and the files it reads with --help.
@fit.description
Find sparse principal components of the matrix in FILE. Its rows are samples, and its columns are
variables. For each component, print the variables that it selects, their loadings, and the share of the
variance that it explains.
@fit.examples
examples:
  spcacore fit data.csv                          5 components, each of the default number of variables
  spcacore fit data.csv -n 3 -k 7,4,4 --scale    3 components of 7, 4 and 4 standardized variables
  spcacore fit correlations.csv --covariance     from a covariance or correlation matrix
  spcacore fit data.csv -n 0.8 --explained 0.95 --method least_squares
                                                 as many components as explain 80 % of all variables,
                                                 each of as few variables as explain 95 % of what an
                                                 ordinary one does
  spcacore fit matrix.mtx.gz --orientation columns --names genes.txt -o loadings.csv
                                                 counts whose columns are samples, as from 10x Genomics
  spcacore fit cells.h5ad --array counts --plot loadings.pdf
  spcacore fit data.csv --method pmd --l1-bound 2.5 --refine --json > result.json
@fit.json
@path.description
Show how many variables to take, and what they explain. Find components for each of several numbers of
variables, or of several bounds, and print how much variance they explain. Also print the index of
sparseness, which is large if few variables explain much. --select chooses one of the values, and prints its
components.
@path.examples
examples:
  spcacore path data.csv                             15 numbers of variables, up to all
  spcacore path data.csv -n 3 -k 1:20 --plot path.png
  spcacore path data.csv -k 5,10,20:100:20 --select cv --folds 10 --jobs 4
  spcacore path data.csv --method pmd --l1-bound 1:5:0.5 -o curve.csv

A:B is all whole numbers from A to B, A:B:S goes in steps of S; several may be joined by commas.
@path.json
  result       an object with
  parameter, values, method, deflation, kind         m values, the sparsest first, of r components
  explained_variance_ratio, cardinality              m lists of r numbers
  index_of_sparseness, dense_ratio                   m numbers; r of ordinary principal components
  n_samples
or, with --select, with
  criterion, rule, score, standard_error, scores     m numbers; scores of each fold or permutation
  values, best, one_se, chosen, chosen_index         values, and the index of the one chosen
and then also
  path, chosen                                       an object with the fields above; the components chosen
@stability.description
Tell which variables other samples would choose again. Find sparse principal components of many random
subsets of the samples. Print how often each variable is chosen, with quantiles of its loading, and star the
stable ones. With halves of the samples, there is a bound on how many stable variables are false.
@stability.examples
examples:
  spcacore stability data.csv                         2 components, 50 pairs of halves
  spcacore stability data.csv -n 1 -k 20 --max-false 0.1 --plot stable.png
  spcacore stability data.csv -k 7,4 --resampling bootstrap --resamples 200 --jobs 4 -o frequencies.csv
@stability.json
  frequencies  for each that is ever chosen: variable, component (from 1), loading, frequency, low and high
               of its interval, and stable
@certify.description
Bound how much more variance components could explain. Compute an upper bound on the variance of any
component of K variables, whatever the method, and compare it with the best component found. What you know
of the variables restricts the components that are compared. `spcacore fit -n 1 --method branch_and_bound
--certify` finds the best one, and proves it.
@certify.examples
examples:
  spcacore certify data.csv -k 10
  spcacore certify data.csv -k 5:9
  spcacore certify data.csv -k 10 --exclude a,b --signs 1     components without a, b and minus signs
@certify.json
  components   for each cardinality: cardinality, the bounds by name, upper_bound, value, gap, and
               loadings: index, variable and loading of each that is not zero
@transform.description
Print scores of samples by components that were saved. Multiply the samples in FILE by loadings that
`spcacore fit -o` has saved (for ppca, oppca and soppca by the weights beside them), and print the scores
as CSV.
Variables are matched by name, in any order; FILE may have more of them. Loadings that fit has written bring
the means and standard deviations of the data they were fitted to. Others use the means of FILE, and with
--scale its standard deviations.
@transform.examples
examples:
  spcacore fit train.csv --scale -o fitted.npz
  spcacore transform new.csv --loadings fitted.npz -o scores.csv
  zcat new.csv.gz | spcacore transform - --loadings fitted.npz > scores.csv
@transform.json
  loadings, sample_names, scores                     scores: a list of numbers for each sample
@compare.description
Put several files of loadings side by side. They may be of several methods, or of other programs. Print what
they explain of the matrix in FILE by each definition, how many variables they use and share, and the angles
between them.
@compare.examples
examples:
  spcacore fit data.csv -n 3 -o a.csv
  spcacore fit data.csv -n 3 --method pmd --l1-bound 2.5 -o b.csv
  spcacore compare data.csv --loadings a.csv b.csv -o comparison.html
@compare.json
  reference, total_variance
  components   for each: result, and the columns of spcacore.Comparison.to_frame
@info.description
Look at FILE before you compute anything. Print sizes, names, missing entries, variables that do not vary,
and how different the variances are.
@info.json
  samples, variables, names, sample_names, dtype, sparse, missing, infinite, constant_variables (empty ones,
  too), smallest_variance, median_variance, largest_variance (without constant variables), symmetric, notes

@formats
file formats:
  .csv, .tsv       Text (needs pandas), also compressed (.gz, .bz2, .xz). The first line is a header if none
                   of its cells but the first is a number. The first column names the rows if none of its
                   cells is a number, or if it has no title. Semicolons and tabs are recognized; --decimal ,
                   reads 1,5 and --thousands , 10,500. Columns of words are left out, as are the columns of
                   --drop; true is 1 and false 0. Missing entries are left out by methods that can, and named
                   in a note.
  .npy             A NumPy array, 2-D. It is read from disk as needed.
  .npz             Several NumPy arrays: the only 2-D one, the one called X, or the one that --array names.
                   An array of words of the right length gives the names. Or a matrix of
                   scipy.sparse.save_npz.
  .mtx             A Matrix Market file, sparse or dense, also compressed (.mtx.gz).
  .parquet         Columns of numbers (needs pandas and pyarrow), otherwise as .csv.
  .h5ad            Annotated data (needs anndata): X, or the layer of --array; "raw" is the raw X.
  -                The standard input, as .csv. Pipes are read once, whole.
Other names need --format.
@counting
The variance of a component is what it adds to the earlier ones. Variables and components are counted from
1, and a variable without a name is called x1, x2, ...
@json
--json prints one object. Numbers read back exactly, what is unknown is null, and indices count from 0. Fields
may be added. "schema", now 5, grows when a field changes its meaning or goes away.
@status
exit status: 0 success, 2 wrong usage or input, 130 interrupted.
@json.matrix
  spcacore, schema, command, file                    the version, the command and its file
  samples, variables, kind, center, scale, names     the matrix
  warnings, notes                                    what stderr says
@json.result
  result       the attributes of the result in Python, as method, explained_variance and upper_bound; but
               loadings: for each component index, variable and loading of each that is not zero
"""
_PARTS = re.split(r"(?m)^@([\w.]+)\n", _TEXT.replace("\n\n", "\n\n\b\n"))[1:]
PAGES = {name: f"\b\n{text}" for name, text in zip(_PARTS[::2], _PARTS[1::2], strict=True)}


def epilog(command: str) -> str:
    """Return what follows the options in the help of a command."""
    whole = (
        ["formats", "json", "info.json"]
        if command == "info"
        else [
            f"{command}.examples",
            "formats",
            "counting",
            "json",
            "json.matrix",
            f"{command}.json",
            *["json.result"] * (command in ("fit", "stability")),
        ]
    )
    return "\n".join(PAGES[name] for name in [*whole, "status"] if PAGES[name].strip("\b\n"))
