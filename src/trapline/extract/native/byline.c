/* Whether texts around a headline can tell who wrote a page, or when: the twin of a look in byline.py. */
#include "native.h"

enum { DIGITS_OF_A_YEAR = 4 };

/* A letter in lower case, as expressions that heed no case read it. */
static Py_UCS4 plain_letter(Py_UCS4 letter) {
    if (letter < 0x80) {
        return letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter;
    }
    return letter == 0x130 || letter == 0x131 ? 'i' : letter == 0x17f ? 's' : letter;
}

static int stands_at(PyObject *text, Py_ssize_t at, const char *word) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    for (; *word; word++, at++) {
        if (at >= size || plain_letter(PyUnicode_READ_CHAR(text, at)) != (Py_UCS4)*word) {
            return 0;
        }
    }
    return 1;
}

/* Whether what leads to a name stands where a text begins. */
static int may_name(PyObject *text) {
    static const char *const WORDS[] = {"by", "written", "posted", "started"};
    Py_ssize_t at = 0, size = PyUnicode_GET_LENGTH(text);
    while (at < size && Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(text, at))) {
        at++;
    }
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
        if (stands_at(text, at, WORDS[i])) {
            return 1;
        }
    }
    return 0;
}

static int may_date(PyObject *text) {
    int kind = PyUnicode_KIND(text), run = 0;
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < size && run < DIGITS_OF_A_YEAR; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        int digit = letter < 0x80 ? letter >= '0' && letter <= '9' : Py_UNICODE_ISDECIMAL(letter);
        run = digit ? run + 1 : 0;
    }
    return run == DIGITS_OF_A_YEAR;
}

PyObject *native_may_tell(PyObject *module, PyObject *texts) {
    (void)module;
    if (!PyList_Check(texts)) {
        PyErr_SetString(PyExc_TypeError, "texts are a list");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(texts); i++) {
        PyObject *text = PyList_GET_ITEM(texts, i);
        if (!PyUnicode_Check(text)) {
            PyErr_SetString(PyExc_TypeError, "a text is a string");
            return NULL;
        }
        if (may_name(text) || may_date(text)) {
            Py_RETURN_TRUE;
        }
    }
    Py_RETURN_FALSE;
}
