/* checks.h - the one list of the checks: of so many percent of the trials. Each is a target of the
 * fuzzer too, but for those that are RARE, being large.  Those of DOUBLE_CHECKS are of what is
 * compiled for double alone. */
#ifndef SPCA_TESTS_CHECKS_H
#define SPCA_TESTS_CHECKS_H
#define CHECKS(ROW)                                                                                \
    ROW(select, 400)                                                                               \
    ROW(l1_threshold, 400)                                                                         \
    ROW(lone_entries, 400)                                                                         \
    ROW(levels, 400)                                                                               \
    ROW(matrix_product, 400)                                                                       \
    ROW(scores, 200)                                                                               \
    ROW(operator, 400)                                                                             \
    ROW(gram, 40)                                                                                  \
    ROW(stops, 100)                                                                                \
    ROW(screen, 700)                                                                               \
    ROW(screened, 400)                                                                             \
    ROW(reference_bounds, 700)                                                                     \
    ROW(solvers, 600)                                                                              \
    ROW(screened_solvers, 400)                                                                     \
    ROW(stopped_solvers, 100)                                                                      \
    ROW(at_rest, 600)                                                                              \
    ROW(queries, 100)                                                                              \
    ROW(orthogonal_threshold, 400)                                                                 \
    ROW(only_direction, 200)                                                                       \
    ROW(rotation, 400)                                                                             \
    ROW(rest, 200)                                                                                 \
    ROW(ascent, 6)                                                                                 \
    ROW(few_reads, 6)                                                                              \
    ROW(stopped_rotation, 100)                                                                     \
    ROW(tiles, 100)                                                                                \
    ROW(statistics, 400)                                                                           \
    ROW(missing, 400)                                                                              \
    ROW(compressed_statistics, 600)                                                                \
    ROW(symmetry, 100)                                                                             \
    ROW(deflation, 200)                                                                            \
    ROW(no_variance, 100)                                                                          \
    ROW(data_deflation, 200)                                                                       \
    ROW(distances, 100)                                                                            \
    ROW(direct, 400)                                                                               \
    ROW(refit, 400)                                                                                \
    ROW(orthogonal_parts, 400)                                                                     \
    ROW(principal_submatrix, 100)                                                                  \
    ROW(tridiagonal, 100)                                                                          \
    ROW(greedy, 100)                                                                               \
    ROW(race, 50)                                                                                  \
    ROW(joint, 100)                                                                                \
    ROW(early, 60)                                                                                 \
    ROW(rows, 3)                                                                                   \
    ROW(corners, 1)                                                                                \
    ROW(lengths, 1)                                                                                \
    ROW(threads, 400)
#define DOUBLE_CHECKS(ROW)                                                                         \
    ROW(branch, 600)                                                                               \
    ROW(tree, 400)                                                                                 \
    ROW(singular, 100)                                                                             \
    ROW(elastic_net, 400)                                                                          \
    ROW(unit_net, 400)                                                                             \
    ROW(prior_support, 400)                                                                        \
    ROW(units, 400)                                                                                \
    ROW(unit_steps, 400)                                                                           \
    ROW(unit_ascent, 400)                                                                          \
    ROW(signed_vector, 400)                                                                        \
    ROW(fingerprint, 200)                                                                          \
    ROW(lines, 200)                                                                                \
    ROW(screen_bounds, 200)                                                                        \
    ROW(best_pairs, 400)                                                                           \
    ROW(whole, 200)                                                                                \
    ROW(guesses, 400)                                                                              \
    ROW(dspca, 60)                                                                                 \
    ROW(shaped, 200)                                                                               \
    ROW(tight_bounds, 400)                                                                         \
    ROW(early_searches, 60)                                                                        \
    ROW(search_corners, 1)                                                                         \
    ROW(pool, 40)
enum { RARE = 5 }; /* percent */
#define DECLARE(name, percent) void spca_scheck_##name(trial_t *), spca_dcheck_##name(trial_t *);
CHECKS(DECLARE)
#define DECLARE_DOUBLE(name, percent) void spca_dcheck_##name(trial_t *);
DOUBLE_CHECKS(DECLARE_DOUBLE)
#endif
