/* Words and features of a text as 64-bit numbers: store/similarity.py.
 *
 * The numbers are in databases: tests compare them with Python's, bit by bit.
 */
#include "native.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 50000, LONG_WORD = 16, RUN = 6, IN_A_ROW = 3, POWERS = 256, ASCII = 128 };
enum { FEW = 24 };

static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15u, STEP = 0xD6E8FEB86659FD93u;
static uint64_t powers[POWERS];
/* The lower case of what is part of words; 0 for what is not. */
static uint8_t plain[ASCII];

void similarity_open(void) {
    uint64_t power = 1;
    for (int i = 0; i < POWERS; i++) {
        powers[i] = power *= STEP;
    }
    for (int letter = 0; letter < ASCII; letter++) {
        int part = Py_UNICODE_ISALNUM(letter) || letter == '_';
        plain[letter] = part ? (uint8_t)Py_UNICODE_TOLOWER(letter) : 0;
    }
}

static inline Py_UCS4 letter_of(Py_UCS4 letter) {
    if (letter < ASCII) {
        return plain[letter];
    }
    return Py_UNICODE_ISALNUM(letter) ? Py_UNICODE_TOLOWER(letter) : 0;
}

static inline uint64_t mixed(uint64_t number) {
    number = (number ^ (number >> 31)) * MULTIPLIER;
    number = (number ^ (number >> 29)) * MULTIPLIER;
    return number ^ (number >> 32);
}

/* One number for every so many of them in a row, or for all where there are fewer. */
static void in_a_row(const uint64_t *numbers, Py_ssize_t count, int row, uint64_t *found) {
    int size = count < row ? (int)count : row;
    for (Py_ssize_t start = 0; start + size <= count; start++) {
        uint64_t sum = 0;
        for (int i = 0; i < size; i++) {
            sum += numbers[start + i] * powers[i];
        }
        found[start] = mixed(sum);
    }
}

/* How many numbers `in_a_row` makes. */
static Py_ssize_t rows_of(Py_ssize_t count, int row) {
    return count < row ? count > 0 : count - row + 1;
}

typedef struct {
    int kind;
    const void *data;
    /* Where reading ends: after the last word that counts. */
    Py_ssize_t size;
    Py_ssize_t words, letters;
} Text;

/* The number of each word, up to as many as count. `found` has room for one in two letters. */
FOR_EACH_WIDTH void read_width(int kind, Text *text, uint64_t *found) {
    uint64_t sum = 0;
    Py_ssize_t place = 0, at = 0;
    for (; at < text->size && text->words < MOST_WORDS; at++) {
        Py_UCS4 letter = letter_of(PyUnicode_READ(kind, text->data, at));
        if (letter) {
            sum += letter * powers[(size_t)place++ % POWERS];
        } else if (place) {
            found[text->words++] = mixed(sum);
            text->letters += place;
            sum = 0;
            place = 0;
        }
    }
    if (place) {
        found[text->words++] = mixed(sum);
        text->letters += place;
    }
    text->size = at;
}

static void read_words(Text *text, uint64_t *found) {
    switch (text->kind) {
    case PyUnicode_1BYTE_KIND:
        read_width(PyUnicode_1BYTE_KIND, text, found);
        break;
    case PyUnicode_2BYTE_KIND:
        read_width(PyUnicode_2BYTE_KIND, text, found);
        break;
    default:
        read_width(PyUnicode_4BYTE_KIND, text, found);
    }
}

static PyObject *array_of(const uint64_t *numbers, Py_ssize_t count) {
    const char *bytes = (const char *)numbers;
    return PyByteArray_FromStringAndSize(bytes, count * (Py_ssize_t)sizeof(uint64_t));
}

/* A script without spaces has no words: every few letters in a row stand for one. */
static PyObject *runs_of(const Text *text) {
    uint64_t *letters = PyMem_Malloc(2 * text->letters * sizeof(uint64_t));
    if (letters == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t count = 0;
    for (Py_ssize_t at = 0; at < text->size; at++) {
        Py_UCS4 letter = letter_of(PyUnicode_READ(text->kind, text->data, at));
        if (letter) {
            letters[count++] = letter;
        }
    }
    uint64_t *found = letters + text->letters;
    in_a_row(letters, count, RUN, found);
    PyObject *array = array_of(found, rows_of(count, RUN));
    PyMem_Free(letters);
    return array;
}

PyObject *similarity_words(PyObject *module, PyObject *string) {
    (void)module;
    if (!PyUnicode_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return NULL;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(string);
    Text text = {PyUnicode_KIND(string), PyUnicode_DATA(string), size, 0, 0};
    Py_ssize_t most = size / 2 + 1 < MOST_WORDS ? size / 2 + 1 : MOST_WORDS;
    uint64_t *found = PyMem_Malloc(most * sizeof(uint64_t));
    if (found == NULL) {
        return PyErr_NoMemory();
    }
    read_words(&text, found);
    PyObject *array = text.letters > LONG_WORD * text.words ? runs_of(&text)
                                                            : array_of(found, text.words);
    PyMem_Free(found);
    return array;
}

static int ascending(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Sorts a few; many that fell together, as only somebody who means it can make them, go to a sort
 * whose time does not grow with the square. */
static void sort_few(uint64_t *numbers, Py_ssize_t count) {
    if (count > FEW) {
        qsort(numbers, count, sizeof(uint64_t), ascending);
        return;
    }
    for (Py_ssize_t i = 1; i < count; i++) {
        uint64_t number = numbers[i];
        Py_ssize_t at = i;
        for (; at > 0 && numbers[at - 1] > number; at--) {
            numbers[at] = numbers[at - 1];
        }
        numbers[at] = number;
    }
}

/* Writes numbers in ascending order, each once; returns how many. Their bits are mixed, so that their
 * first ones put nearly every number where it belongs. `starts` has room for 2 ** bits + 1. */
static Py_ssize_t in_order(const uint64_t *numbers, Py_ssize_t count, int bits, Py_ssize_t *starts,
                           uint64_t *found) {
    Py_ssize_t places = (Py_ssize_t)1 << bits, kept = 0, from = 0;
    int shift = 64 - bits;
    memset(starts, 0, (places + 1) * sizeof(Py_ssize_t));
    for (Py_ssize_t i = 0; i < count; i++) {
        starts[(numbers[i] >> shift) + 1]++;
    }
    for (Py_ssize_t place = 0; place < places; place++) {
        starts[place + 1] += starts[place];
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        found[starts[numbers[i] >> shift]++] = numbers[i];
    }
    /* Each start is now where its numbers end. */
    for (Py_ssize_t place = 0; place < places; place++) {
        Py_ssize_t end = starts[place];
        sort_few(found + from, end - from);
        for (; from < end; from++) {
            if (kept == 0 || found[kept - 1] != found[from]) {
                found[kept++] = found[from];
            }
        }
    }
    return kept;
}

static PyObject *features_of(const uint64_t *words, Py_ssize_t count) {
    Py_ssize_t rows = rows_of(count, IN_A_ROW), item = sizeof(uint64_t);
    int bits = 1;
    while (((Py_ssize_t)1 << bits) < rows && bits < 20) {
        bits++;
    }
    uint64_t *sequences = PyMem_Malloc((rows + 1) * item);
    Py_ssize_t *starts = PyMem_Malloc((((size_t)1 << bits) + 1) * sizeof(Py_ssize_t));
    PyObject *array = PyByteArray_FromStringAndSize(NULL, rows * item);
    if (sequences == NULL || starts == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(array);
    } else if (array != NULL) {
        in_a_row(words, count, IN_A_ROW, sequences);
        uint64_t *found = (uint64_t *)PyByteArray_AS_STRING(array);
        Py_ssize_t kept = in_order(sequences, rows, bits, starts, found);
        if (kept < rows && PyByteArray_Resize(array, kept * item) < 0) {
            Py_CLEAR(array);
        }
    }
    PyMem_Free(sequences);
    PyMem_Free(starts);
    return array;
}

PyObject *similarity_features(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer words;
    if (!PyArg_ParseTuple(args, "y*", &words)) {
        return NULL;
    }
    PyObject *array = NULL;
    if (words.len % sizeof(uint64_t) || (uintptr_t)words.buf % sizeof(uint64_t)) {
        PyErr_SetString(PyExc_ValueError, "words are numbers of 64 bits");
    } else {
        array = features_of(words.buf, words.len / (Py_ssize_t)sizeof(uint64_t));
    }
    PyBuffer_Release(&words);
    return array;
}
