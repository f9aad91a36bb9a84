"""Every limit that is a matter of policy: how much at a time, how large, how long, how precise; and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


def slices(n: int, width: int, entries: int) -> Iterator[slice]:
    """Of n lines of this width: as many in each as have so many entries, or one."""
    step = max(1, entries // max(1, width))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


class Precision(NamedTuple):
    """A tolerance in double and in single precision."""

    double: float
    single: float

    def of(self, dtype: Any) -> float:
        """That of float64 or float32."""
        return self.double if dtype == np.float64 else self.single


# Precision, relative to the largest magnitude where nothing else is said
SYMMETRY = Precision(1e-8, 1e-5)  # that a matrix may differ from its transpose, as sums in another order do
TIE = Precision(1e-12, 1e-6)  # values this close are equal, and the lower index is preferred
VARIANCE_TIE = 1e-6  # share of the largest variance by which others may be less and promise as much
RISE = 1e-10  # by which an objective must rise for a swap or another start to count
EIGENVECTOR_TOL = Precision(1e-8, 1e-4)  # of ARPACK's eigenvectors that are only started from or summed
KERNEL_TOL = Precision(1e-10, 1e-5)  # of the residual of an eigenvector of a kernel matrix
CLUSTERING_TOL = Precision(1e-6, 1e-4)  # change of the weights at which clustering ends, by default
REFIT_RISE = Precision(1e-12, 1e-6)  # share of the objective that is rounding when values are re-fitted
QUOTIENT_NULL = Precision(1e-8, 1e-3)  # x'Bx of a unit vector that generalized deflation has left as rounding
SOLVER_TOL = Precision(1e-8, 1e-5)  # change at which a one-component search ends, by default
EXACT_SLACK = Precision(1e-9, 1e-4)  # of bounds that leave out variables: far above rounding
CENTERING_LOSS = Precision(1e-6, 1e-3)  # of a column's norm: digits that may be lost by removing a mean
BLOCK_NOISE = Precision(1e-12, 1e-5)  # share of the objective of generalized power that is rounding
SHARE_ROUNDING = Precision(1e-10, 1e-5)  # of a share of the variance that is to be reached
VARIANCE_LEFT = Precision(1e-14, 1e-6)  # share of a variance, given earlier components, that is rounding
REFINEMENT_RISE = Precision(1e-12, 1e-6)  # rise of the variance that a round of refinement must exceed
STRUCTURED_TOL = Precision(1e-8, 1e-4)  # change at which structured components end, by default
SINGLE_LOSS = 4e-5  # deviation over mean of all variables, below which float32 data are computed in float64
GRAM_LEFT = Precision(1e-5, 1e-3)  # variance over the largest of a variable, below which A lacks digits
IN_SPAN = 1e-7  # norm that is left of a unit vector in the span of a basis: half of the digits
SPAN = 1e-10  # the same of loadings on a part of their variables, which are orthonormal
RANK = 1e-13  # singular values of a triangular factor that are rounding
NULL_DIRECTION = 1e-14  # eigenvalues of a Gram matrix that are rounding
GRAM_LOSS = 1e-6  # least ratio of eigenvalues of M'M for which its root gives a polar factor to ten digits
NULL_WEIGHT = 1e-8  # square of a unit vector's entry that counts as part of what B maps to zero
PENCIL_SCHUR = Precision(1e-10, 1e-5)  # x'Bx that a variable adds to a support: less is rounding, as B has 1
PENCIL_NULL = Precision(1e-12, 1e-6)  # eigenvalues of B on a support that are rounding
PENCIL_SLACK = Precision(1e-7, 1e-3)  # entries of A, or negative eigenvalues of B, that are rounding
PENCIL_LEFT = Precision(1e-10, 1e-5)  # share of the first value: below it nothing is left
PENCIL_DEFLATED_NULL = 1e-8  # eigenvalues of a deflated B that are rounding
PENCIL_ROUNDING = 1e-13  # share of |x|'|A||x| that deflation leaves of x'Ax
PRIOR_SUM = 1e-5  # that the probabilities of classes may miss 1 by, as printed ones do
NAMED_WEIGHT = 1e-6  # of the largest entry, from which a variable is named as part of a direction
CCA_TOL = Precision(1e-10, 1e-5)  # by default: share by which an iteration must raise the objective
CCA_LEFT = Precision(1e-12, 1e-5)  # share of the first strength below which nothing is left, of "pmd"
CCA_GENERALIZED_LEFT = Precision(1e-10, 1e-5)  # and of "generalized", whose metrics are inverted

# Entries, rows and columns worked on at a time: large enough to be fast, small enough for a cache or for
# Ctrl-C
CHUNK = 1 << 22  # entries of X that are looked at or copied at a time: 32 MB in double precision
CACHED_ENTRIES = 1 << 16  # of X that are copied and multiplied at a time, so that they stay in cache
COPIED_ENTRIES = 1 << 21  # of rows that are centered into a copy
HELD_OUT_ENTRIES = 1 << 20  # of rows left out of a fold
CLUSTERING_ENTRIES = 1 << 20  # of the columns whose distances are added
THREAD_ENTRIES = 1 << 17  # of the columns that a thread has at a time: they stay in its cache
KMEANS_ENTRIES = 1 << 24  # of the products of points and centers of all starts that share a pass
TILE_ROWS = 512  # rows and columns of a tile of the kernel matrix
BLOCK_BYTES = 1 << 27  # of X, read at a time as a block of rows,
SMALL_BLOCK_BYTES = 1 << 24  # or only these, whose memory the system need not clear each time,
BLOCK_TALL = 16  # if they have that many rows for a variable, so that what a block returns is little
BLOCKS_AT_LEAST = 8  # of a larger X, so that two of them are a small part
CROSS_COLUMNS = 64  # of the matrix of covariances of two sides, or rows of a pencil
COLUMNS_AT_A_TIME = 32  # columns of A that cost about as much as one, which is some products
DASK_ON_CLIENT = 100  # results that are added by the client rather than by tasks
DASK_WIDE = 1_000_000  # numbers of a result from which fewer are added by the client
DASK_FAN_IN = 16  # results that one task adds
DASK_SMALL = 1 << 16  # bytes of arguments that go with each task

# Threads
MOST_THREADS = 1024  # for which pool.c has room

# How large a matrix may be formed or decomposed as a whole
ALL_VECTORS_ORDER = 256  # LAPACK computes all eigenvectors in milliseconds
ROWS_ENTRIES = 1 << 25  # of rows of A that a search keeps
SUBMATRIX_ORDER = 1024  # of a submatrix that is formed and decomposed in a tenth of a second: Ctrl-C waits
SUBMATRIX_ENTRIES = 1 << 24  # of the columns of X gathered for it
SUBMATRIX_WORK = 4e9  # multiplications of their product
FORMED_ORDER = 1024  # of a covariance that is copied for each component, which is removed there: 8 MB
CHOLESKY_ORDER = 1500  # the check that a covariance is semidefinite takes a tenth of a second
THREADED_ORDER = 200  # from which products of a matrix and a vector have threads in OpenBLAS
LAPACK_ORDER = 500  # decomposed in a moment; beyond, Lanczos is faster for few vectors, and Ctrl-C would wait
SPECTRAL_ORDER = 1000  # variables up to which a sparse precision is decomposed
SUPPORT_TOL = 1e-4  # change at which EM ends on a support that may not be the last: F is then known to 1e-5
CALLABLE_ORDER = (
    256  # variables of a callable whose entries are obtained by products: no more than one search makes
)
SAMPLE_ORDER = 1000  # samples up to which FF' is formed
WIDE_SAMPLES = 2000  # samples of wide data, up to which ordinary components come from the products of rows
SAMPLES_BY_PRODUCT = (
    32  # and for each product that ARPACK would ask for, their leading vectors: FF' takes less
)
WORKING_SET_VARIABLES = 256  # variables up to which all are in the working set of the elastic net
BOUND_ORDER = 2000  # variables up to which a bound decomposes the whole matrix
LEADING_ORDER = 3000  # and its largest eigenvalues, in a second or two
BOUND_ENTRIES = 1 << 26  # and entries of data, which are copied for that
THRESHOLD_WORK = 1e10  # multiplications of all columns of A, of which the large entries are kept for a bound
COLUMN_PASSES = 5  # over a column of a stored matrix, to find its large entries
BLOCK_ORDER = 300  # variables of a block at most, whose eigenvalues take a hundredth of a second
BLOCK_SPLITS = 16  # halvings of the level above which covariances join variables to a block
BLOCK_NODES = 1000  # of a tree in a block for a bound,
BLOCK_WORK = 3e9  # of which all have, times (p k)^2 of the block, at most so many: about a second,
BLOCK_PROOF_WORK = 3e10  # or some seconds, where a proof is wanted
THRESHOLD_COLUMNS = 256  # of A at a time
THRESHOLD_ENTRIES = 1 << 21  # that are kept, of 24 bytes
THRESHOLD_LEVELS = 9  # between which a bound is sought, and again between the neighbors of the best
THRESHOLD_STEPS = 300  # of power iteration for each
BOUND_SPEED = 1e9  # multiplications of such a bound in a second, about
BOUND_VECTORS = 24  # Lanczos vectors of it
RELAXATION_ORDER = 2000  # of the semidefinite relaxation; six matrices of that order take 192 MB
JOINT_ORDER = 1000  # of the relaxation of several components: three decompositions in each iteration
RELAXATION_WORK = (
    1e10  # of one relaxation beside a tree, iterations times the cube of its order: some seconds
)
RELAXATION_LEAST = 50  # iterations before which it seldom bounds anything
RELAXATION_SPEED = 3e9  # of them in a second, about
REDUCED_ORDER = 200  # up to which looking for variables to leave out of the relaxation does not pay
EXACT_ORDER = 3000  # of the matrix that branch and bound searches, which is held four times over
PPCA_ORDER = 3000  # of the matrix that is decomposed whole for probabilistic components
BACKWARD_ORDER = 2000  # variables that a backward search starts from
PENCIL_BACKWARD_ORDER = 1000  # the same of two matrices
USUAL_BACKWARD_ORDER = 150  # variables up to which a backward search costs little
LEAST_SQUARES_ORDER = (
    1000  # variables up to which A is formed, and its square known, for least squares components
)
LEAST_SQUARES_EXACT_ORDER = 200  # variables of their exact search; it takes long from some thirty on
PENCIL_SUPPORT = 4000  # variables of a support whose pencil is decomposed
POLAR_ENTRIES = 1 << 16  # up to which a polar factor is found by an SVD
JOINING_VARIABLES = 32  # of each component that join the working set of the elastic net at a time
LARGEST_RIDGE = 2.0**300  # in the operator's units; beyond, only the size of B would change, and underflow
GPOWER_ORDER = 64  # up to which all eigenvectors of A are computed for a start
KERNEL_BYTES = 2**31  # of the largest kernel matrix that is held, by default
BANDWIDTH_ROWS = 1000  # whose distances give the default bandwidth
SPARSE_MEAN = Precision(
    1e4, 1e2
)  # squared mean over squared distances, beyond which rows are made dense to center
FLOAT32_HALF_NORM = 50.0  # half a squared norm, beyond which float32 loses digits of the Gaussian kernel

# Data in blocks of rows: which columns of A are fetched and kept
KEPT_BYTES = 1 << 30  # of columns of A
BLOCKS_SUBMATRIX_ORDER = 1 << 14  # up to which a submatrix of A is formed: a pass costs more
FETCH_ALL_ORDER = 256  # variables up to which all of A is fetched at once
LIKELY_BYTES = 1 << 23  # that a block may return for columns which are only likely to be used
FETCHED_NONZEROS = 512  # of vectors whose columns may be worth fetching
RECENT_PRODUCTS = 16  # that are kept: a solver may ask for one again
MEMBERS_WORK = (
    256  # of the square of the number of variables between which a search keeps A, an entry of a row
)
FORMING_PASSES = (1, 2, 4, 8)  # in which A is formed, some of its rows in each
PASS_COLUMNS = 16.0  # columns of A that cost as much as one product, where there are many

# Screening
SCREENED_ROWS = 64  # below this the bounds themselves cost as much as the columns
SCREENED_ENTRIES = 1 << 19  # below this X is in cache
SCREENING_SHARE = 0.4  # of the bytes of X: what a whole call may take, so that float32 has a quantized copy
SCREENING_COLUMN_BYTES = 220  # what a whole call takes for each column besides the quantized copy
SCREENING_FREE_BYTES = 1 << 26  # bytes of X up to which that does not matter
FEW_ENTRIES = 0.1  # of dense X, that are not zero: fewer are copied and searched as sparse data are
FEW_SAMPLED = 64  # rows and columns whose entries tell at first
MEMORY_LINE = 64  # bytes; where the quantized copy of a column begins

# Working sets
WORKING_SET_BYTES = 1 << 28  # of the columns and their Gram matrix
WORKING_SET_PAIRS = 0.2  # of the entries of the first columns: where fewer are stored, those alone are read
WORKING_SET_FACTOR = 8  # variables to begin with, over the cardinality
WORKING_SET_START = 256  # at least, where the cardinality is not given
WORKING_SET_DENSE = 0.25  # of all columns that exceed a level that is fixed: the component is not sparse
WORKING_SET_ALL = 8  # multiplications for each entry of A[W, W], to search all of W from one start more
WORKING_SET_PROBES = 8  # single variables, of which those that go with them are there too, if that is cheap
WORKING_SET_ENTRANTS = 1  # that join after a check, over the cardinality
WORKING_SET_CHECKS = 100  # of all columns for one component, after which the search goes on among all
WORKING_SET_NOISE = 64  # units of rounding of the largest variance that the Gram matrix cannot resolve
WORKING_SET_COST = 1 << 18  # multiplications of a product, below which it costs next to nothing

# Resamples
RESAMPLE_CANDIDATES = 4  # variables to begin with, over the cardinality; the supports of all the data beside
RESAMPLE_CHECKS = 20  # of all variables of a batch, after which a resample is searched among all
RESAMPLE_BATCH = 32  # resamples at a time: enough for the speed of a product of matrices
RESAMPLE_ENTRIES = 1 << 20  # of the moments and products of a batch, 8 MB, where half of X has fewer
RESAMPLE_PRODUCTS = 24  # with all variables, from which a product of matrices repays copies of the columns
RESAMPLE_CHUNK = 1 << 17  # entries of X whose moments are taken at a time, so that they stay in cache
QUANTILE_ENTRIES = 1 << 21  # loadings of all resamples that are sorted together
STABLE_FREQUENCY = 0.75  # of a stable variable, where no bound on false ones can be given

# A as a matrix, from one pass over tall data
GRAM_ORDER = 4096  # variables up to which it is; the matrix takes 128 MB then
GRAM_TALL = 16  # rows for a variable, at least: wider data are searched as well by screening or a working set
# Up to which the same read of dense data tells the statistics: what these forbid costs ten times as long.
GRAM_ONE_READ = 384
GRAM_ENTRIES = 1 << 19  # of X from which that saves time: less is in cache
GRAM_SHARE = 0.25  # of the bytes of X: what the matrix may take,
GRAM_FREE_BYTES = 1 << 26  # if it does not take less than this
GRAM_DENSE_PRODUCTS = 32  # reads of dense X that it may cost; a search makes 20 for each component,
GRAM_SPARSE_PRODUCTS = 128  # of sparse X, where there are no others to screen, a few hundred
SCATTER_COST = 30  # multiplications in BLAS that take as long as that of a pair of sparse entries, or of X v
GRAM_FEW = 1000  # up to which one row for a variable is enough: the search on A takes a tenth of the time
GRAM_BLOCKS_ORDER = (
    3072  # up to which it is of data in blocks of rows: searches form it anyway, in more passes
)
DASK_TRAFFIC = 4  # times the bytes of X that the matrices of all blocks may have, which tasks add,
DASK_MATRICES = 1 << 29  # or so many bytes: half a second of a network
GRAM_CANCELLATION = 1e4  # second moment over variance of a sparse column, of which that many digits are lost

# Work that is done by default, in multiplications
KRYLOV_WORK = 1 << 23  # of one product; beyond, a Krylov basis would take much memory
START_STEPS = 20  # power steps on the most promising variables: a start needs no more
START_WORK = 1e8  # of coordinate starts, at 20 iterations each
# A race from columns: iterations of each round, how many runs go on, or their share, and nonzeros over k
RACE, RACE_ENDS = ((1, 0.2, 1), (2, 1 / 15, 1)), 8
RACE_STARTS = 300  # columns, by the norm of their largest entries: 100 would do on words, genes and cells
DEEP_RACE = ((1, 0.5, 1.5), (1, 0.25, 1.5), (2, 0.125, 1.5), (4, 100, 1))  # from all columns, for weak
DEEP_ENDS = 20  # signals: more variables together tell more
RACE_ALL = 300  # variables up to which more runs go on in each round, since that costs next to nothing,
RACE_EXACT = 64  # and up to which they are in double precision
RACE_MOST_STEPS = 300  # of a run to its end, whose variables are swapped next
RACE_ITERATIONS = 100  # that each run may make, for there to be rounds
FIELD_ORDER = 8192  # variables between which A is formed in single precision: 256 MB
FIELD_SOME = 3072  # of more variables: as many of largest variance as others
FIELD_PROBE = 768  # the same at first, to see whether one start is enough;
FIELD_PROBE_EACH = 15  # and so many for each nonzero, where that is more
PROBES, PROBE_STARTS = 2, 100  # components for which that is asked if it is; starts of the race that tells
PROBE_DROP = 0.8  # share of the component before that another must explain, or it is asked again
NEIGHBOR_SHARE = 0.75  # of these, where variances tie, correlate most with neighbors; others are at random
NEIGHBOR_SORTS, NEIGHBOR_BITS = 2, 16  # sorts by which neighbors are found, and signs of projections in each
NEIGHBORS, NEIGHBOR_LARGEST = 64, 10  # that are in a run; correlations with them that count
NEIGHBOR_ENTRIES, NEIGHBOR_WORK = 1 << 20, 2e9  # entries of X at a time, and multiplications at most
FIELD_CANCELLATION = 100  # second moment over variance of a sparse column, whose sums need double precision
FIELD_COLUMNS = 1024  # that are converted at a time
# Times that a part of A gives way to the variables with which the ends of its race have most in common, where
# a signal may be weak; how many ends these are, and how many times k variables of each
FIELD_ROUNDS, FIELD_LEADS, FIELD_PARTNERS = 2, 50, 2
FIELD_IMAGES, FIELD_IMAGE_ENTRIES = 16, 1 << 22  # products with A at a time, and their entries
FIELD_IMAGE_WORK, FIELD_LEADS_LEAST = 1e9, 8  # multiplications of them, and of how many ends at least
FIELD_INSIDE = 0.8  # share of the best support in a part of A, from which its ends tell of no others outside
FIELD_GAIN = 2e-3  # of a component by such a race, below which it has found nothing
TALLY_TIE = 1e-6  # share of a value by which a run may be below it and count as one that reached it
FIELD_TIE = 1e-6  # swaps between values this close are ties
FIELD_AT_ONCE = 3072  # variables up to which that is not asked
# Share of the best value by which an end in a part of A may be below it; of p > FIELD_ORDER the second
FIELD_SLACK = (0.25, 0.05)
FIELD_ROUNDING = 1e-4  # the same where A is whole
FIELD_LIFTED = 4  # ends from which the search goes on among all variables
FIELD_NEAR = 0.05  # share of the best value by which it may then be below, to have its variables swapped
# Columns of A, entries of each, and of X at once, that tell whether a part of A hides supports,
PROBE_COLUMNS, PROBE_ROWS, PROBE_ENTRIES = 32, 8192, 1 << 22
# Of so many runs of entries the first, and least of these: if they tell of no column, no more are read
PROBE_FIRST, PROBE_LEAST = 4, 512
PROBE_RUN = 8  # neighbors that are read together
PROBE_PART = 256  # entries of each column at a time
PROBE_PAIRED = 4  # variables at random, of which more would have partners among these, that tell it first
PROBE_SHARE = 0.5  # by what these explain at least, over the best value,
PROBE_AGAIN = 4  # of so many columns: one may be of another planted component
# Samples from which a search starts where their largest entries may explain so large a share of a component;
# levels of these by which they are chosen, over the mean of a component; columns read at a time, and entries
EXTREME_SAMPLES, EXTREME_LEAST, EXTREME_SHARES = 8, 0.65, (0.5, 1.0)
EXTREME_COLUMNS, EXTREME_ENTRIES = 256, 1 << 25
COLUMN_ORDER = 4096  # variables at most whose columns of A are compared for where to start,
COLUMN_WORK = 2e10  # and multiplications to form A of them from data: .6 s
COLUMN_BLOCK = 256  # of which so many are compared at a time
COLUMN_STARTS = 64  # of pmd from the columns that promise most, while the work is small,
GPOWER_STARTS = 200  # and of generalized power: of words a promise tells little of the end,
PMD_ITERATIONS = 200  # of pmd from each of its own
COLUMN_LEAST = 128  # variables, up to which each of them starts pmd and scotlass anyway
COLUMN_ENDS = 2  # of those in a part of A that go on with the data
COLUMN_STARTS_LEAST = 8  # and at least so many
SAME_ENDS = 8  # starts of generalized power that end at the same best, after which no more are tried
NOISE_VARIABLES = 32  # whose 496 correlations tell it to some 5 %
NOISE_INDEPENDENT = 1.25  # deviation of correlations, over that of independent variables, that may be chance
NOISE_DEPENDENT = 1.75  # the same of data like words and cells, where one start needs few of the columns
NOISE_GROWTH = 2.0  # from one component to the next: on counts of words and of cells it is up to 1.5
WEAK_CORRELATION = 2.0  # correlation over the best of pure noise, up to which a weak signal is looked for
QUICKLY_SWAPPED_ENDS = 40  # of a race, whose variables are swapped for as long as a vector tells whom
SWAPPED_ENDS = 4  # of runs on a matrix or under a constraint, whose variables are swapped: one may miss 16 %
BRIEF_ORDER = 300  # variables up to which a brief branch and bound ends a search,
BRIEF_NODES, BRIEF_WORK = 1000, 1e7  # of so many nodes and, over (p k)^2, at most so many: some milliseconds
BRIEF_HOPELESS = 0.04  # excess of its bound over the value, as a share, that ends it, over log2 of nodes
BRIEF_TIE = 1e-12  # share of a value by which a proved one may be below the optimum (tree.c)
BRIEF_SECONDS = 0.05  # that a search must be given, to begin with that
BRIEF_FORMING = 2e7  # of forming its matrix from data
CHOICE_SWAPS = 32  # groups, or variables with signs, that are tried in the place of one; and swaps in all
CHOICE_STARTS = 32  # single variables that such a search starts from,
CHOICE_ENDS = 8  # and ends in A that go on with the data,
CHOICE_COLUMNS = 1024  # of at most so many variables, whose columns are compared
GREEDY_STARTS = 8  # variables that forward search tries to begin with, on a field
GREEDY_BEGINS = 3  # and those of them that it does, each best at some cardinality
GREEDY_RANKED = 64  # the largest cardinality at which these are compared
GREEDY_UNITS = 128  # groups, or variables with signs, that each step of a greedy search tries
CHOICE_NODES, CHOICE_ORDER = 100, 40  # nodes of the tree that ends it, and variables up to which it does
SHAPED_ORDER = 500  # variables of a relaxation under groups or signs
CCA_CHOICE_TURNS = 1000  # of values with signs of both sides, on given supports
SIGNED_RATIOS = 100  # steps to the best ratio of given signs, which mostly takes some three
SIGNED_ORDER = 12  # variables up to which values with given signs are the best ones, as in spca.h
SWAP_WORK = 1e8  # of one round of swaps,
WEAK_SWAP_WORK = 2.1e9  # and where a signal may be weak, of up to 100 nonzeros: of noise 5 % more is found
SWAPS_AT_A_TIME = 64  # of which each takes some ten or hundred microseconds
SWAP_GAP = 1e-8  # of the two largest eigenvalues on a support, that bounds of swaps divide by
SWAP_SLACK = Precision(1e-9, 1e-4)  # of such a bound: the share that rounding may hide
TIE_WORK = 1e9  # of trying first variables of equal variance
TIED_VARIABLES = 256  # first variables of equal variance that are tried
PENCIL_GREEDY_WORK = 4e10  # beyond which forward search adds several variables at a time
PENCIL_SWAP_WORK = 1e9  # of one round of swaps
PENCIL_ALL_SWAPS_WORK = 2e10  # of all swaps from one start, which may also cost twice its greedy search
PENCIL_ENTERING = 64  # variables, at least, that may enter by a swap
PENCIL_STARTS = 8  # first variables of further forward searches
PENCIL_PAIRS = 16  # pairs of variables that forward searches begin with instead
PENCIL_ENUMERATED = 3000  # supports that are all tried, which takes some milliseconds
PENCIL_START_WORK = 2e8  # of these
LEAST_SQUARES_SWAP_WORK = 2e9  # of all swaps of a least squares component
LEAST_SQUARES_ENTERING = 1000  # variables that may enter by a swap, at most: those that would add most
LEAST_SQUARES_VECTORS = (
    16  # eigenvectors that bound what a variable by itself explains, where A is not formed
)
PAIR_WORK = 2e9  # of the search for the most correlated pair of variables
CCA_PAIRS = 16  # pairs of variables from which the supports of both sides grow
CCA_STARTS = 12  # variables of Y to start from
CCA_START_WORK = 1e7  # by which their number is set
CCA_REFINED_STARTS = 3  # of these, how many are improved by swaps
LANCZOS_SHARE = 40  # eigenvectors for one, at least, for Lanczos to be quicker than LAPACK

# Iterations
ALTERNATIONS = 60  # iterations of elastic nets without a gain at which supports that change end them
ROUND_RISE = 1e-4  # of what elastic nets explain, for which others take their place
REFINEMENT_ROUNDS = 500  # of `refine=True`
CCA_ROUNDS = 100  # of the two sides in turn
LLOYD_STEPS = 300  # of one K-means
HARTIGAN_MOVES = 16  # of single points between two passes of its: 1 takes twice the time, 64 ends lower
SUBSPACE_ROUNDS = 6  # of subspace iteration
SUBSPACE_SPARE = 8  # directions that it keeps beyond those wanted
BAND_WORK = 1 << 26  # of a Cholesky factor in bands, which takes less than conjugate gradients do
GRADIENT_STEPS = 5000  # of conjugate gradients
DETERMINANT_RESIDUAL = 1e-6  # the same where a determinant is all that is wanted
GRADIENT_RESIDUAL = 1e-12  # at which they end, over the norm of the right-hand side
PRIOR_UNIT = 1e250  # of its entries, and 1 over that: squares of means, whose scale follows, stay in range
PRIOR_SHIFT = 1e-6  # least eigenvalue of a prior precision, over the mean of its diagonal
TRACE_STEPS = 80  # of Lanczos for the logarithm of a determinant
TRACE_ENTRIES = 1 << 18  # of the random vectors for it, of which there are 16 to 128

# Constraints, penalties and ties of a search
CONTINUATION = (0.25, 1.0, 4.0, 16.0, 64.0)  # penalties on what a constraint forbids, over the variance found
GREEDY_PENALTIES = (0.0, 1.0, 1e6)  # the same while greedy search chooses variables
TREE_PENALTY = 100.0  # the same in branch and bound, over the level
PENALTY_DESCENT = 0.7  # from one penalty of the semidefinite relaxation to the next
ROUGH_TOLERANCE, ROUGH_ITERATIONS = 1e-2, 100  # how well each of them is solved
NEGLIGIBLE_ENTRY = 1e-3  # of the largest of the eigenvector of the relaxation; smaller ones are dropped
TOGETHER_ORDER = 2048  # variables whose matrix a joint search of several loadings has, at first
JOINT_MEMBERS = 8  # loadings that a population of it keeps, to change them
JOINT_MOVES = 40  # between two reports
JOINT_FIRST_MOVES = 15  # of a population, which begin anew (joint.c)
JOINT_PATIENCE = 80  # moves, one after another, that raise nothing, before a population ends
JOINT_POPULATIONS = 3  # after which another begins with the best of each
JOINT_KEPT = 2  # so many of them
JOINT_COMBINED_PATIENCE = 120  # of that one
JOINT_AGREEING = 20  # populations that end at the same, which ends the search
JOINT_SAME = 1e-6  # share of what they explain
JOINT_WORK = 2.4e7  # multiplications for each variable, which end it too: half a second for a hundred
JOINT_SMALL = 100  # variables, if there are fewer
JOINT_CONSTRAINED = 0.75  # of that under a constraint, where a multiplication takes longer
JOINT_SHARE = 0.15  # of that, for one population
JOINT_BITS = 32  # of each entry of A that a joint search sees, beside the deviations of its variables
JOINT_CHECKS = 5  # searches among more variables, as long as one outside would enter
JOINT_ENTRANTS = 256  # variables that join
SMALL_ORDER = 64  # variables up to which supports that are chosen together are sought from random ones too

# Supports of several components together
ACROSS_ORDER = 1000  # variables up to which all are candidates: A of them is decomposed in some 0.1 s
ACROSS_CANDIDATES = 200  # of more variables, at first, four times; or four times the variables wanted
ACROSS_CHECKS = 20  # of the variables that are no candidates
ACROSS_BISECTIONS = 44  # of an eigenvalue between two others: 13 digits of their distance
ACROSS_WORK = 1e7  # terms of the equations for all exchanges of a support; beyond, so many may enter:
ACROSS_ENTERING = 64
ACROSS_EXCESS = Precision(1e-10, 1e-4)  # share of a proved optimum that rounding may hide
ACROSS_RANDOM = 24  # starts of few variables, with all or some components at random
ACROSS_RANDOM_MANY = 8  # the same of many: without, up to 2.3 % is lost of 230 variables, and with 3 1.5 %
ACROSS_RANDOM_WORK = 2_000_000  # their number times p^2 at most
DISJOINT_SUPPORTS = 4000  # of few variables, which are all tried for disjoint components,
DISJOINT_NODES = 5000  # as long as so many combinations do: a tenth of a second
BUDGET_SPLITS = 12  # ways to divide a total that counts the variables of groups, besides the even one
BUDGET_TRIALS = 2  # of the least nonzeros of a component, which are moved to another one

# Branch and bound
STRONG_VARIABLES = (128, 512)  # whose columns of A are computed to rule others out
STRONG_CHUNK = 4096  # of the other variables, whose largest covariances with strong ones are sorted,
STRONG_GROUPS = 2  # nonzeros for each group of the others, in which their covariances are computed,
STRONG_WORK = 3e11  # by so many multiplications: 20 seconds
STRONG_NODES = 2000  # of a tree among strong variables for a bound,
STRONG_STEPS = 20  # of truncated power, for the value that the bound need not go below
IN_TURN_NODES = 5000  # of a search for fewer nonzeros, whose bound then leaves out variables
NODE_CHILDREN = 8  # of a node; the last stands for all that remain
FRONTIER_BYTES = 1 << 28  # of nodes beyond which the newest go first
BOUND_SHARE = 0.2  # of the time, after which a search that may not end asks for bounds that need no tree
JOINT_ITERATIONS = 240  # of alternating directions for a bound on several components,
JOINT_EFFORT = 5e9  # times the cube of the variables, at most,
JOINT_ROUNDS, JOINT_FREE_ROUNDS = 8, 2  # and a third of them again, from supports that trees find
JOINT_CHECK = 10  # of them between looks at the bound that they give, and for other supports
JOINT_STEP = 1.5  # times as far as each of them would go
JOINT_ENTERING = 10  # of those
JOINT_STALL = 2e-4  # share by which four such looks, or a round, must lower it
JOINT_NODES, JOINT_TREE = 40_000, 4e8  # of the tree for each number of nonzeros, and times the square of p
CERTIFIED_ORDER = 500  # variables of a pencil whose ratio is bounded at a cardinality
CERTIFIED_NODES = 2000  # of a tree for that,
CERTIFIED_WORK = 3 * 10**10  # multiplications of a tree over groups and the like
CERTIFIED_TREES = 4  # and trees at larger ratios, where the first does not end
CERTIFIED_ITERATIONS, CERTIFIED_TOL = 300, 1e-5  # of alternating directions for one, as a share of entries
CERTIFIED_ROUNDS = 8  # relaxations of it, each at the bound of the one before
BATCH_SECONDS = 0.01  # that a batch of nodes is to take, about

# Paths and selection
GRID_VALUES = 15  # tried by default
GRID_CARDINALITY = 1000  # the largest tried by default

# Callbacks
CALLBACK_SECONDS = 0.05  # between calls of a callback: twenty times a second

# Results as text and HTML
READ_VARIABLES = 40  # rows of a table of loadings: what a screen shows, however many variables there are
READ_COMPONENTS = 20  # components of one
DENSE_WORK = 2e7  # multiplications, some milliseconds, for the shares of ordinary components beside a fit

# Pictures
CLUSTERED_VARIABLES = 3000  # of a heatmap, ordered by a clustering; beyond, that takes seconds
NAME_LETTERS = 24  # of a name in a picture or a summary, the middle of a longer one being left out
LOG_SPAN = 10**1.5  # largest over least value from which an axis is logarithmic

# The command
COMMAND_GRID_VALUES = 10_000  # of one path
COMMAND_RELAXATION_ORDER = 100  # variables up to which the semidefinite relaxation takes a moment
INFO_ENTRIES = 1 << 20  # of a matrix that are looked at together
INFO_NAMES = 5  # that are printed of many
INFO_VARIANCE_RATIO = 10  # largest over median variance from which scaling is worth a thought
ERROR_LETTERS = 200  # of what a library says of a damaged file
TABLE_ROWS, TABLE_COLUMNS = 40, 10  # of a printed table; more variables or components are listed instead
LISTED_VARIABLES = 20  # of a component on the screen, where there is no table
