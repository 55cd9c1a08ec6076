/* The codes of tags by their names: a small table, for every element of a page asks it. */
#include "vocabulary.h"
#include <string.h>

enum { LONGEST_TAG = 16, SLOTS = 1024 };

/* The first and the last letters of a name, which may be the same ones, and how many it has. */
typedef struct {
    uint64_t first, last;
    int32_t size, code;
} Slot;

static Slot slots[SLOTS];

/* Names of other letters, and longer ones, are not known. */
static int name_of(PyObject *tag, Slot *name) {
    if (!PyUnicode_Check(tag) || !PyUnicode_IS_ASCII(tag)) {
        return -1;
    }
    const uint8_t *letters = PyUnicode_1BYTE_DATA(tag);
    Py_ssize_t size = PyUnicode_GET_LENGTH(tag);
    if (size < 1 || size > LONGEST_TAG) {
        return -1;
    }
    name->size = (int32_t)size;
    if (size >= 8) {
        name->first = eight_bytes(letters);
        name->last = eight_bytes(letters + size - 8);
    } else if (size >= 4) {
        name->first = four_bytes(letters);
        name->last = four_bytes(letters + size - 4);
    } else {
        name->first = letters[0];
        name->last = letters[size / 2] | (uint64_t)letters[size - 1] << 8;
    }
    return 0;
}

static int is_same(const Slot *one, const Slot *other) {
    return one->first == other->first && one->last == other->last && one->size == other->size;
}

/* Where a name stands, or the free place where it would. */
static Slot *slot_of(const Slot *name) {
    uint64_t hash = (name->first ^ name->last * 31) * 0x9e3779b97f4a7c15u;
    size_t place = hash >> 54;
    while (slots[place].first != 0 && !is_same(slots + place, name)) {
        place = (place + 1) % SLOTS;
    }
    return slots + place;
}

int code_of_tag(PyObject *tag) {
    Slot name;
    if (name_of(tag, &name) < 0) {
        return -1;
    }
    const Slot *slot = slot_of(&name);
    return slot->first ? slot->code : -1;
}

/* Of the names among the keys; there are fewer than codes, and so than slots. */
int tags_open(PyObject *codes) {
    PyObject *tag, *value;
    Py_ssize_t place = 0;
    memset(slots, 0, sizeof(slots));
    while (PyDict_Next(codes, &place, &tag, &value)) {
        long code = PyLong_AsLong(value);
        if (code < 0 || code >= config.tags) {
            PyErr_SetString(PyExc_ValueError, "the code of no tag");
            return -1;
        }
        Slot name;
        if (!PyUnicode_Check(tag)) {
            continue;
        }
        if (name_of(tag, &name) < 0 || PyDict_GET_SIZE(codes) > 2 * MAX_CODES) {
            PyErr_SetString(PyExc_ValueError, "a longer name, or more of them, than there is room for");
            return -1;
        }
        name.code = (int)code;
        *slot_of(&name) = name;
    }
    return 0;
}
