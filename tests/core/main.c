/* main.c - runs the checks: in turn, by many threads at once, or on the inputs of the fuzzers. */
#include "core.h"
#include "checks.h"
#include "clones.h"
#include <inttypes.h>
#include <pthread.h>

typedef struct {
    const char *name;
    check_t *check[2]; /* in single precision, or NULL, and in double */
    unsigned percent;  /* of the trials asked for, at least one */
} row_t;

#define ROW(name, percent) {#name, {spca_scheck_##name, spca_dcheck_##name}, percent},
#define DOUBLE_ROW(name, percent) {#name, {NULL, spca_dcheck_##name}, percent},
static const row_t TABLE[] = {CHECKS(ROW) DOUBLE_CHECKS(DOUBLE_ROW)};
enum { SKIPPED = 77 }; /* for Meson: the processor lacks the clone */
enum { ROWS_OF_TABLE = sizeof TABLE / sizeof *TABLE, THREADS = 8 };

static trial_t start(const row_t *row, uint64_t seed, int poison)
{
    trial_t t = {.name = row->name,
                 .seed = seed,
                 .state = seed,
                 .poison = poison,
                 .digest = 14695981039346656037U};
    return t;
}

/* Twice, with different scratch: what it holds at first must not matter. */
static void in_turn(const row_t *row, int precision, uint64_t seed, int raw)
{
    trial_t t = start(row, seed, raw ? -1 : 0xff), u;
    row->check[precision](&t);
    trial_end(&t);
    if (!raw) {
        u = start(row, seed, seed % 2 ? 0 : 0x3c);
        u.inputs = t.inputs;
        u.shared = 1;
        row->check[precision](&u);
        trial_end(&u);
        if (u.digest != t.digest) failed(&t, __FILE__, __LINE__, "the result depends on scratch");
    }
    inputs_free(&t);
}

typedef struct {
    const trial_t *first; /* rows x 2, run before */
    pthread_t thread;
    int offset;
} runner_t;

static void *run(void *arg)
{
    const runner_t *r = arg;
    for (int i = 0; i < 2 * ROWS_OF_TABLE; i++) {
        int place = (i + r->offset) % (2 * ROWS_OF_TABLE);
        const row_t *row = TABLE + place / 2;
        trial_t t = start(row, r->first[place].seed, 0xff);
        if (row->percent <= RARE || !row->check[place % 2]) continue;
        t.inputs = r->first[place].inputs;
        t.shared = 1;
        row->check[place % 2](&t);
        trial_end(&t);
        if (t.digest != r->first[place].digest) failed(&t, __FILE__, __LINE__, "threads differ");
    }
    return NULL;
}

/* All checks but the large ones by many threads at once on the same inputs: the bits of the trials
 * made before. */
static void by_threads(uint64_t seed)
{
    trial_t first[2 * ROWS_OF_TABLE];
    runner_t runners[THREADS];
    for (int i = 0; i < 2 * ROWS_OF_TABLE; i++) {
        first[i] = start(TABLE + i / 2, seed, 0xff);
        if (TABLE[i / 2].percent <= RARE || !TABLE[i / 2].check[i % 2]) continue;
        TABLE[i / 2].check[i % 2](first + i);
        trial_end(first + i);
    }
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (runner_t){.first = first, .offset = i % 4}; /* two and two the same */
        if (pthread_create(&runners[i].thread, NULL, run, runners + i)) abort();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(runners[i].thread, NULL);
    for (int i = 0; i < 2 * ROWS_OF_TABLE; i++) inputs_free(first + i);
}

static int replay(const char *name, const char *path)
{
    static uint8_t bytes[1 << 16];
    size_t size;
    FILE *file = fopen(path, "rb");
    if (!file) return 1;
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (int i = 0; i < ROWS_OF_TABLE; i++) {
        trial_t t = start(TABLE + i, 0, 0xff);
        if (strcmp(TABLE[i].name, name) != 0 || size == 0) continue;
        t.bytes = bytes + 1;
        t.left = size - 1;
        TABLE[i].check[TABLE[i].check[0] ? bytes[0] & 1 : 1](&t);
        trial_end(&t);
        inputs_free(&t);
        return 0;
    }
    return 1;
}

static int usage(void)
{
    fprintf(stderr, "harness turns TRIALS [CHECK [SEED]] | raw TRIALS | threads TRIALS | replay "
                    "CHECK FILE...\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *clone = getenv("SPCACORE_CLONE");
    spca_sreference_blas();
    spca_dreference_blas();
    if (spca_choose_clone(clone) != 1) {
        fprintf(stderr, "no clone %s here\n", clone);
        return SKIPPED;
    }
    spca_pool_set_limit(4);
    if (argc < 3) return usage();
    if (strcmp(argv[1], "replay") == 0) {
        for (int i = 3; i < argc; i++)
            if (replay(argv[2], argv[i])) return usage();
        return 0;
    }
    uint64_t trials = strtoull(argv[2], NULL, 10),
             seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 0, made = 0;
    int raw = strcmp(argv[1], "raw") == 0;
    if (strcmp(argv[1], "threads") == 0) {
        for (uint64_t i = 0; i < trials; i++) by_threads(i);
        return 0;
    }
    if (!raw && strcmp(argv[1], "turns") != 0) return usage();
    for (int i = 0; i < ROWS_OF_TABLE; i++) {
        if (argc > 3 && strcmp(argv[3], TABLE[i].name) != 0) continue;
        uint64_t some = (trials * TABLE[i].percent + 99) / 100;
        for (uint64_t a = 0; a < some; a++)
            for (int precision = !TABLE[i].check[0]; precision < 2; precision++)
                in_turn(TABLE + i, precision, argc > 4 ? seed : a, raw);
        printf("%s: %" PRIu64 " trials\n", TABLE[i].name, some * (TABLE[i].check[0] ? 2 : 1));
        made += some;
    }
    spca_pool_end();
    return made ? 0 : usage(); /* no such check */
}
