/* The last step to markdown, over the rendered text: the counterpart of `tidy` in renderer.py.
 *
 * The same code is made for each width of letters that a string can have.
 */
#include "native.h"
#include <string.h>

/* Runs of backticks, found once and in order: what closes one is looked for among them, and a page
 * made of nothing else must not be read again for each. */
typedef struct {
    Py_ssize_t start, size;
} Run;

typedef struct {
    Run *run;
    Py_ssize_t count, room, next;
} Runs;

static int runs_add(Runs *runs, Py_ssize_t start, Py_ssize_t size) {
    if (runs->count == runs->room) {
        Py_ssize_t room = runs->room ? 2 * runs->room : 64;
        Run *larger = PyMem_Realloc(runs->run, room * sizeof(Run));
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        runs->run = larger;
        runs->room = room;
    }
    runs->run[runs->count++] = (Run){start, size};
    return 0;
}

static int is_invisible(Py_UCS4 letter) {
    return letter == 0xAD || letter == 0x200B || letter == 0x2060 || letter == 0xFEFF;
}

static int is_word(Py_UCS4 letter) {
    return letter == '_' || Py_UNICODE_ISALNUM(letter);
}

static int ends_emphasis(Py_UCS4 letter) {
    return Py_UNICODE_ISSPACE(letter) || letter == '.' || letter == ',' || letter == ';' ||
           letter == ':' || letter == '!' || letter == '?' || letter == ')' || letter == ']';
}

#define LETTER Py_UCS1
#define NAMED(name) name##_1
#include "tidy_letters.h"
#undef LETTER
#undef NAMED
#define LETTER Py_UCS2
#define NAMED(name) name##_2
#include "tidy_letters.h"
#undef LETTER
#undef NAMED
#define LETTER Py_UCS4
#define NAMED(name) name##_4
#include "tidy_letters.h"
#undef LETTER
#undef NAMED

PyObject *native_tidy(PyObject *module, PyObject *text) {
    (void)module;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return NULL;
    }
    int kind = PyUnicode_KIND(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    char *room = PyMem_Malloc((size + 1) * (size_t)kind);
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t start = 0, end = -1;
    if (kind == PyUnicode_1BYTE_KIND) {
        end = tidied_1(PyUnicode_DATA(text), size, (Py_UCS1 *)room, &start);
    } else if (kind == PyUnicode_2BYTE_KIND) {
        end = tidied_2(PyUnicode_DATA(text), size, (Py_UCS2 *)room, &start);
    } else {
        end = tidied_4(PyUnicode_DATA(text), size, (Py_UCS4 *)room, &start);
    }
    PyObject *result =
        end < 0 ? NULL : PyUnicode_FromKindAndData(kind, room + start * kind, end - start);
    PyMem_Free(room);
    return result;
}
