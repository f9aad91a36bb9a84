/* fuzz.c - one check as a target of libFuzzer: -DTARGET=select and so on.  The first byte is the
 * precision, the others are what the check draws. */
#include "core.h"
#include "checks.h"

#define JOIN(a, b) a##b
#define CHECK_OF(precision, name) JOIN(precision, name)
#define TEXT(name) #name
#define NAME_OF(name) TEXT(name)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    spca_sreference_blas();
    spca_dreference_blas();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trial_t t = {.name = NAME_OF(TARGET), .poison = 0xff};
    if (size == 0) return 0;
    t.bytes = data + 1;
    t.left = size - 1;
    (data[0] & 1 ? CHECK_OF(spca_dcheck_, TARGET) : CHECK_OF(spca_scheck_, TARGET))(&t);
    trial_end(&t);
    inputs_free(&t);
    return 0;
}
