/* checks.h - the one list of the checks, each of which is a target of the fuzzer too. */
#ifndef SPCA_TESTS_CHECKS_H
#define SPCA_TESTS_CHECKS_H
#define CHECKS(ROW)                                                                                \
    ROW(select, 4)                                                                                 \
    ROW(l1_threshold, 4)                                                                           \
    ROW(levels, 4)                                                                                 \
    ROW(operator, 4)                                                                               \
    ROW(stops, 1)                                                                                  \
    ROW(early, 1)                                                                                  \
    ROW(rows, 1)                                                                                   \
    ROW(corners, 1)                                                                                \
    ROW(lengths, 1)
#define DECLARE(name, weight) void spca_scheck_##name(trial_t *), spca_dcheck_##name(trial_t *);
CHECKS(DECLARE)
#endif
