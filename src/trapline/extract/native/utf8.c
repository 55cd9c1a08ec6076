/* Bytes to text: what Python's own decoder gives, sooner for a page of HTML.
 *
 * Pages are letters of ASCII with a few others here and there: a first pass counts them and learns how
 * wide the widest is, a second one writes them where they stay.
 */
#include "native.h"
#include <string.h>

enum { AT_ONCE = 64, ASCII = 0x80 };

/* How many bytes there are before the first that is beyond ASCII. */
static inline Py_ssize_t ascii_run(const uint8_t *bytes, Py_ssize_t size) {
    static const uint64_t BEYOND = 0x8080808080808080u;
    Py_ssize_t at = 0;
    for (; size - at >= AT_ONCE; at += AT_ONCE) {
        uint64_t words[AT_ONCE / sizeof(uint64_t)], all = 0;
        memcpy(words, bytes + at, AT_ONCE);
        for (size_t i = 0; i < AT_ONCE / sizeof(uint64_t); i++) {
            all |= words[i];
        }
        if (all & BEYOND) {
            break;
        }
    }
    uint64_t word;
    for (; size - at >= (Py_ssize_t)sizeof(word); at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        if (word & BEYOND) {
            break;
        }
    }
    while (at < size && bytes[at] < ASCII) {
        at++;
    }
    return at;
}

/* How many bytes a letter beyond ASCII has by its first one; 0 for none that begins one. */
static inline int length_of(uint8_t first) {
    return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* The letter beyond ASCII at a place, and how many bytes it has; 0 bytes if there is none. */
static inline Py_UCS4 letter_at(const uint8_t *bytes, Py_ssize_t left, int *length) {
    static const Py_UCS4 LEAST[] = {0, 0, ASCII, 0x800, 0x10000};
    int size = length_of(bytes[0]);
    *length = 0;
    if (size == 0 || size > left) {
        return 0;
    }
    Py_UCS4 letter = bytes[0] & (0xff >> (size + 1));
    for (int i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        letter = letter << 6 | (bytes[i] & 0x3f);
    }
    /* Written longer than need be, half of a pair, or beyond what there is. */
    if (letter < LEAST[size] || (letter >= 0xd800 && letter < 0xe000) || letter > 0x10ffff) {
        return 0;
    }
    *length = size;
    return letter;
}

/* How many letters there are, or -1 if the bytes are not UTF-8; `widest` is not below any of them. */
static Py_ssize_t count_letters(const uint8_t *bytes, Py_ssize_t size, Py_UCS4 *widest) {
    Py_ssize_t count = 0;
    for (Py_ssize_t at = 0; at < size; count++) {
        Py_ssize_t run = ascii_run(bytes + at, size - at);
        at += run;
        count += run;
        if (at == size) {
            break;
        }
        int length;
        Py_UCS4 letter = letter_at(bytes + at, size - at, &length);
        if (length == 0) {
            return -1;
        }
        *widest = letter > *widest ? letter : *widest;
        at += length;
    }
    return count;
}

#define WRITE_LETTERS(name, Letter)                                                                 \
    static void name(const uint8_t *restrict bytes, Py_ssize_t size, Letter *restrict text) {       \
        for (Py_ssize_t at = 0; at < size;) {                                                       \
            Py_ssize_t run = ascii_run(bytes + at, size - at);                                      \
            for (Py_ssize_t i = 0; i < run; i++) {                                                  \
                text[i] = bytes[at + i];                                                            \
            }                                                                                       \
            text += run;                                                                            \
            at += run;                                                                              \
            if (at < size) {                                                                        \
                int length;                                                                         \
                *text++ = (Letter)letter_at(bytes + at, size - at, &length);                        \
                at += length;                                                                       \
            }                                                                                       \
        }                                                                                           \
    }

WRITE_LETTERS(write_1, Py_UCS1)
WRITE_LETTERS(write_2, Py_UCS2)
WRITE_LETTERS(write_4, Py_UCS4)

/* The text, or None if the bytes are not UTF-8. */
PyObject *native_utf8(PyObject *module, PyObject *body) {
    (void)module;
    if (!PyBytes_Check(body)) {
        PyErr_SetString(PyExc_TypeError, "a body is bytes");
        return NULL;
    }
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(body);
    Py_ssize_t size = PyBytes_GET_SIZE(body);
    Py_UCS4 widest = 0;
    Py_ssize_t count = count_letters(bytes, size, &widest);
    if (count < 0) {
        Py_RETURN_NONE;
    }
    /* An empty one is Python's own. */
    PyObject *text = PyUnicode_New(count, widest ? widest : ASCII - 1);
    if (text == NULL || count == 0) {
        return text;
    }
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        write_1(bytes, size, PyUnicode_1BYTE_DATA(text));
        break;
    case PyUnicode_2BYTE_KIND:
        write_2(bytes, size, PyUnicode_2BYTE_DATA(text));
        break;
    default:
        write_4(bytes, size, PyUnicode_4BYTE_DATA(text));
    }
    return text;
}
