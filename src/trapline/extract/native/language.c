/* How many of a text's words are some common ones: the twin of the loop in language.py. */
#include "native.h"

enum { MAX_WORD = 8, MAX_WORDS = 64 };

/* A word of up to eight letters as a number; 0 for any other. */
static uint64_t packed(PyObject *word) {
    Py_ssize_t size = PyUnicode_Check(word) ? PyUnicode_GET_LENGTH(word) : 0;
    uint64_t number = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ_CHAR(word, i);
        if (size > MAX_WORD || letter < 'a' || letter > 'z') {
            return 0;
        }
        number = number << 8 | letter;
    }
    return number;
}

static int is_common(uint64_t word, const uint64_t *common, Py_ssize_t size) {
    int found = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        found |= common[i] == word;
    }
    return found;
}

/* The number of words among a text's first letters, and of those that are common. */
PyObject *native_common_words(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *text, *words;
    Py_ssize_t letters, count = 0, known = 0;
    uint64_t common[MAX_WORDS];
    if (!PyArg_ParseTuple(args, "UnO!", &text, &letters, &PyTuple_Type, &words)) {
        return NULL;
    }
    Py_ssize_t size = PyTuple_GET_SIZE(words);
    for (Py_ssize_t i = 0; i < size; i++) {
        common[i < MAX_WORDS ? i : 0] = packed(PyTuple_GET_ITEM(words, i));
        if (size > MAX_WORDS || common[i] == 0) {
            PyErr_SetString(PyExc_ValueError, "common words are few and short");
            return NULL;
        }
    }
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t end = PyUnicode_GET_LENGTH(text);
    end = letters < end ? letters : end;
    for (Py_ssize_t at = 0; at < end;) {
        uint64_t word = 0;
        Py_ssize_t start = at;
        Py_UCS4 letter = 0;
        for (; at < end && !Py_UNICODE_ISSPACE(letter = PyUnicode_READ(kind, data, at)); at++) {
            letter |= letter >= 'A' && letter <= 'Z' ? 0x20 : 0;
            /* A letter that no common word has is kept as one, so that the word is none of them. */
            word = word << 8 | (letter >= 'a' && letter <= 'z' ? letter : 1);
        }
        if (at > start) {
            count++;
            known += at - start <= MAX_WORD && is_common(word, common, size);
        }
        at++;
    }
    return Py_BuildValue("nn", count, known);
}
