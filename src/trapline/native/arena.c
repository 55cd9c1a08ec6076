/* Arena: a block of memory that is reused from one page to the next.
 *
 * A page needs some hundred kilobytes while it is read. Freed each time, the system would clear them
 * before every reuse. */
#include "native.h"

/* Larger blocks are freed: few pages need them. Under the address sanitizer nothing is kept: it could not
 * see an access beyond the end of a smaller block. */
#if defined(__SANITIZE_ADDRESS__)
static const size_t MOST_KEPT = 0;
#else
static const size_t MOST_KEPT = (size_t)1 << 22;
#endif

static Arena kept;

int arena_acquire(Arena *arena, size_t bytes) {
    if (kept.memory != NULL && kept.bytes >= bytes) {
        *arena = kept;
        kept = (Arena){NULL, 0};
        return 0;
    }
    /* The next page may be larger. */
    bytes += bytes <= MOST_KEPT / 2 ? bytes / 2 : 0;
    arena->memory = PyMem_Malloc(bytes);
    arena->bytes = bytes;
    if (arena->memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void arena_release(Arena *arena) {
    Arena spare = *arena;
    if (arena->memory != NULL && arena->bytes <= MOST_KEPT && arena->bytes > kept.bytes) {
        spare = kept;
        kept = *arena;
    }
    PyMem_Free(spare.memory);
    *arena = (Arena){NULL, 0};
}
