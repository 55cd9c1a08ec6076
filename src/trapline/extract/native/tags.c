/* The codes of tags by their names: a small table, for every element of a page asks it. */
#include "words.h"
#include <string.h>

enum { LONGEST_TAG = 16, SLOTS = 1024 };

/* A name is two numbers of eight bytes each, filled up with zeros. */
typedef struct {
    uint64_t first, second;
    int code;
} Slot;

static Slot slots[SLOTS];

/* Names of other letters, and longer ones, are not known. */
static int name_of(PyObject *tag, Slot *name) {
    uint8_t bytes[LONGEST_TAG] = {0};
    if (!PyUnicode_Check(tag) || !PyUnicode_IS_ASCII(tag)) {
        return -1;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(tag);
    if (size < 1 || size > LONGEST_TAG) {
        return -1;
    }
    memcpy(bytes, PyUnicode_1BYTE_DATA(tag), size);
    name->first = eight_bytes(bytes);
    name->second = eight_bytes(bytes + 8);
    return 0;
}

/* Where a name stands, or the free place where it would. */
static Slot *slot_of(const Slot *name) {
    uint64_t hash = (name->first ^ name->second * 31) * 0x9e3779b97f4a7c15u;
    size_t place = hash >> 54;
    while (slots[place].first != 0 &&
           (slots[place].first != name->first || slots[place].second != name->second)) {
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
        if (code < 0 || code >= design.tags) {
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
