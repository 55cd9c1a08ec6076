/* Texts as numbers and as bytes: the twin of likeness.py and identity.py.
 *
 * Both say what is meant, and are what a machine without a compiler runs. The numbers are in databases:
 * tests hold the two together, bit by bit.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MOST_WORDS = 50000, LONG_WORD = 16, RUN = 6, IN_A_ROW = 3, POWERS = 256, ASCII = 128 };

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
static void read_words(Text *text, uint64_t *found) {
    uint64_t sum = 0;
    Py_ssize_t place = 0, at = 0;
    for (; at < text->size && text->words < MOST_WORDS; at++) {
        Py_UCS4 letter = letter_of(PyUnicode_READ(text->kind, text->data, at));
        if (letter) {
            sum += letter * powers[place++ % POWERS];
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

static PyObject *native_sequences(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer words;
    if (!PyArg_ParseTuple(args, "y*", &words)) {
        return NULL;
    }
    Py_ssize_t item = sizeof(uint64_t), count = words.len / item;
    PyObject *array = NULL;
    if (words.len % item || (uintptr_t)words.buf % sizeof(uint64_t)) {
        PyErr_SetString(PyExc_ValueError, "words are numbers of 64 bits");
    } else {
        array = PyByteArray_FromStringAndSize(NULL, rows_of(count, IN_A_ROW) * item);
    }
    if (array != NULL) {
        in_a_row(words.buf, count, IN_A_ROW, (uint64_t *)PyByteArray_AS_STRING(array));
    }
    PyBuffer_Release(&words);
    return array;
}

/* Letters of which it is known that no other spelling of theirs is the normal one: Latin letters, and
 * the marks that are in every other text. */
static int is_composed(Py_UCS4 letter) {
    return letter < 0x300 || (letter >= 0x2002 && letter < 0x20d0);
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

/* Writes words with one space between them; returns the end, or NULL at a letter that is to be
 * composed first. */
static char *squeeze(int kind, const void *data, Py_ssize_t size, char *start) {
    char *at = start;
    int spaced = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        if (Py_UNICODE_ISSPACE(letter)) {
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

static PyMethodDef methods[] = {
    {"words", native_words, METH_O, "Give the number of each word of a text."},
    {"sequences", native_sequences, METH_VARARGS, "Give the number of each three words in a row."},
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
