/* Texts as numbers and as bytes: the twin of likeness.py and identity.py.
 *
 * Both say what is meant, and are what a machine without a compiler runs. The numbers are in databases:
 * tests hold the two together, bit by bit.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Compiled once for each width of letters, which is then known. */
#define FOR_EACH_WIDTH static inline __attribute__((always_inline))

enum { MOST_WORDS = 50000, LONG_WORD = 16, RUN = 6, IN_A_ROW = 3, POWERS = 256, ASCII = 128 };
enum { FEW = 24 };

static const uint64_t MULTIPLIER = 0x9E3779B97F4A7C15u, STEP = 0xD6E8FEB86659FD93u;
static uint64_t powers[POWERS];
/* The lower case of what is part of words; 0 for what is not. */
static uint8_t plain[ASCII];

static void open_tables(void) {
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

static PyObject *native_words(PyObject *module, PyObject *string) {
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

static PyObject *native_features(PyObject *module, PyObject *args) {
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

/* Letters of which it is known that no other spelling of theirs is the normal one, and that they join
 * with no letter before them: Latin, Greek, Cyrillic, Chinese, Japanese and Korean ones, and signs. */
static int is_composed(Py_UCS4 letter) {
    static const Py_UCS2 RANGES[][2] = {
        {0x2002, 0x20cf}, {0x4e00, 0x9fff}, {0x0388, 0x0482}, {0x3000, 0x3029}, {0x3041, 0x3096},
        {0x30a1, 0x30fe}, {0xac00, 0xd7a3}, {0xff01, 0xffef}, {0x2190, 0x2328}, {0x232b, 0x2adb},
        {0x048a, 0x052f},
    };
    if (letter < 0x300) {
        return 1;
    }
    for (size_t i = 0; i < sizeof(RANGES) / sizeof(RANGES[0]); i++) {
        if (letter >= RANGES[i][0] && letter <= RANGES[i][1]) {
            return 1;
        }
    }
    return 0;
}

static char *put_letter(char *at, Py_UCS4 letter) {
    if (letter < 0x80) {
        *at++ = (char)letter;
    } else if (letter < 0x800) {
        *at++ = (char)(0xc0 | letter >> 6);
        *at++ = (char)(0x80 | (letter & 0x3f));
    } else {
        *at++ = (char)(0xe0 | letter >> 12);
        *at++ = (char)(0x80 | (letter >> 6 & 0x3f));
        *at++ = (char)(0x80 | (letter & 0x3f));
    }
    return at;
}

#ifdef __SSE2__
#include <emmintrin.h>

enum { AT_ONCE = 16 };

/* So many letters as bytes; those that do not fit into seven bits are 0 or less. */
FOR_EACH_WIDTH __m128i letters_at(int kind, const void *data, Py_ssize_t at) {
    if (kind == PyUnicode_1BYTE_KIND) {
        return _mm_loadu_si128((const __m128i *)((const Py_UCS1 *)data + at));
    }
    const __m128i *wide = (const __m128i *)((const Py_UCS2 *)data + at);
    __m128i one = _mm_loadu_si128(wide), other = _mm_loadu_si128(wide + 1);
    /* Larger ones become 255, and those that look as if below zero 0. */
    return _mm_packus_epi16(one, other);
}

/* Writes the letters at a place, if they are words of ASCII with single blanks between, of which the
 * first may come at once and the last stays for the next time; returns how many were written. */
FOR_EACH_WIDTH int squeeze_run(int kind, const void *data, Py_ssize_t at, char *to) {
    const __m128i blank = _mm_set1_epi8(' ');
    __m128i letters = letters_at(kind, data, at);
    __m128i ends = _mm_cmpeq_epi8(letters, _mm_set1_epi8('\n'));
    letters = _mm_or_si128(_mm_andnot_si128(ends, letters), _mm_and_si128(ends, blank));
    unsigned blanks = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(letters, blank));
    /* What is beyond ASCII is below zero here. */
    if (_mm_movemask_epi8(_mm_cmplt_epi8(letters, blank)) || blanks & blanks << 1) {
        return 0;
    }
    _mm_storeu_si128((__m128i *)to, letters);
    return AT_ONCE - (int)(blanks >> (AT_ONCE - 1));
}
#endif

/* Writes words with one space between them; returns the end, or NULL at a letter that is to be
 * composed first. */
FOR_EACH_WIDTH char *squeeze_width(int kind, const void *data, Py_ssize_t size, char *start) {
    char *at = start;
    int spaced = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
#ifdef __SSE2__
        /* As long as the last one written is no blank, and none is to come. */
        while (kind != PyUnicode_4BYTE_KIND && !spaced && at > start && size - i > AT_ONCE) {
            int written = squeeze_run(kind, data, i, at);
            if (written == 0) {
                break;
            }
            at += written;
            i += written;
        }
#endif
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        /* Of most letters this is known at once. */
        if (!(letter > ' ' && letter < 0x7f) && Py_UNICODE_ISSPACE(letter)) {
            spaced = at > start;
            continue;
        }
        if (!is_composed(letter)) {
            return NULL;
        }
        if (spaced) {
            *at++ = ' ';
            spaced = 0;
        }
        at = put_letter(at, letter);
    }
    return at;
}

static char *squeeze(int kind, const void *data, Py_ssize_t size, char *start) {
    switch (kind) {
    case PyUnicode_1BYTE_KIND:
        return squeeze_width(PyUnicode_1BYTE_KIND, data, size, start);
    case PyUnicode_2BYTE_KIND:
        return squeeze_width(PyUnicode_2BYTE_KIND, data, size, start);
    default:
        return squeeze_width(PyUnicode_4BYTE_KIND, data, size, start);
    }
}

static PyObject *native_squeezed(PyObject *module, PyObject *string) {
    (void)module;
    if (!PyUnicode_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return NULL;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(string);
    int kind = PyUnicode_KIND(string);
    /* Three bytes hold all that is composed; a space takes the room of one that was left out. */
    Py_ssize_t widest = PyUnicode_IS_ASCII(string) ? 1 : kind == PyUnicode_1BYTE_KIND ? 2 : 3;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, widest * size);
    if (bytes == NULL) {
        return NULL;
    }
    char *start = PyBytes_AS_STRING(bytes);
    char *end = squeeze(kind, PyUnicode_DATA(string), size, start);
    if (end == NULL) {
        Py_DECREF(bytes);
        Py_RETURN_NONE;
    }
    _PyBytes_Resize(&bytes, end - start);
    return bytes;
}

/* Runs of letters are compared at once, which compilers make a few instructions of. */
#define HAS_NULLS(name, Letter)                                                                     \
    static int name(const Letter *text, Py_ssize_t size) {                                          \
        enum { AT_ONCE = 128 };                                                                     \
        Py_ssize_t at = 0;                                                                          \
        for (; size - at >= AT_ONCE; at += AT_ONCE) {                                               \
            Letter any = 0;                                                                         \
            for (int i = 0; i < AT_ONCE; i++) {                                                     \
                any |= text[at + i] == 0;                                                           \
            }                                                                                       \
            if (any) {                                                                              \
                return 1;                                                                           \
            }                                                                                       \
        }                                                                                           \
        for (; at < size; at++) {                                                                   \
            if (text[at] == 0) {                                                                    \
                return 1;                                                                           \
            }                                                                                       \
        }                                                                                           \
        return 0;                                                                                   \
    }

HAS_NULLS(has_nulls_2, Py_UCS2)
HAS_NULLS(has_nulls_4, Py_UCS4)

static PyObject *native_has_nulls(PyObject *module, PyObject *string) {
    (void)module;
    if (!PyUnicode_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return NULL;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(string);
    const void *data = PyUnicode_DATA(string);
    switch (PyUnicode_KIND(string)) {
    case PyUnicode_1BYTE_KIND:
        return PyBool_FromLong(memchr(data, 0, size) != NULL);
    case PyUnicode_2BYTE_KIND:
        return PyBool_FromLong(has_nulls_2(data, size));
    default:
        return PyBool_FromLong(has_nulls_4(data, size));
    }
}

static PyMethodDef methods[] = {
    {"words", native_words, METH_O, "Give the number of each word of a text."},
    {"features", native_features, METH_VARARGS, "Give the numbers of three words in a row, each once."},
    {"has_nulls", native_has_nulls, METH_O, "Tell whether a text has a NUL in it."},
    {"squeezed", native_squeezed, METH_O, "Give a text's words with one space between, if composed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Texts as numbers and as bytes.", -1, methods, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    open_tables();
    return PyModule_Create(&definition);
}
