"""Every limit that is a matter of policy: how much at a time, how large, how long; each with its reason."""

# Entries, rows and columns worked on at a time: large enough to be fast, small enough for a cache or for
# Ctrl-C
CHUNK = 1 << 22  # entries of X that are looked at or copied at a time: 32 MB in double precision
COPIED_ENTRIES = 1 << 21  # of rows that are centred into a copy
HELD_OUT_ENTRIES = 1 << 20  # of rows left out of a fold
ESTIMATOR_ENTRIES = 1 << 19  # of rows whose density an estimator computes
CLUSTERING_ENTRIES = 1 << 20  # of the columns whose distances are added
TILE_ROWS = 512  # rows and columns of a tile of the kernel matrix
BLOCK_BYTES = 1 << 27  # of X, read at a time as a block of rows
COLUMNS_AT_A_TIME = 32  # columns of A that cost about as much as one, which is some products
DASK_ON_CLIENT = 100  # results that are added by the client rather than by tasks
DASK_WIDE = 10_000_000  # numbers of a result from which fewer are added by the client
DASK_FAN_IN = 16  # results that one task adds
DASK_SMALL = 1 << 16  # bytes of arguments that go with each task

# How large a matrix may be formed or decomposed as a whole
ALL_VECTORS_ORDER = 256  # LAPACK computes all eigenvectors in milliseconds
SUBMATRIX_ORDER = 1024  # of a submatrix that is formed and decomposed in a tenth of a second: Ctrl-C waits
SUBMATRIX_ENTRIES = 1 << 24  # of the columns of X gathered for it
SUBMATRIX_WORK = 4e9  # multiplications of their product
CHOLESKY_ORDER = 1500  # the check that a covariance is semidefinite takes a tenth of a second
KERNEL_LAPACK_ORDER = 500  # of a kernel matrix; beyond, block Lanczos is faster
UNINTERRUPTED_ORDER = 500  # of a decomposition that may keep Ctrl-C waiting
SPECTRAL_ORDER = 1000  # variables up to which a sparse precision is decomposed
CALLABLE_ORDER = (
    256  # variables of a callable whose entries are obtained by products: no more than one search makes
)
SAMPLE_ORDER = 1000  # samples up to which FF' is formed
WIDE_SAMPLES = 2000  # samples of wide data, up to which ordinary components come from the products of rows
WORKING_SET_VARIABLES = 256  # variables up to which all are in the working set of the elastic net
BOUND_ORDER = 2000  # variables up to which a bound decomposes the whole matrix
BOUND_ENTRIES = 1 << 26  # and entries of data, which are copied for that
BOUND_ROWS = 128  # rows of A that a bound of a larger matrix forms
BOUND_VECTORS = 24  # Lanczos vectors of it
RELAXATION_ORDER = 2000  # of the semidefinite relaxation; six matrices of that order take 192 MB
REDUCED_ORDER = 200  # up to which looking for variables to leave out of the relaxation does not pay
EXACT_ORDER = 3000  # of the matrix that branch and bound searches, which is held four times over
PPCA_ORDER = 3000  # of the matrix that is decomposed whole for probabilistic components
BACKWARD_ORDER = 2000  # variables that a backward search starts from
PENCIL_BACKWARD_ORDER = 1000  # the same of two matrices
USUAL_BACKWARD_ORDER = 150  # variables up to which a backward search costs little
PENCIL_SUPPORT = 4000  # variables of a support whose pencil is decomposed
GRADIENT_SUPPORT = 100  # variables that a gradient search selects, at one decomposition each
POLAR_ENTRIES = 1 << 16  # up to which a polar factor is found by an SVD
JOINING_VARIABLES = 32  # of each component that join the working set of the elastic net at a time
GPOWER_ORDER = 64  # up to which all eigenvectors of A are computed for a start
KERNEL_BYTES = 2**31  # of the largest kernel matrix that is held, by default
BANDWIDTH_ROWS = 1000  # whose distances give the default bandwidth

# Data in blocks of rows: which columns of A are fetched and kept
KEPT_BYTES = 1 << 30  # of columns of A
BLOCKS_SUBMATRIX_ORDER = 1 << 14  # up to which a submatrix of A is formed: a pass costs more
FETCH_ALL_ORDER = 256  # variables up to which all of A is fetched at once
LIKELY_BYTES = 1 << 23  # that a block may return for columns which are only likely to be used
FETCHED_NONZEROS = 512  # of vectors whose columns may be worth fetching
PASS_COLUMNS = 16.0  # columns of A that cost as much as one product, where there are many
DOUBLE_ORDER = 256  # variables up to which submatrices of float32 data are summed in double precision

# Screening
SCREENED_ROWS = 64  # below this the bounds themselves cost as much as the columns
SCREENED_ENTRIES = 1 << 19  # below this X is in cache
SCREENING_SHARE = 0.2  # of the bytes of X: what a whole call may take
SCREENING_COLUMN_BYTES = 180  # what a whole call takes for each column besides the quantized copy
SCREENING_FREE_BYTES = 1 << 26  # bytes of X up to which that does not matter

# Work that is done by default, in multiplications
KRYLOV_WORK = 1 << 23  # of one product; beyond, a Krylov basis would take much memory
START_WORK = 1e8  # of coordinate starts, at 20 iterations each
SWAP_WORK = 1e8  # of one round of swaps
TIE_WORK = 1e9  # of trying first variables of equal variance
TIED_VARIABLES = 256  # first variables of equal variance that are tried
PENCIL_TIED_VARIABLES = 64  # first variables of equal ratio that are tried
PENCIL_GREEDY_WORK = 4e10  # beyond which "auto" prefers the flow
PENCIL_SWAP_WORK = 1e9  # of one round of swaps
PENCIL_ALL_SWAPS_WORK = 2e10  # of all swaps from one start, which may also cost twice its greedy search
PENCIL_SWAP_ROUNDS = 50  # rounds of swaps
PENCIL_STARTS = 8  # first variables of further forward searches
PENCIL_START_WORK = 2e8  # of these
PAIR_WORK = 2e9  # of the search for the most correlated pair of variables
CCA_STARTS = 12  # variables of Y to start from
CCA_START_WORK = 1e7  # by which their number is set
CCA_REFINED_STARTS = 3  # of these, how many are improved by swaps
LANCZOS_SHARE = 40  # eigenvectors for one, at least, for Lanczos to be quicker than LAPACK

# Iterations
REFINEMENT_ROUNDS = 500  # of `refine=True`
QUOTIENT_ROUNDS = 5  # of power iteration and re-fitting under generalized deflation
CCA_ROUNDS = 100  # of the two sides in turn
LLOYD_STEPS = 300  # of one K-means
LANCZOS_PASSES = 200  # of block Lanczos
SUBSPACE_ROUNDS = 6  # of subspace iteration
SUBSPACE_SPARE = 8  # directions that it keeps beyond those wanted
GRADIENT_STEPS = 5000  # of conjugate gradients
TRACE_STEPS = 80  # of Lanczos for the logarithm of a determinant
TRACE_ENTRIES = 1 << 18  # of the random vectors for it, of which there are 16 to 128

# Constraints, penalties and ties of a search
CONTINUATION = (0.25, 1.0, 4.0, 16.0, 64.0)  # penalties on what a constraint forbids, over the variance found
GREEDY_PENALTIES = (0.0, 1.0, 1e6)  # the same while greedy search chooses variables
TREE_PENALTY = 100.0  # the same in branch and bound, over the level
TIE_TOLERANCE = 1e-12  # relative; values this close are equal, and the lower index is preferred
PENALTY_DESCENT = 0.7  # from one penalty of the semidefinite relaxation to the next
ROUGH_TOLERANCE, ROUGH_ITERATIONS = 1e-2, 100  # how well each of them is solved
NEGLIGIBLE_ENTRY = 1e-3  # of the largest of the eigenvector of the relaxation; smaller ones are dropped
ORTHOGONAL_TOLERANCE = 1e-13  # largest entry of V'V - I of loadings that are orthogonal as they are
ORTHOGONAL_PROJECTIONS = 100  # alternating projections to reach that

# Branch and bound
STRONG_VARIABLES = (128, 512)  # whose columns of A are computed to rule others out
NODE_CHILDREN = 8  # of a node; the last stands for all that remain
FRONTIER_BYTES = 1 << 28  # of nodes beyond which the newest go first
BATCH_SECONDS = 0.01  # that a batch of nodes is to take, about

# Paths and selection
GRID_VALUES = 15  # tried by default
GRID_CARDINALITY = 1000  # the largest tried by default

# Callbacks
CALLBACK_SECONDS = 0.05  # between calls of a callback: twenty times a second
