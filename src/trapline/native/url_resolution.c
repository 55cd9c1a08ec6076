/* From a reference in a page to an absolute URL: the counterpart of `References` in url_resolution.py.
 *
 * Nearly all references are plain ones, which the parser of URLs would give back as they are or
 * below the page's directory. Whatever else there is goes to Python.
 */
#include "url_resolution.h"

enum { LONGEST_PART = 4000, UPS = 9 };
enum { IN_PATH = 1, IN_QUERY = 2, IN_NAME = 4, IN_HOST = 8, LOWER = 16 };

static uint8_t letter_kinds[128];

static void know_letters(void) {
    for (int letter = 0; letter_kinds['~'] == 0 && letter < 128; letter++) {
        int lower = letter >= 'a' && letter <= 'z', digit = letter >= '0' && letter <= '9';
        int plain = lower || digit || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
                    letter == '~' || letter == '-';
        int kinds = plain ? IN_PATH | IN_QUERY | IN_NAME : 0;
        kinds |= letter == '/' || letter == '.' ? IN_PATH | IN_QUERY : 0;
        kinds |= letter != 0 && strchr("=&+@:;,?!$*()%", letter) ? IN_QUERY : 0;
        kinds |= lower || digit || letter == '-' ? IN_HOST : 0;
        kinds |= lower ? LOWER : 0;
        letter_kinds[letter] = (uint8_t)kinds;
    }
}

static Py_ssize_t past(const char *text, Py_ssize_t from, Py_ssize_t size, int kind) {
    while (from < size && letter_kinds[(uint8_t)text[from]] & kind) {
        from++;
    }
    return from;
}

/* Whether the rest is a path of plain letters, and perhaps a query of such. */
static int is_safe(const char *text, Py_ssize_t from, Py_ssize_t size) {
    Py_ssize_t end = past(text, from, size, IN_PATH);
    if (end - from > LONGEST_PART) {
        return 0;
    }
    if (end == size) {
        return 1;
    }
    Py_ssize_t query = end + 1;
    return text[end] == '?' && past(text, query, size, IN_QUERY) == size &&
           size - query <= LONGEST_PART;
}

/* Where the path starts behind `http://host.name`; -1 if the text does not start like that. */
static Py_ssize_t host_end(const char *text, Py_ssize_t size) {
    Py_ssize_t at = size > 7 && strncmp(text, "http://", 7) == 0    ? 7
                    : size > 8 && strncmp(text, "https://", 8) == 0 ? 8
                                                                    : -1;
    int labels = 0;
    while (at >= 0) {
        Py_ssize_t end = past(text, at, size, IN_HOST);
        if (end < size && text[end] == '.' && end > at) {
            at = end + 1;
            labels++;
            continue;
        }
        int named = labels && end - at >= 2 && past(text, at, end, LOWER) == end;
        return named && end < size && text[end] == '/' ? end : -1;
    }
    return -1;
}

static int contains(const char *text, Py_ssize_t from, Py_ssize_t size, const char *part) {
    return from < size && memmem(text + from, size - from, part, strlen(part)) != NULL;
}

/* The URL of an address that needs no parser; a new reference to None for any other. */
static PyObject *plain_url(const References *self, PyObject *address) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(address);
    if (!PyUnicode_IS_ASCII(address) || size == 0) {
        Py_RETURN_NONE;
    }
    const char *text = (const char *)PyUnicode_1BYTE_DATA(address);
    Py_ssize_t host = host_end(text, size), from = host >= 0 ? host : 0;
    int ups = 0;
    if (text[from] == '/') {
        if ((from + 1 < size && text[from + 1] == '/') || !is_safe(text, from + 1, size)) {
            Py_RETURN_NONE;
        }
        from = 0;
    } else {
        for (; ups < UPS && size - from >= 3 && strncmp(text + from, "../", 3) == 0; ups++) {
            from += 3;
        }
        if (from == size || !(letter_kinds[(uint8_t)text[from]] & IN_NAME) ||
            !is_safe(text, from + 1, size)) {
            Py_RETURN_NONE;
        }
    }
    if (contains(text, from, size, "/.") || contains(text, 0, size, "xn--")) {
        Py_RETURN_NONE;
    }
    if (host >= 0) {
        return Py_NewRef(address);
    }
    if (PyUnicode_GET_LENGTH(self->origin) == 0) {
        Py_RETURN_NONE;
    }
    if (text[0] == '/') {
        return PyUnicode_Concat(self->origin, address);
    }
    PyObject *name = from ? PyUnicode_Substring(address, from, size) : Py_NewRef(address);
    PyObject *above = ups < PyList_GET_SIZE(self->above) ? PyList_GET_ITEM(self->above, ups) : NULL;
    PyObject *url = NULL;
    if (above == NULL || !PyUnicode_Check(above)) {
        PyErr_SetString(PyExc_ValueError, "a page has ten directories above it");
    } else if (name != NULL) {
        url = PyUnicode_Concat(above, name);
    }
    Py_XDECREF(name);
    return url;
}

PyObject *absolute_url(References *self, PyObject *reference) {
    if (!PyUnicode_Check(reference)) {
        PyErr_SetString(PyExc_TypeError, "a reference is a string");
        return NULL;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(reference);
    Py_ssize_t mark = PyUnicode_FindChar(reference, '#', 0, size, 1);
    if (mark == -2) {
        return NULL;
    }
    PyObject *address =
        mark >= 0 ? PyUnicode_Substring(reference, 0, mark) : Py_NewRef(reference);
    if (address == NULL) {
        return NULL;
    }
    PyObject *url = PyDict_GetItemWithError(self->seen, address);
    if (url != NULL || PyErr_Occurred()) {
        Py_XINCREF(url);
        Py_DECREF(address);
        return url;
    }
    url = plain_url(self, address);
    if (url == Py_None) {
        Py_DECREF(url);
        url = PyObject_CallOneArg(self->parse, address);
    }
    if (url != NULL && url != Py_None && !PyUnicode_Check(url)) {
        PyErr_SetString(PyExc_TypeError, "a URL is a string");
        Py_CLEAR(url);
    }
    if (url != NULL && PyDict_SetItem(self->seen, address, url) < 0) {
        Py_CLEAR(url);
    }
    Py_DECREF(address);
    return url;
}

static PyObject *absolute(PyObject *self, PyObject *reference) {
    return absolute_url((References *)self, reference);
}

static PyObject *references_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *origin, *above, *parse;
    if ((named != NULL && PyDict_GET_SIZE(named)) ||
        !PyArg_ParseTuple(args, "UO!O", &origin, &PyList_Type, &above, &parse)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "nothing is given by name");
        }
        return NULL;
    }
    References *self = (References *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    know_letters();
    self->origin = Py_NewRef(origin);
    self->above = Py_NewRef(above);
    self->parse = Py_NewRef(parse);
    self->seen = PyDict_New();
    if (self->seen == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void references_free(PyObject *object) {
    References *self = (References *)object;
    Py_XDECREF(self->origin);
    Py_XDECREF(self->above);
    Py_XDECREF(self->parse);
    Py_XDECREF(self->seen);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef methods[] = {
    {"absolute", absolute, METH_O, "The http(s) URL that a reference means, or None."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject ReferencesType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "trapline.native._native.References",
    .tp_basicsize = sizeof(References),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Makes the references of one page absolute.",
    .tp_new = references_new,
    .tp_dealloc = references_free,
    .tp_methods = methods,
};
