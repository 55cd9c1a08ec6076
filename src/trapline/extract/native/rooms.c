/* Memory that one page after another is read in.
 *
 * A page needs some hundred kilobytes for as long as it is read. Given back to the system each time,
 * they would come back as pages that must be cleared first. */
#include "native.h"

/* Larger rooms are given back: few pages need them. Where every access is checked nothing is kept, for
 * what follows the end of a smaller room would be memory like any other. */
#if defined(__SANITIZE_ADDRESS__)
static const size_t MOST_KEPT = 0;
#else
static const size_t MOST_KEPT = (size_t)1 << 22;
#endif

static Room kept;

int room_take(Room *room, size_t bytes) {
    if (kept.memory != NULL && kept.bytes >= bytes) {
        *room = kept;
        kept = (Room){NULL, 0};
        return 0;
    }
    /* The next page may be larger. */
    bytes += bytes <= MOST_KEPT / 2 ? bytes / 2 : 0;
    room->memory = PyMem_Malloc(bytes);
    room->bytes = bytes;
    if (room->memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void room_give(Room *room) {
    Room spare = *room;
    if (room->memory != NULL && room->bytes <= MOST_KEPT && room->bytes > kept.bytes) {
        spare = kept;
        kept = *room;
    }
    PyMem_Free(spare.memory);
    *room = (Room){NULL, 0};
}
