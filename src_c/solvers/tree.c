/* tree.c - branch and bound of a matrix in memory, with a limit of nodes (branch_and_bound.c).
 *
 * Nodes wait in a heap.  The largest bound comes first; of equal ones, the newest.  The first node
 * is bounded before it is divided: it gets one child, all that its bounds leave. */
#include "tree.h"
#include "real.h"

/* CHILDREN of a node, at most; the last one stands for all that remains. */
enum { CHILDREN = 8 };
enum { CANDIDATE = 1, IN = 2 };
static const double RISE = 1e-12; /* a value is better if it exceeds another by this share */

void spca_tree_room(spca_tree *tree, room_t *room)
{
    spca_int p = tree->p, k = tree->k, nodes = tree->most * (CHILDREN - 1) + CHILDREN + 1;
    tree->N = TAKE(room, p * p, double);
    tree->diagonal = TAKE(room, p, double);
    tree->index = TAKE(room, k, spca_int);
    tree->heap = TAKE(room, nodes, spca_node);
    tree->rows = TAKE(room, nodes, spca_int);
    tree->pool = TAKE(room, nodes * p, uint8_t);
    tree->work = TAKE(room, spca_branch_work(p, k), double);
    tree->eigen = TAKE(room, 3 * k * k + 28 * k, double);
    tree->iwork = TAKE(room, p + k, spca_int);
    tree->blas_work = TAKE(room, 12 * k, blas_int);
}

/* Sets the diagonal of N = level I - A so that N is definite on every support that does not beat
 * the value, but for rounding.  The margin is more than the rounding that branch_and_bound.c argues
 * for. */
static void set_level(spca_tree *tree)
{
    spca_int p = tree->p;
    double value = tree->value, size = fabs(value), order = (double)tree->k + 4, margin;
    for (spca_int j = 0; j < p; j++) size = fmax(size, fabs(value - tree->diagonal[j]));
    margin = 16 * order * order * DBL_EPSILON * size;
    for (spca_int j = 0; j < p; j++) tree->N[j * (p + 1)] = value - tree->diagonal[j] + margin;
    tree->level = value + 2 * margin;
}

void spca_tree_begin(spca_tree *tree)
{
    spca_int nodes = tree->most * (CHILDREN - 1) + CHILDREN + 1;
    for (spca_int i = 1; i < nodes; i++) tree->rows[i - 1] = nodes - i;
    for (spca_int j = 0; j < tree->p; j++) tree->pool[j] = CANDIDATE;
    tree->heap[0] = (spca_node){HUGE_VAL, 0, 0};
    tree->unused = nodes - 1;
    tree->waiting = 1;
    tree->turn = tree->divided = 0;
    tree->value = -HUGE_VAL;
}

void spca_tree_offer(spca_tree *tree, const spca_int *index, double value)
{
    if (!(value > tree->value + (tree->value > -HUGE_VAL ? RISE * fabs(tree->value) : 0))) return;
    for (spca_int a = 0; a < tree->k; a++) tree->index[a] = index[a];
    tree->value = value;
    set_level(tree);
}

/* Whether node a is divided before b. */
static int comes_first(spca_node a, spca_node b)
{
    return a.bound > b.bound || (a.bound == b.bound && a.turn > b.turn);
}

/* Adds a node to the heap. */
static void push(spca_tree *tree, spca_node node)
{
    spca_int at = tree->waiting++;
    for (; at > 0 && comes_first(node, tree->heap[(at - 1) / 2]); at = (at - 1) / 2)
        tree->heap[at] = tree->heap[(at - 1) / 2];
    tree->heap[at] = node;
}

/* Takes the first node from the heap. */
static spca_node pop(spca_tree *tree)
{
    spca_node first = tree->heap[0], last = tree->heap[--tree->waiting];
    spca_int at = 0, next;
    while ((next = 2 * at + 1) < tree->waiting) {
        if (next + 1 < tree->waiting && comes_first(tree->heap[next + 1], tree->heap[next])) next++;
        if (!comes_first(tree->heap[next], last)) break;
        tree->heap[at] = tree->heap[next];
        at = next;
    }
    tree->heap[at] = last;
    return first;
}

/* Whether some node that waits may have a better support. */
static int is_open(const spca_tree *tree)
{
    return tree->waiting > 0 && tree->heap[0].bound > tree->level;
}

double spca_tree_upper(const spca_tree *tree)
{
    return is_open(tree) ? tree->heap[0].bound : tree->level;
}

/* Offers the support of a node that has only one.  Where it has fewer than k variables, the first
 * others are added, which lowers no eigenvalue. */
static spca_status try_support(spca_tree *tree, const uint8_t *row)
{
    spca_int p = tree->p, k = tree->k, count = 0, found = 0, *index = tree->iwork;
    double *G = tree->eigen, *U = G + k * k, *values = U + k * k, *work = values + k;
    spca_status status;
    for (spca_int j = 0; j < p; j++) count += row[j] == IN;
    for (spca_int j = 0; j < p && found < k; j++) {
        int more = row[j] != IN && count < k;
        count += more;
        if (row[j] == IN || more) index[found++] = j;
    }
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a < k; a++)
            G[a + b * k] = a == b ? tree->diagonal[index[a]] : -tree->N[index[a] * p + index[b]];
    status = spca_eigen(k, G, work, tree->blas_work, values, U);
    if (status >= 0) spca_tree_offer(tree, index, values[0]);
    return status;
}

/* A child that is a single support is offered, others wait.  Where a bound is sure to exceed the
 * level by more than `hope`, it is of no use, and no sharper one is sought. */
spca_status spca_tree_divide(spca_tree *tree, spca_int count, spca_stop stop, void *ctx)
{
    for (count = min_int(count, tree->most - tree->divided); count > 0 && is_open(tree); count--) {
        spca_int empty[CHILDREN], children, most = tree->divided == 0 && tree->k > 1 ? 1 : CHILDREN;
        double excess[CHILDREN], level = tree->level;
        double hope = fmax(tree->hopeless * fabs(tree->value) - (level - tree->value), 0);
        spca_node node = tree->heap[0];
        spca_status status;
        for (int c = 0; c < CHILDREN; c++) empty[c] = tree->rows[tree->unused - 1 - c];
        status = spca_branch(tree->p, tree->k, tree->N, hope, 1, &node.slot, most, empty, stop, ctx,
                             tree->pool, tree->work, tree->iwork, &children, excess);
        if (status < 0) return status;
        (void)pop(tree);
        tree->divided++;
        tree->unused -= children;
        tree->rows[tree->unused++] = node.slot;
        for (spca_int c = 0; c < children; c++) {
            if (excess[c] >= 0) {
                push(tree,
                     (spca_node){fmin(node.bound, level + excess[c]), ++tree->turn, empty[c]});
                continue;
            }
            status = try_support(tree, tree->pool + empty[c] * tree->p);
            if (status < 0) return status;
            tree->rows[tree->unused++] = empty[c];
        }
    }
    return SPCA_OK;
}
