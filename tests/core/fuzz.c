/* fuzz.c - a check as the target of libFuzzer: CHECK=select in the environment and so on.  The
 * first byte is the precision, the others are what the check draws. */
#include "core.h"
#include "checks.h"

typedef struct {
    const char *name;
    check_t *check[2];
} row_t;

#define ROW(name, percent) {#name, {spca_scheck_##name, spca_dcheck_##name}},
#define DOUBLE_ROW(name, percent) {#name, {NULL, spca_dcheck_##name}},
static const row_t TABLE[] = {CHECKS(ROW) DOUBLE_CHECKS(DOUBLE_ROW)};
static const row_t *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("CHECK");
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (name && strcmp(TABLE[i].name, name) == 0) target = TABLE + i;
    if (!target) {
        fprintf(stderr, "CHECK must name a check of checks.h\n");
        exit(2);
    }
    spca_sreference_blas();
    spca_dreference_blas();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trial_t t = {.name = target->name, .poison = 0xff};
    if (size == 0) return 0;
    t.bytes = data + 1;
    t.left = size - 1;
    target->check[target->check[0] ? data[0] & 1 : 1](&t);
    trial_end(&t);
    inputs_free(&t);
    return 0;
}
