"""Every limit that is a matter of policy: how much at a time, how large, how long, how precise; and why.

"Work" is a number of multiplications, "order" the number of rows and columns of a square matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


def slices(n: int, width: int, entries: int) -> Iterator[slice]:
    """Divide n lines of this width into slices that have at most so many entries, or one line."""
    step = max(1, entries // max(1, width))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


class Precision(NamedTuple):
    """A tolerance in double and in single precision."""

    double: float
    single: float

    def of(self, dtype: Any) -> float:
        """Return the tolerance for float64 or float32."""
        return self.double if dtype == np.float64 else self.single


# Precision, relative to the largest magnitude where nothing else is said
SYMMETRY = Precision(1e-8, 1e-5)  # difference of a matrix from its transpose, by the order of sums
TIE = Precision(1e-12, 1e-6)  # values this close are equal, and the lower index is preferred
NOISE_LEFT = 1e-12  # share of the variance of a permuted column, below which it is none
VARIANCE_TIE = 1e-6  # a variance this share below the largest promises as much
RISE = 1e-10  # an objective must rise by this share for a swap or another start to count
EIGENVECTOR_TOL = Precision(1e-8, 1e-4)  # for eigenvectors by ARPACK that are only a start, or summed
KERNEL_TOL = Precision(1e-10, 1e-5)  # for the residual of an eigenvector of a kernel matrix
CLUSTERING_TOL = Precision(1e-6, 1e-4)  # clustering ends at this change of the weights, by default
# When values are re-fitted, or loadings refined, a smaller rise of the objective is rounding
REFIT_RISE = Precision(1e-12, 1e-6)
# x'Bx of a unit vector x, where generalized deflation has left rounding
QUOTIENT_NULL = Precision(1e-8, 1e-3)
SOLVER_TOL = 1e-8  # a search for one component ends at this change, by default
EXACT_SLACK = Precision(1e-9, 1e-4)  # for bounds that leave out variables or swaps: far above rounding
CENTERING_LOSS = Precision(1e-6, 1e-3)  # share of a column's norm that may be lost when a mean is removed
BLOCK_NOISE = Precision(1e-12, 1e-5)  # share of the objective of generalized power that is rounding
BLOCK_STILL = 2.0**-28  # the square of a step that is none there, beside that of the loadings
SHARE_ROUNDING = Precision(1e-10, 1e-5)  # rounding of a share of the variance that is to be reached
ROUNDING_LEFT = Precision(2e-13, 4e-6)  # share of the total variance that may be the rounding of sums
VARIANCE_LEFT = Precision(1e-14, 1e-6)  # share of a variance, given earlier components, that is rounding
STRUCTURED_TOL = Precision(1e-8, 1e-4)  # components under a prior end at this change, by default
# If all deviations are below this share of the means, float32 data are computed in float64
SINGLE_LOSS = 4e-5
GRAM_LEFT = Precision(1e-5, 1e-3)  # below this share of the largest variance, a variance in A lacks digits
# Sums of more weights, times squares, may leave the number range
MOST_SAMPLES = 1e100
# Of a unit vector in the span of a basis, rounding leaves less than this norm: half of the digits
IN_SPAN = 1e-7
SPAN = 1e-10  # the same for a part of the variables of orthonormal loadings
RANK = 1e-13  # smaller singular values of a triangular factor are rounding
NULL_DIRECTION = 1e-14  # smaller eigenvalues of a Gram matrix are rounding
GRAM_LOSS = 1e-6  # least ratio of eigenvalues of M'M at which its root gives a polar factor to ten digits
NULL_WEIGHT = 1e-8  # squared entry of a unit vector that counts as part of a direction that B maps to zero
# A variable adds at least this x'Bx to a support; less is rounding, as B_jj is 1
PENCIL_SCHUR = Precision(1e-10, 1e-5)
PENCIL_NULL = Precision(1e-12, 1e-6)  # smaller eigenvalues of B on a support are rounding
# Smaller entries of A, and negative eigenvalues of B above minus this, are rounding
PENCIL_SLACK = Precision(1e-7, 1e-3)
PENCIL_LEFT = Precision(1e-10, 1e-5)  # below this share of the first value nothing is left
PENCIL_DEFLATED_NULL = 1e-8  # smaller eigenvalues of a deflated B are rounding
PENCIL_ROUNDING = 1e-13  # share of |x|'|A||x| that deflation leaves of x'Ax
PRIOR_SUM = 1e-5  # by how much probabilities of classes may miss 1, as printed ones do
NAMED_WEIGHT = 1e-6  # a variable is named in a direction if its entry is this share of the largest
CCA_TOL = 1e-10  # share by which an iteration must raise the objective, by default
CCA_LEFT = Precision(1e-12, 1e-5)  # below this share of the first strength nothing is left, for "pmd"

# Entries, rows and columns worked on at a time: large enough to be fast, small enough for a cache or for
# Ctrl-C
CHUNK = 1 << 22  # entries of X that are looked at or copied at a time: 32 MB in double precision
CACHED_ENTRIES = 1 << 16  # entries of X that are copied and multiplied at a time, so that they stay in cache
COPIED_ENTRIES = 1 << 21  # entries of rows that are centered into a copy at a time
# Entries of the rows of a fold, of columns whose distances are added, and of runs of neighbors
PART_ENTRIES = 1 << 20
THREAD_ENTRIES = 1 << 17  # entries of the columns that a thread or a batch reads at a time, in its cache
KMEANS_ENTRIES = 1 << 24  # products of points and centers of all starts that share a pass
TILE_ROWS = 512  # rows and columns of a tile of the kernel matrix
BLOCK_BYTES = 1 << 27  # bytes of X in a block of rows,
SMALL_BLOCK_BYTES = 1 << 24  # or only these, because the system need not clear their memory each time,
BLOCK_TALL = 16  # if a block then has this many rows for each variable, so that its result is small
BLOCKS_AT_LEAST = 8  # blocks of a larger X, so that two of them are a small part
CROSS_COLUMNS = 64  # columns of a cross-covariance, or rows of a pencil, at a time
COLUMNS_AT_A_TIME = 32  # columns of A that cost about as much as one, which is a few products
DASK_ON_CLIENT = 100  # results that the client adds; more are added by tasks
DASK_WIDE = 1_000_000  # numbers of a result above which the client adds fewer
DASK_FAN_IN = 16  # results that one task adds
DASK_SMALL = 1 << 16  # bytes of arguments that go with each task

# Threads
MOST_THREADS = 1024  # pool.c has room for no more

# How large a matrix may be formed or decomposed as a whole
ALL_VECTORS_ORDER = 256  # LAPACK computes all eigenvectors in milliseconds
ROWS_ENTRIES = 1 << 25  # entries of the rows of A that a search keeps
SUBMATRIX_ORDER = 1024  # a submatrix is formed and decomposed in a tenth of a second, for which Ctrl-C waits
SUBMATRIX_ENTRIES = 1 << 24  # entries of the columns of X that are gathered for it
SUBMATRIX_WORK = 4e9  # multiplications of their product
FORMED_ORDER = 1024  # a covariance is copied for each component, which is removed from it: 8 MB
CHOLESKY_ORDER = 1500  # the check that a covariance is semidefinite takes a tenth of a second
THREADED_ORDER = 200  # from here on OpenBLAS uses threads for products of a matrix and a vector
LAPACK_ORDER = 500  # decomposed in a moment; beyond, Lanczos is faster for few vectors, and Ctrl-C would wait
SPECTRAL_ORDER = 1000  # variables up to which a sparse precision is decomposed
SUPPORT_TOL = 1e-4  # EM ends at this change on a support that may not be the last: F is then known to 1e-5
# Variables up to which the entries of a callable are computed by products: a search makes as many
CALLABLE_ORDER = 256
SAMPLE_ORDER = 1000  # samples up to which FF' is formed
WIDE_SAMPLES = 2000  # samples of wide data up to which ordinary components come from the products of rows
# For leading vectors, FF' takes less if n is below this number times the products that ARPACK needs
SAMPLES_BY_PRODUCT = 32
WORKING_SET_VARIABLES = 256  # variables up to which all are in the working set of the elastic net
BOUND_ORDER = 2000  # variables up to which a bound decomposes the whole matrix
LEADING_ORDER = 3000  # variables up to which it computes the largest eigenvalues, in a second or two
BOUND_ENTRIES = 1 << 26  # entries of data that are copied for a bound
THRESHOLD_WORK = 1e10  # multiplications for all columns of A, the large entries of which a bound keeps
COLUMN_PASSES = 5  # passes over a column of a stored matrix to find its large entries
BLOCK_ORDER = 300  # variables of a block at most; its eigenvalues take a hundredth of a second
BLOCK_SPLITS = 16  # halvings of the level above which covariances join variables to a block
BLOCK_NODES = 1000  # nodes of a tree in a block for a bound,
BLOCK_WORK = 3e9  # and for all trees this number of nodes times (p k)^2 of the block: about a second,
BLOCK_PROOF_WORK = 3e10  # or a few seconds, if a proof is asked for
THRESHOLD_COLUMNS = 256  # columns of A at a time
THRESHOLD_ENTRIES = 1 << 21  # entries that are kept, of 24 bytes each
THRESHOLD_LEVELS = 9  # levels at which a bound is tried, and again between the neighbors of the best
THRESHOLD_STEPS = 300  # steps of power iteration for each level
BOUND_SPEED = 1e9  # multiplications of such a bound in a second, about
BOUND_VECTORS = 24  # Lanczos vectors for it
RELAXATION_ORDER = 2000  # for the semidefinite relaxation; six matrices of this order take 192 MB
JOINT_ORDER = 1000  # for the relaxation of several components, with three decompositions in each iteration
# For one relaxation beside a tree, iterations times the cube of its order: a few seconds
RELAXATION_WORK = 1e10
RELAXATION_LEAST = 50  # iterations before which a relaxation seldom bounds anything
RELAXATION_SPEED = 3e9  # this work in a second, about
REDUCED_ORDER = 200  # up to here it does not pay to look for variables that the relaxation can leave out
EXACT_ORDER = 3000  # for the matrix that branch and bound searches, which is held four times over
PPCA_ORDER = 3000  # for the matrix that probabilistic components decompose as a whole
BACKWARD_ORDER = 2000  # variables from which a backward search starts
PENCIL_BACKWARD_ORDER = 1000  # the same for a pencil
USUAL_BACKWARD_ORDER = 150  # variables up to which a backward search costs little
LEAST_SQUARES_ORDER = 1000  # variables up to which least squares components form A and its square
LEAST_SQUARES_EXACT_ORDER = 200  # variables of their exact search, which takes long from about 30 on
PENCIL_SUPPORT = 4000  # variables of a support whose pencil is decomposed
POLAR_ENTRIES = 1 << 16  # entries up to which a polar factor comes from an SVD
JOINING_VARIABLES = 32  # variables for each component that join the working set of the elastic net at a time
LARGEST_RIDGE = 2.0**300  # in the operator's units; beyond, only the size of B would change, and underflow
GPOWER_ORDER = 64  # variables up to which all eigenvectors of A are computed for a start
KERNEL_BYTES = 2**31  # bytes of the largest kernel matrix that is held, by default
BANDWIDTH_ROWS = 1000  # rows whose distances give the default bandwidth
# Squared mean over squared distances, beyond which rows are made dense to be centered
SPARSE_MEAN = Precision(1e4, 1e2)
FLOAT32_HALF_NORM = 50.0  # half a squared norm, beyond which float32 loses digits of the Gaussian kernel

# Data in blocks of rows: which columns of A are fetched and kept
KEPT_BYTES = 1 << 30  # bytes of columns of A
# Variables up to which a submatrix of A is formed, because a pass costs more
BLOCKS_SUBMATRIX_ORDER = 1 << 14
FETCH_ALL_ORDER = 256  # variables up to which all of A is fetched at once
LIKELY_BYTES = 1 << 23  # bytes that a block may return for columns that are only likely to be used
FETCHED_NONZEROS = 512  # nonzeros of vectors whose columns may be worth fetching
RECENT_PRODUCTS = 16  # products that are kept, because a solver may ask for one again
MEMBERS_WORK = 64  # squared number of variables between which a search keeps A, over the entries of a row
FORMING_PASSES = (1, 2, 4, 8)  # numbers of passes in which A may be formed, a part of its rows in each
# Small blocks are used together: blocks of so many entries, or rows, and bytes of columns of these
GROUP_ENTRIES, GROUP_ROWS, GROUP_BYTES = 1 << 21, 1 << 11, 1 << 26
PASS_COLUMNS = 16.0  # columns of A that cost as much as one product, where there are many

# Screening
SCREENED_ROWS = 64  # with fewer rows the bounds cost as much as the columns
SCREENED_ENTRIES = 1 << 19  # with fewer entries X is in cache
# Share of the bytes of X that a whole call may take, so that float32 can have a quantized copy
SCREENING_SHARE = 0.4
SCREENING_COLUMN_BYTES = 220  # bytes that a whole call takes for each column besides the quantized copy
SCREENING_FREE_BYTES = 1 << 26  # bytes of X up to which that does not matter
FEW_ENTRIES = 0.1  # share of nonzeros below which dense X is copied and searched as sparse data are
FEW_SAMPLED = 64  # rows and columns whose entries are looked at first
MEMORY_LINE = 64  # bytes; the quantized copy of a column begins at a multiple

# Working sets
WORKING_SET_BYTES = 1 << 28  # bytes of the columns and their Gram matrix
# If fewer than this share of the entries of the first columns are stored, only those are read
WORKING_SET_PAIRS = 0.2
WORKING_SET_FACTOR = 8  # variables to begin with, over the cardinality
WORKING_SET_START = 256  # variables to begin with if the cardinality is not given, at least
# Share of all columns that exceed a fixed level, above which the component is not sparse
WORKING_SET_DENSE = 0.25
WORKING_SET_ALL = 8  # multiplications for each entry of A[W, W], to search all of W from one more start
WORKING_SET_PROBES = 8  # single variables whose partners are in the set too, if that is cheap
WORKING_SET_ENTRANTS = 1  # variables that join after a check, over the cardinality
WORKING_SET_CHECKS = 100  # checks of all columns for one component, after which the search uses all
WORKING_SET_NOISE = 64  # units of rounding of the largest variance that the Gram matrix cannot resolve
WORKING_SET_COST = 1 << 18  # multiplications of a product, below which it costs next to nothing

# Resamples
RESAMPLE_CANDIDATES = 4  # variables to begin with, over the cardinality, beside the supports of all the data
RESAMPLE_CHECKS = 20  # checks of all variables for a batch, after which a resample is searched among all
RESAMPLE_BATCH = 32  # resamples at a time: enough for the speed of a matrix product
RESAMPLE_ENTRIES = 1 << 20  # entries of the moments and products of a batch, 8 MB, if half of X has fewer
QUANTILE_ENTRIES = 1 << 21  # loadings of all resamples that are sorted together
STABLE_FREQUENCY = 0.75  # frequency of a stable variable, if there is no bound on false ones

# A as a matrix, from one pass over tall data
GRAM_ORDER = 4096  # variables up to which A is formed; it takes 128 MB then
# Rows for each variable, at least: wider data are searched as well by screening or a working set
GRAM_TALL = 16
# Up to which the same read of dense data tells the statistics: what these forbid costs ten times as long.
GRAM_ONE_READ = 384
GRAM_ENTRIES = 1 << 19  # entries of X from which that saves time: fewer are in cache
GRAM_SHARE = 0.25  # share of the bytes of X that the matrix may take,
GRAM_FREE_BYTES = 1 << 26  # if it does not take less than this
GRAM_DENSE_PRODUCTS = 32  # reads of dense X that it may cost; a search makes 20 for each component,
GRAM_SPARSE_PRODUCTS = 128  # and for sparse X, which nothing screens, a few hundred
SCATTER_COST = 30  # multiplications in BLAS that take as long as one of a pair of sparse entries, or of X v
GRAM_FEW = 1000  # variables up to which one row for each is enough: the search on A takes a tenth of the time
# Variables up to which A of row blocks is formed: searches would form it in more passes
GRAM_BLOCKS_ORDER = 3072
DASK_TRAFFIC = 4  # times the bytes of X that the matrices of all blocks may have, which tasks add,
DASK_MATRICES = 1 << 29  # or this many bytes: half a second of a network
# Second moment over variance of a sparse column, beyond which too many digits are lost
GRAM_CANCELLATION = 1e4

# Work that is done by default, in multiplications
KRYLOV_WORK = 1 << 23  # for one product; beyond, a Krylov basis would take much memory
START_STEPS = 20  # power steps on the most promising variables: a start needs no more
START_WORK = 1e8  # for coordinate starts, at 20 iterations each
# A race from columns: iterations of each round, how many runs go on, or their share, and nonzeros over k
RACE, RACE_ENDS = ((1, 0.2, 1), (2, 1 / 15, 1)), 8
# Columns with the largest norm of their largest entries; 100 would do for words, genes and cells
RACE_STARTS = 300
# The same from all columns, for weak signals: more variables together show them
DEEP_RACE = ((1, 0.5, 1.5), (1, 0.25, 1.5), (2, 0.125, 1.5), (4, 100, 1))
DEEP_ENDS = 20  # runs that go on to their ends
RACE_ALL = 300  # variables up to which more runs go on in each round, because that costs next to nothing,
RACE_EXACT = 64  # and up to which they are in double precision
RACE_MOST_STEPS = 300  # steps of a run to its end, before its variables are swapped
RACE_ITERATIONS = 100  # least `max_iter` for a race to have rounds
FIELD_ORDER = 8192  # variables between which A is formed in single precision: 256 MB
FIELD_SOME = 3072  # with more variables: this number of the largest variance, and as many others
FIELD_PROBE = 768  # the same at first, to see whether one start is enough;
FIELD_PROBE_EACH = 15  # and this number for each nonzero, if that is more
# Components for which a few were enough, after which no probe is made; starts of a probe
PROBES, PROBE_STARTS = 2, 100
PROBE_DROP = 0.8  # except for a component that explains less than this share of the one before
# Share of these that correlate most with neighbors, if variances tie; the others are random
NEIGHBOR_SHARE = 0.75
NEIGHBOR_SORTS, NEIGHBOR_BITS = 2, 16  # sorts by which neighbors are found, and signs of projections in each
NEIGHBORS, NEIGHBOR_LARGEST = 64, 10  # that are in a run; correlations with them that count
NEIGHBOR_WORK = 2e9  # multiplications at most
# Second moment over variance of a sparse column, beyond which sums need double precision
FIELD_CANCELLATION = 100
FIELD_COLUMNS = 1024  # columns that are converted at a time
# Times that a part of A gives way to the variables with which the ends of its race have most in common, where
# a signal may be weak; how many ends these are, and how many times k variables of each
FIELD_ROUNDS, FIELD_LEADS, FIELD_PARTNERS = 2, 50, 2
FIELD_IMAGES, FIELD_IMAGE_ENTRIES = 16, 1 << 22  # products with A at a time, and their entries
FIELD_IMAGE_WORK, FIELD_LEADS_LEAST = 1e9, 8  # multiplications of them, and of how many ends at least
# Share of the best support in a part of A, from which on its ends tell of no others outside
FIELD_INSIDE = 0.8
FIELD_GAIN = 2e-3  # gain of a component by such a race, below which it has found nothing
TALLY_TIE = 1e-6  # a run, or a population, this share below a value counts as one that reached it
FIELD_AT_ONCE = 3072  # variables up to which no probe asks whether a few of them are enough
# Share of the best value by which an end in a part of A may be below it; of p > FIELD_ORDER the second
FIELD_SLACK = (0.25, 0.05)
FIELD_ROUNDING = 1e-4  # the same where A is whole
FIELD_LIFTED = 4  # ends from which the search goes on among all variables
FIELD_NEAR = 0.05  # an end may then be this share below the best for its variables to be swapped
# Columns of A, entries of each, and of X at once, that tell whether a part of A hides supports,
PROBE_COLUMNS, PROBE_ROWS, PROBE_ENTRIES = 32, 8192, 1 << 22
# Of so many runs of entries the first, and least of these: if they tell of no column, no more are read
PROBE_FIRST, PROBE_LEAST = 4, 512
PROBE_RUN = 8  # neighbors that are read together
PROBE_PART = 256  # entries of each column at a time
PROBE_PAIRED = 4  # random variables, of which more would have partners among these, that decide first
PROBE_SHARE = 0.5  # what a column and its partners explain, over the best value, to count as a hint,
PROBE_AGAIN = 4  # and the number of columns that must hint: one may belong to another planted component
# Samples from which a search starts where their largest entries may explain so large a share of a component;
# levels of these by which they are chosen, over the mean of a component; columns read at a time, and entries
EXTREME_SAMPLES, EXTREME_LEAST, EXTREME_SHARES = 8, 0.65, (0.5, 1.0)
EXTREME_COLUMNS, EXTREME_ENTRIES = 256, 1 << 25
# Columns at random where a search starts, unless variances tell which variables the best component has: how
# many are expected in a support, how many are too few, and multiplications for them
RANDOM_HITS, RANDOM_FEW, RANDOM_WORK = 6, 0.25, (6e9, 3e7)
RANDOM_SPARSE = 8  # the time of a multiplication of sparse data over one of dense data
RANDOM_TOLD, RANDOM_AMONG = 0.25, 4  # share of its variables, among so many times k of them
RANDOM_SHARE = 0.8  # what a support promises over the best value, for a search to go on from there
RANDOM_LEFT, RANDOM_LEAST = (1, 1 / 8, 1 / 32), 16  # shares that make each step, and the least number
RANDOM_ENTRIES = 1 << 22  # entries of columns of A at a time,
RANDOM_SINGLE = 48  # and columns of dense data from which on single precision saves time
COLUMN_ORDER = 4096  # variables at most whose columns of A are compared for where to start,
COLUMN_WORK = 2e10  # and multiplications to form A between them from data: 0.6 s
COLUMN_BLOCK = 256  # columns that are compared at a time
COLUMN_STARTS = 64  # starts of pmd from the columns that promise most, while the work is small,
GPOWER_STARTS = 200  # and of generalized power: for words a promise says little about the end
PMD_ITERATIONS = 200  # iterations of pmd from each of its own starts
COLUMN_LEAST = 128  # variables up to which each starts pmd and scotlass anyway
COLUMN_ENDS = 2  # ends in a part of A that go on with the data
COLUMN_STARTS_LEAST = 8  # starts at least
SAME_ENDS = 8  # starts of generalized power that end at the same best value, after which no more are tried
NOISE_VARIABLES = 32  # variables whose 496 correlations give the deviation to about 5 %
NOISE_INDEPENDENT = 1.25  # deviation of correlations over that of independent variables, which may be chance
NOISE_DEPENDENT = 1.75  # the same for data like words and cells, where one start needs few of the columns
NOISE_GROWTH = 2.0  # from one component to the next: for counts of words and cells it is up to 1.5
WEAK_CORRELATION = 2.0  # correlation over the best of pure noise, up to which a weak signal is looked for
QUICKLY_SWAPPED_ENDS = 40  # ends of a race whose variables are swapped as long as a vector says which
SWAPPED_ENDS = 4  # ends of runs on a matrix or under a constraint that are swapped: one may miss 16 %
BRIEF_ORDER = 300  # variables up to which a brief branch and bound ends a search,
# With this number of nodes, and at most this number over (p k)^2: a few milliseconds
BRIEF_NODES, BRIEF_WORK = 1000, 1e7
BRIEF_HOPELESS = 0.04  # excess of its bound over the value, as a share over log2 of nodes, that ends it
BRIEF_TIE = 1e-12  # a proved value may be this share below the optimum (tree.c)
BRIEF_SECONDS = 0.05  # seconds that a search must be given for it to begin with that
BRIEF_FORMING = 2e7  # multiplications to form its matrix from data
CHOICE_SWAPS = 32  # groups, or variables with signs, that are tried in the place of one; and swaps in all
CHOICE_STARTS = 32  # single variables that such a search starts from,
CHOICE_ENDS = 8  # and ends in A that go on with the data,
CHOICE_COLUMNS = 1024  # with at most this number of variables, whose columns are compared
GREEDY_STARTS = 8  # variables that forward search tries to begin with, on a field
GREEDY_BEGINS = 3  # and those that it uses, each the best at some cardinality, or the most promising
GREEDY_RANKED = 64  # the largest cardinality at which these are compared
GREEDY_UNITS = 128  # groups, or variables with signs, that each step of a greedy search tries
CHOICE_NODES, CHOICE_ORDER = 100, 40  # nodes of the tree that ends it, and variables up to which there is one
SHAPED_ORDER = 500  # variables of a relaxation under groups or signs
CCA_CHOICE_TURNS = 1000  # turns of values with signs of both sides, on given supports
SIGNED_RATIOS = 100  # steps to the best ratio with given signs, which mostly takes about three
SIGNED_ORDER = 12  # variables up to which values with given signs are the best ones, as in spca.h
SWAP_WORK = 1e8  # for one round of swaps,
# And where a signal may be weak, with up to 100 nonzeros: this finds 5 % more in noise
WEAK_SWAP_WORK = 2.1e9
SWAPS_AT_A_TIME = 64  # swaps between looks at the clock; each takes 10 or 100 microseconds
SWAP_GAP = 1e-8  # gap of the two largest eigenvalues on a support by which bounds of swaps divide, at least
TIE_WORK = 1e9  # for trying first variables of equal variance
TIED_VARIABLES = 256  # first variables of equal variance that are tried
PENCIL_GREEDY_WORK = 4e10  # beyond this, forward search adds several variables at a time
PENCIL_SWAP_WORK = 1e9  # for one round of swaps
PENCIL_ALL_SWAPS_WORK = 2e10  # for all swaps from one start, which may also cost twice its greedy search
PENCIL_ENTERING = 64  # variables, at least, that may enter by a swap
PENCIL_STARTS = 8  # first variables of further forward searches
PENCIL_PAIRS = 16  # pairs of variables with which forward searches begin instead
PENCIL_ENUMERATED = 3000  # supports that are all tried, which takes a few milliseconds
PENCIL_START_WORK = 2e8  # for these forward searches
LEAST_SQUARES_SWAP_WORK = 2e9  # for all swaps of a least squares component
LEAST_SQUARES_ENTERING = 1000  # variables that may enter by a swap, at most: those that would add most
LEAST_SQUARES_VECTORS = 16  # eigenvectors that bound what a variable by itself explains, if A is not formed
PAIR_WORK = 2e9  # for the search for the most correlated pair of variables
CCA_PAIRS = 16  # pairs of variables from which the supports of both sides grow
CCA_STARTS = 12  # variables of Y to start from
CCA_START_WORK = 1e7  # sets how many of these there are
CCA_REFINED_STARTS = 3  # of these, how many are improved by swaps
# If the order is this many times the number of eigenvectors, Lanczos is faster than LAPACK
LANCZOS_SHARE = 40

# Iterations
ALTERNATIONS = 60  # iterations of elastic nets without a gain after which changing supports end them
ROUND_RISE = 1e-4  # share by which loadings must explain more to be a gain for elastic nets
REFINEMENT_ROUNDS = 500  # for `refine=True`
CCA_ROUNDS = 100  # turns of the two sides
LLOYD_STEPS = 300  # for one K-means
# Single points moved between two passes: with 1 it takes twice the time, with 64 it ends lower
HARTIGAN_MOVES = 16
SUBSPACE_ROUNDS = 6  # for subspace iteration
SUBSPACE_SPARE = 8  # directions that it keeps beyond those asked for
BAND_WORK = 1 << 26  # for a Cholesky factor in bands, which takes less than conjugate gradients do
GRADIENT_STEPS = 5000  # for conjugate gradients
DETERMINANT_RESIDUAL = 1e-6  # their relative residual, if only a determinant is needed
GRADIENT_RESIDUAL = 1e-12  # their residual over the norm of the right-hand side
# Entries of a prior are between this and its inverse, so that squares of means stay in range
PRIOR_UNIT = 1e250
PRIOR_SHIFT = 1e-6  # least eigenvalue of a prior precision, over the mean of its diagonal
TRACE_STEPS = 80  # Lanczos steps for the logarithm of a determinant
TRACE_ENTRIES = 1 << 18  # entries of the random vectors for it; there are 16 to 128 vectors

# Constraints, penalties and ties of a search
CONTINUATION = (0.25, 1.0, 4.0, 16.0, 64.0)  # penalties on what a constraint forbids, over the variance found
GREEDY_PENALTIES = (0.0, 1.0, 1e6)  # the same while greedy search chooses variables
TREE_PENALTY = 100.0  # the same in branch and bound, over the level
PENALTY_DESCENT = 0.7  # ratio of one penalty of the semidefinite relaxation to the one before
ROUGH_TOLERANCE, ROUGH_ITERATIONS = 1e-2, 100  # how well each of these relaxations is solved
NEGLIGIBLE_ENTRY = 1e-3  # entries below this share of the largest of the relaxation's eigenvector are dropped
TOGETHER_ORDER = 2048  # variables of the matrix of a joint search, at first
JOINT_MEMBERS = 8  # sets of loadings that a population keeps, to change them
JOINT_MOVES = 40  # moves between two reports
JOINT_FIRST_MOVES = 15  # first moves of a population, which seek loadings anew (joint.c)
JOINT_PATIENCE = 80  # moves in a row without a gain, after which a population ends
JOINT_POPULATIONS = 3  # populations after which one begins with the best of them
JOINT_KEPT = 2  # sets of loadings of each population that are kept for that
JOINT_COMBINED_PATIENCE = 120  # the patience of that population
JOINT_AGREEING = 20  # populations that end at the same value, after which the search ends
# Multiplications for each variable, which end it too: half a second for a hundred variables
JOINT_WORK = 2.4e7
JOINT_SMALL = 100  # variables that count at least
JOINT_CONSTRAINED = 0.75  # share of the work under a constraint, where a multiplication takes longer
JOINT_SHARE = 0.15  # share of the work for one population
JOINT_BITS = 32  # bits of each entry of A that a joint search sees, relative to the standard deviations
JOINT_CHECKS = 5  # searches among more and more variables, as long as one outside would enter
JOINT_ENTRANTS = 256  # variables that join at a time
SMALL_ORDER = 64  # variables up to which supports that are chosen together have more kinds of starts

# Supports of several components together
ACROSS_ORDER = 1000  # variables up to which all are candidates: A between them is decomposed in about 0.1 s
# With more variables: four times this at first, or four times the variables asked for
ACROSS_CANDIDATES = 200
ACROSS_CHECKS = 20  # checks of the variables that are no candidates
ACROSS_BISECTIONS = 44  # for an eigenvalue between two others: 13 digits of their distance
ACROSS_WORK = 1e7  # terms of the equations for all exchanges of a support; with more, only these may enter:
ACROSS_ENTERING = 64  # variables
ACROSS_EXCESS = Precision(1e-10, 1e-4)  # share of a proved optimum that rounding may hide
ACROSS_RANDOM = 24  # random starts with few variables; all or some components are random
ACROSS_RANDOM_MANY = 8  # the same with many: with none up to 2.3 % is lost for 230 variables, with 3 1.5 %
ACROSS_RANDOM_WORK = 2_000_000  # their number times p^2, at most
DISJOINT_SUPPORTS = 4000  # supports of few variables that are all tried for disjoint components,
DISJOINT_NODES = 5000  # if there are at most this many combinations: a tenth of a second
BUDGET_SPLITS = 12  # ways to divide a total that counts the variables of groups, besides the even one
BUDGET_TRIALS = 2  # smallest units of a component that are tried in another one

# Branch and bound
STRONG_VARIABLES = (128, 512)  # variables whose columns of A are computed to rule others out
STRONG_CHUNK = 4096  # other variables whose largest covariances with strong ones are sorted at a time
STRONG_GROUPS = 2  # nonzeros for each group of the others, in which their covariances are computed,
STRONG_WORK = 3e11  # with this number of multiplications: 20 seconds
STRONG_NODES = 2000  # nodes of a tree among strong variables for a bound
STRONG_STEPS = 20  # steps of truncated power, for a value below which the bound need not go
IN_TURN_NODES = 5000  # nodes of a search for fewer nonzeros, whose bound then leaves out variables
NODE_CHILDREN = 8  # children of a node; the last stands for all that remain
FRONTIER_BYTES = 1 << 28  # bytes of nodes beyond which the newest go first
BOUND_SHARE = 0.2  # share of the time after which a search that may not end asks for bounds without a tree
JOINT_ITERATIONS = 240  # of alternating directions for a bound on several components,
JOINT_EFFORT = 5e9  # at most this over the cube of the number of variables,
JOINT_ROUNDS, JOINT_FREE_ROUNDS = 8, 2  # in rounds, and a third of them again from supports that trees find
JOINT_CHECK = 10  # iterations between looks at the bound that they give, and for other supports
JOINT_STEP = 1.5  # over-relaxation: steps go this many times as far
JOINT_ENTERING = 10  # supports that join at such a look
JOINT_STALL = 2e-4  # share by which four such looks, or a round, must lower the bound
# Nodes of the tree for each number of nonzeros, and nodes times the square of p
JOINT_NODES, JOINT_TREE = 40_000, 4e8
JOINT_UNION = 16  # nodes of the tree over all variables together, between two looks at stop
CERTIFIED_ORDER = 500  # variables of a pencil whose ratio is bounded at a cardinality
CERTIFIED_NODES = 2000  # nodes of a tree for that,
CERTIFIED_WORK = 3 * 10**10  # multiplications of a tree over groups and the like
CERTIFIED_TREES = 4  # further trees at larger ratios, if the first does not end
# Of alternating directions for one relaxation; tolerance as a share of entries
CERTIFIED_ITERATIONS, CERTIFIED_TOL = 300, 1e-5
CERTIFIED_ROUNDS = 8  # relaxations, each at the bound of the one before
BATCH_SECONDS = 0.01  # seconds that a batch of nodes should take

# Paths and selection
GRID_VALUES = 15  # values tried by default
GRID_CARDINALITY = 1000  # the largest cardinality tried by default

# Callbacks
CALLBACK_SECONDS = 0.05  # seconds between calls of a callback: twenty in a second

# Results as text and HTML
READ_VARIABLES = 40  # rows of a table of loadings: what a screen shows, however many variables there are
READ_COMPONENTS = 20  # columns of a table of loadings
DENSE_WORK = 2e7  # multiplications, a few milliseconds, for the shares of ordinary components beside a fit

# Pictures
CLUSTERED_VARIABLES = 3000  # variables that a heatmap puts in order by a clustering; more take seconds
NAME_LETTERS = 24  # letters of a name in a picture or a summary; the middle of a longer one is left out
LOG_SPAN = 10**1.5  # largest over least value from which an axis is logarithmic

# The command
COMMAND_GRID_VALUES = 10_000  # values of one path
COMMAND_RELAXATION_ORDER = 100  # variables up to which the semidefinite relaxation takes a moment
INFO_ENTRIES = 1 << 20  # entries of a matrix that are looked at together
INFO_NAMES = 5  # names that are printed if there are many
INFO_VARIANCE_RATIO = 10  # largest over median variance from which scaling is worth a thought
ERROR_LETTERS = 200  # letters of what a library says about a damaged file
TABLE_ROWS, TABLE_COLUMNS = 40, 10  # of a printed table; more variables or components are listed instead
LISTED_VARIABLES = 20  # variables of a component on the screen, if there is no table
