"""What `spcacore --help` says."""

__all__ = [
    "CERTIFY_DESCRIPTION", "CERTIFY_EPILOG", "CERTIFY_EXAMPLES", "COMPARE_DESCRIPTION", "COMPARE_EPILOG",
    "COMPARE_EXAMPLES", "COUNTING", "DESCRIPTION", "FIT_DESCRIPTION", "FIT_EPILOG", "FIT_EXAMPLES", "FORMATS",
    "INFO_DESCRIPTION", "INFO_EPILOG", "JSON", "JSON_CERTIFY", "JSON_COMPARE", "JSON_FIT", "JSON_INFO",
    "JSON_MATRIX", "JSON_PATH", "JSON_RESULT", "JSON_STABILITY", "JSON_TRANSFORM", "OPTIONS",
    "PATH_DESCRIPTION", "PATH_EPILOG", "PATH_EXAMPLES", "STABILITY_DESCRIPTION", "STABILITY_EPILOG",
    "STABILITY_EXAMPLES",
    "STATUS", "TRANSFORM_DESCRIPTION", "TRANSFORM_EPILOG", "TRANSFORM_EXAMPLES",
]  # fmt: skip
__dir__ = __all__.copy

OPTIONS = """\
[components]
n_components -n --n-components --components N
  how many {n_components}
cardinality -k --cardinality K
  {cardinality}
explained --explained S
  instead of -k: as few variables as explain this share (0 to 1) of what ordinary components explain
explained_of --explained-of NAME
  what the share of --explained refers to: the variance, or the score (R^2) (default: variance)
objective --objective NAME
  what is maximized: the variance of the scores, or what the scores explain of all variables (default:
  variance)
method --method NAME
  {method} (default: tpower, or the one for --objective)
l1_bound --l1-bound C
  instead of -k for {l1_bound}: {values}
penalty --penalty P
  instead of -k for {penalty}: {values}
deflation --deflation NAME
  how a component is removed: {deflation} (default: projection; of least_squares: schur)
constraint --constraint NAME
  keep components orthogonal to earlier ones, or uncorrelated with them, instead of a deflation
refine --refine
  improve the components jointly
support --support NAME
  common: the same -k variables in all components; disjoint: no variable in two (default: free)
total_cardinality --total-cardinality K
  instead of -k: nonzeros of all components together, divided so that they explain the most
sample_l1_bound --sample-l1-bound C
  sma: bounds the scores (default: sqrt(n r))
ridge --ridge R
  spca: the weight of squared loadings; sparse_cca: this share of the mean variance is added to all, one
  for both
  sides or two
shrinkage --shrinkage A
  sparse_lda: from 0 to 1, towards uncorrelated variables within classes (default: auto)
other --other FILE
  sparse_cca: the other side, of the same samples, read as FILE is
labels --labels FILE
  sparse_lda: the class of each sample, one per line
certify --certify
  bound what any other components can explain
loadings --loadings FILE
  loadings as written by fit -o (.csv or .npz); of compare, one file after another
reference --reference N
  number of the file that the others are matched with (default: 1, the first)
exact --exact
  find and prove the best, by branch and bound
relaxation --relaxation/--no-relaxation
  also bound by the semidefinite relaxation (default: up to 100 variables)
[matrix]
covariance --covariance
  FILE is a covariance or correlation matrix
scale --scale/--no-scale
  divide variables by their standard deviations (default: no)
center --center/--no-center
  subtract the means (default: yes)
float32 --float32
  compute in single precision
[choosing]
criterion --criterion --select NAME
  choose by cross-validation, by permutation of the data, by the index of sparseness, by the likelihood
  of a normal
  model (BIC), or by the agreement of half-samples
n_folds --n-folds --folds N
  folds of cross-validation (default: 5)
n_permutations --n-permutations --permutations N
  how many permutations (default: 20)
rule --rule NAME
  take the sparsest within one standard error of the best, or the best (default: one_se)
resampling --resampling NAME
  complementary halves of the samples, single halves, or as many samples drawn with replacement (default:
  complementary)
n_resamples --n-resamples --resamples N
  how many resamples (default: 100)
threshold --threshold S
  a variable is stable if this share of the resamples chooses it
max_false --max-false V
  or: choose that share so that at most V false variables are expected in a component (default: 1)
assumption --assumption NAME
  what the bound on false variables assumes of pairs of halves (default: unimodal)
level --level S
  level of the intervals (default: 0.95)
n_jobs --n-jobs --jobs N
  run this many folds, permutations or resamples at a time
[search]
max_iter --max-iter N
  most iterations (default: 1000)
tol --tol TOL
  stop at this relative change, or for branch_and_bound at this gap (tpower: 1e-8; --float32: 1e-5)
rng --rng --seed N
  seed of random choices (default: fixed)
strategy --strategy NAME
  greedy, least_squares: how variables are added or removed (default: auto)
norm --norm NAME
  gpower: what is penalized (default: l1)
relative --relative
  gpower: penalties from 0 to 1
block --block
  gpower: all components at once
time_limit --time-limit S
  branch_and_bound, and exact searches: seconds for each component
[what is known of the variables]
include --include NAMES
  variables that every component has: --include a,b
exclude --exclude NAMES
  variables that no component has
groups --groups FILE
  the group of each variable, one per line: a group is in or out as a whole, and -k counts groups
count --count NAME
  what -k counts where there are groups (default: groups); variables: whole groups, of at most so many
  variables
  together
nonnegative --nonnegative
  no negative loadings: {nonnegative}
[reading FILE]
build --build
  instead of FILE: versions, BLAS, threads, and the processor that the kernels are compiled for
orientation --orientation NAME
  whether rows or columns are samples (default: rows)
format --format NAME
  what FILE holds, whatever its name (default: by its extension; for -: csv)
names --names FILE
  names of the variables, one per line
array --array NAME
  the array of an .npz, or the layer of an .h5ad
drop --drop NAMES
  leave out these columns, by name or number
index_column --index-column NAMES
  .csv, .tsv, .parquet: the columns, by name or number, that name the rows
row_names --row-names/--no-row-names
  .csv, .tsv, .parquet: the first column has names, or has none
header --header/--no-header
  .csv, .tsv: the first line has names, or has none
delimiter --delimiter MARK
  .csv, .tsv: what separates cells: one character, or tab (default: comma, semicolon or tab, as found)
decimal --decimal MARK
  .csv, .tsv: the decimal mark (default: .)
thousands --thousands MARK
  .csv, .tsv: what separates thousands, as , in 10,500 (default: nothing does)
comment --comment MARK
  .csv, .tsv: what begins a comment, as #
impute --impute NAME
  missing entries: take the mean of the variable, or drop samples or variables that have any
[writing]
json --json
  print the result as JSON instead of text
output -o --output FILE
  write {output}
scores --scores FILE
  write the scores of the samples (.csv or .npz)
plot --plot FILE
  draw {plot} (.png, .pdf or .svg)
raw_names --raw-names
  in .csv, put no apostrophe before names that a spreadsheet takes for formulas (=, +, - or @ first)
quiet -q --quiet
  print errors and warnings only, and what --json asks for
"""
DESCRIPTION = """\
Sparse principal component analysis: components that explain much variance and use few variables each,
so that they can be read. Ordinary principal components mix all variables.

  spcacore                  an example: the pit props, 13 measurements of 180 mine timbers
  spcacore info FILE        what is in the file, and what to look out for; --build: of the package
  spcacore fit FILE         the components of the matrix in FILE
  spcacore path FILE        how many variables to take, and what each number explains
  spcacore stability FILE   which variables other samples would choose again
  spcacore certify FILE     how much more variance other components could explain
  spcacore transform FILE   scores of the samples in FILE, by components that were saved
  spcacore compare FILE     several files of loadings side by side, on the matrix in FILE

Each command explains its options and the files it reads with --help.
"""
FIT_DESCRIPTION = """\
Find sparse principal components of the matrix in FILE, whose rows are samples and whose columns are
variables. For each component, print the variables that it selects, their loadings, and the share of the
variance that it explains.
"""
FIT_EXAMPLES = """\
examples:
  spcacore fit data.csv                          5 components of 10 variables each
  spcacore fit data.csv -n 3 -k 7,4,4 --scale    3 components of 7, 4 and 4 standardized variables
  spcacore fit correlations.csv --covariance     from a covariance or correlation matrix
  spcacore fit data.csv -n 0.8 --explained 0.95 --objective least_squares
                                                 as many components as explain 80 % of all variables,
  each of
                                                 as few variables as explain 95 % of what an ordinary one
  does
  spcacore fit matrix.mtx.gz --orientation columns --names genes.txt -o loadings.csv
                                                 counts whose columns are samples, as from 10x Genomics
  spcacore fit cells.h5ad --array counts --plot loadings.pdf
  spcacore fit data.csv --method pmd --l1-bound 2.5 --refine --json > result.json
"""
PATH_DESCRIPTION = """\
Find components for each of several numbers of variables, or of several bounds, and print how much variance
they explain. Also print the index of sparseness, which is large if few variables explain much. --select
chooses one of the values, and prints its components.
"""
PATH_EXAMPLES = """\
examples:
  spcacore path data.csv                             1, 2, 3, 4, 5, 7, 10, ... variables
  spcacore path data.csv -n 3 -k 1:20 --plot path.png
  spcacore path data.csv -k 5,10,20:100:20 --select cv --folds 10 --jobs 4
  spcacore path data.csv -k 5:50:5/2,4,8 --select cv     other values for the second component
  spcacore path data.csv --method pmd --l1-bound 1:5:0.5 -o curve.csv

A:B is all whole numbers from A to B, A:B:S goes in steps of S; several may be joined by commas.
With --select a stroke divides the values of one component from those of the next.
"""
STABILITY_DESCRIPTION = """\
Would other samples choose the same variables? Find sparse principal components of many random subsets of the
samples. Print how often each variable is chosen, with quantiles of its loading, and star the stable ones.
With halves of the samples, there is a bound on how many stable variables are false. Methods sparse_cca and
sparse_lda do the same for canonical pairs of FILE and --other, by --l1-bound or -k, and for directions that
separate the classes of --labels. One number of sparse_cca is for both sides, and two are for one each. A
variable of --other has "(other)" after its name where FILE has that name too.
"""
STABILITY_EXAMPLES = """\
examples:
  spcacore stability data.csv                         2 components of 10 variables, 50 pairs of halves
  spcacore stability data.csv -n 1 -k 20 --max-false 0.1 --plot stable.png
  spcacore stability data.csv -k 7,4 --resampling bootstrap --resamples 200 --jobs 4 -o frequencies.csv
  spcacore stability genes.csv --method sparse_cca --other proteins.csv --scale --l1-bound 4,2
  spcacore stability genes.csv --method sparse_lda --labels classes.txt -k 20 --shrinkage auto
"""
CERTIFY_DESCRIPTION = """\
Compute an upper bound on the variance that any component of K variables can explain, whatever the method,
and compare it with the best component found. With --loadings, print what given loadings explain, and how far
each may be from the best one of as many variables, once the earlier loadings are removed. What you know of
the variables restricts the components that are compared.
"""
CERTIFY_EXAMPLES = """\
examples:
  spcacore certify data.csv -k 10
  spcacore certify data.csv -k 5:9 --exact --time-limit 60    search all supports, for at most a minute each
  spcacore certify data.csv --loadings loadings.csv           loadings that `spcacore fit data.csv -o` wrote
  spcacore certify data.csv -k 10 --exclude a,b --nonnegative         components without a, b and minus
  signs
"""
TRANSFORM_DESCRIPTION = """\
Multiply the samples in FILE by loadings that `spcacore fit -o` has saved, and print the scores as CSV.
Variables are matched by name, in any order; FILE may have more of them. Loadings that fit
has written bring the means and standard deviations of the data they were fitted to. Others use the means of
FILE, and with --scale its standard deviations.
"""
TRANSFORM_EXAMPLES = """\
examples:
  spcacore fit train.csv --scale -o fitted.npz
  spcacore transform new.csv --loadings fitted.npz -o scores.csv
  zcat new.csv.gz | spcacore transform - --loadings fitted.npz > scores.csv
"""
COMPARE_DESCRIPTION = """\
Put components of several methods, or of other programs, side by side: what they explain of the matrix in
FILE by each definition, how many variables they use and share, and the angles between them.
"""
COMPARE_EXAMPLES = """\
examples:
  spcacore fit data.csv -n 3 -o a.csv
  spcacore fit data.csv -n 3 --method pmd --l1-bound 2.5 -o b.csv
  spcacore compare data.csv --loadings a.csv b.csv -o comparison.html
"""
INFO_DESCRIPTION = """\
Look at FILE before you compute anything: sizes, names, missing entries, variables that do not vary, and how
different the variances are.
"""
FORMATS = """\
file formats:
  .csv, .tsv       Text (needs pandas), also compressed (.gz, .bz2, .xz). A header and row names are
                   recognized: a first line or a first column of words, or of numbers that count or identify
                   the rows. Semicolons are recognized; --decimal , reads 1,5 and --thousands , reads
  10,500.
                   Columns of words are left out, and those of --drop.
  .npy             A NumPy array, 2-D. It is read from disk as needed.
  .npz             Several NumPy arrays: the only 2-D one, the one called X, or that of --array. An array
                   of words of the right length gives the names. Or a matrix of scipy.sparse.save_npz.
  .mtx             A Matrix Market file, sparse or dense, also compressed (.mtx.gz).
  .parquet         Columns of numbers (needs pandas and pyarrow), otherwise as .csv.
  .h5ad            Annotated data (needs h5py): X, or the layer of --array; "raw" is the raw X.
  -                The standard input, which holds what --format says. Pipes are read once, whole.

"""
JSON = """\
--json prints one object. Numbers read back exactly, what is unknown is null, and indices count from 0. Fields
may be added. "schema", now 1, grows when a field changes its meaning or goes away.
"""
JSON_MATRIX = """\
  spcacore, schema, command, file                    the version, the command and its file
  samples, variables, kind, center, scale, names     the matrix
  warnings, notes, seconds                           what stderr says, and the time it took
"""
JSON_RESULT = """\
  result       method, deflation, constraint, total_variance, and for each of components: index,
  cardinality,
               explained_variance, explained_variance_ratio, upper_bound and gap (with --certify), n_iter,
               converged, and loadings: index, variable and loading of each that is not zero
"""
JSON_FIT = """\
  cardinality, explained, l1_bound or penalty        as it was given
"""
JSON_PATH = """\
  parameter, values, method, deflation               m values, the sparsest first, of r components
  explained_variance_ratio, cardinality              m lists of r numbers
  index_of_sparseness, dense_ratio                   m numbers; r of ordinary principal components
or with --select
  criterion, rule, score, standard_error, scores     m numbers; scores of each fold or permutation
  best, one_se, chosen, chosen_index                 values, and the index of the one chosen
  path                                               an object with the fields above
  chosen_by_component, earlier                       of values by component: all choices; such objects
"""
JSON_STABILITY = """\
  cardinality, explained, l1_bound or penalty        as it was given
  model                                              the function of the package that was used
  other, other_variables, other_names                with --other: that file, and what it has
  resampling, resamples, level, max_false            how often, and what was asked for
  assumption                                         what the bounds assume of false variables
  average_any, any_threshold                         for variables in at least one component
  components   for each: index, threshold, expected_false, average_selected, explained_interval (two
  shares),
               cosine (the mean with that of all the samples), and variables: index, variable, frequency,
               loading, interval and stable of each that is ever chosen; those of FILE before those of
  --other
"""
JSON_CERTIFY = """\
  components   for each cardinality: cardinality, bounds by name, upper_bound, value, gap, optimal and nodes
               (with --exact), and loadings: index, variable and loading of each that is not zero
or with --loadings, besides loadings, deflation and total_variance,
  components   for each: index, cardinality, the variances cumulative, adjusted and raw, value (its variance
               once the earlier ones are removed), upper_bound, gap
"""
JSON_TRANSFORM = """\
  loadings, components, sample_names, scores         scores: a list of numbers for each sample
"""
JSON_COMPARE = """\
  reference, total_variance
  results      for each file: label, cardinality, and explained_variance: cumulative, adjusted, raw and
               regression of each component
  matched      for each component: result, component, like (that of the reference), shared, overlap, angle
               in degrees, correlation
"""
JSON_INFO = """\
  format, contents, columns_of_words (left out), bytes_on_disk, bytes_in_memory, dtype,
  sparse (its format, or null), orientation,
  samples, variables, names, sample_names, nonzeros, missing, infinite, first_not_finite (sample and
  variable), constant_variables, empty_variables, smallest_variance, median_variance, largest_variance
  (without constant variables), symmetric, unit_diagonal, seconds_per_product, notes; with --build: python,
  numpy, scipy, blas, threads, clone (of the kernels, which runs), clones (that could run here)

"""
COUNTING = """\
The variance of a component is what it adds to the earlier ones. Variables and components are counted from
1, and a variable without a name is called x1, x2, ...
"""
STATUS = "exit status: 0 success, 2 wrong usage or input, 130 interrupted.\n"
FIT_EPILOG = "\n".join(
    (FIT_EXAMPLES, FORMATS + COUNTING, JSON + JSON_MATRIX + JSON_FIT + JSON_RESULT, STATUS)
)
PATH_EPILOG = "\n".join(
    (PATH_EXAMPLES, FORMATS + COUNTING, JSON + JSON_MATRIX + JSON_PATH + JSON_RESULT, STATUS)
)
STABILITY_EPILOG = "\n".join(
    (STABILITY_EXAMPLES, FORMATS + COUNTING, JSON + JSON_MATRIX + JSON_STABILITY + JSON_RESULT, STATUS)
)
CERTIFY_EPILOG = "\n".join((CERTIFY_EXAMPLES, FORMATS + COUNTING, JSON + JSON_MATRIX + JSON_CERTIFY, STATUS))
TRANSFORM_EPILOG = "\n".join((TRANSFORM_EXAMPLES, FORMATS, JSON + JSON_MATRIX + JSON_TRANSFORM, STATUS))
COMPARE_EPILOG = "\n".join((COMPARE_EXAMPLES, FORMATS + COUNTING, JSON + JSON_MATRIX + JSON_COMPARE, STATUS))
INFO_EPILOG = FORMATS + JSON + JSON_INFO + STATUS
