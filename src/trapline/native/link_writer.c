/* Markdown of plain links: markdown/renderer.py.
 *
 * A link on one line with a plain target is written here; Python writes the others.
 */
#include "url_resolution.h"
#include <stddef.h>

enum { SCHEME = 7 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    References *references;
    PyObject *page, *marks, *slow, *targets;
} LinkWriter;

static int is_mark_or_space(Py_UCS4 letter) {
    return letter == ' ' || letter == '(' || letter == ')';
}

static int has_plain_end(PyObject *url) {
    int kind = PyUnicode_KIND(url);
    const void *data = PyUnicode_DATA(url);
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(url); i++) {
        if (is_mark_or_space(PyUnicode_READ(kind, data, i))) {
            return 0;
        }
    }
    return 1;
}

/* Whether a reference neither begins nor ends in space, nor has a scheme that is not http's. */
static int is_plain(PyObject *href) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(href);
    if (Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(href, 0)) ||
        Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(href, size - 1))) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < size && i < SCHEME; i++) {
        if (PyUnicode_READ_CHAR(href, i) == ':') {
            return PyUnicode_READ_CHAR(href, 0) == 'h';
        }
    }
    return 1;
}

/* The URL to write for a reference; a new reference to None where Python must say. */
static PyObject *target_of(LinkWriter *self, PyObject *href) {
    PyObject *known = PyDict_GetItemWithError(self->targets, href);
    if (known != NULL || PyErr_Occurred()) {
        return Py_XNewRef(known);
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(href);
    Py_ssize_t mark = PyUnicode_FindChar(href, '#', 0, size, 1);
    if (mark == -2) {
        return NULL;
    }
    PyObject *url = mark == 0 ? Py_NewRef(self->page) : absolute_url(self->references, href);
    if (url == NULL || url == Py_None) {
        return url;
    }
    if (mark >= 0 && mark + 1 < size) {
        PyObject *fragment = PyUnicode_Substring(href, mark, size);
        PyObject *whole = fragment ? PyUnicode_Concat(url, fragment) : NULL;
        Py_XDECREF(fragment);
        Py_DECREF(url);
        url = whole;
    }
    if (url != NULL && (PyUnicode_GET_LENGTH(url) == 0 || !has_plain_end(url))) {
        Py_DECREF(url);
        Py_RETURN_NONE;
    }
    if (url != NULL && PyDict_SetItem(self->targets, href, url) < 0) {
        Py_CLEAR(url);
    }
    return url;
}

/* Whether a text is one line that needs no mending, and begins like no heading, list or link. */
static int is_plain_line(PyObject *text) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    if (size == 0) {
        return 0;
    }
    Py_UCS4 first = PyUnicode_READ(kind, data, 0), before = 0;
    if (Py_UNICODE_ISSPACE(first) || Py_UNICODE_ISSPACE(PyUnicode_READ(kind, data, size - 1)) ||
        (first >= '0' && first <= '9') || first == '#' || first == '-' || first == '*' ||
        first == '+' || first == '>' || first == '[') {
        return 0;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        if (letter == '\n' || (letter == '|' && before == '\\')) {
            return 0;
        }
        before = letter;
    }
    return 1;
}

/* Whether a text only marks the place of a heading: 1 if so, -1 for an error. */
static int is_mark(LinkWriter *self, PyObject *text) {
    PyObject *lower = PyObject_CallMethodNoArgs(text, name_lower);
    int found = lower == NULL ? -1 : PySet_Contains(self->marks, lower);
    Py_XDECREF(lower);
    return found;
}

static PyObject *joined(PyObject *text, PyObject *target) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text), length = PyUnicode_GET_LENGTH(target);
    Py_UCS4 most = PyUnicode_MAX_CHAR_VALUE(text), other = PyUnicode_MAX_CHAR_VALUE(target);
    PyObject *link = PyUnicode_New(size + length + 4, most > other ? most : other);
    if (link == NULL) {
        return NULL;
    }
    PyUnicode_WRITE(PyUnicode_KIND(link), PyUnicode_DATA(link), 0, '[');
    PyUnicode_WRITE(PyUnicode_KIND(link), PyUnicode_DATA(link), size + 1, ']');
    PyUnicode_WRITE(PyUnicode_KIND(link), PyUnicode_DATA(link), size + 2, '(');
    PyUnicode_WRITE(PyUnicode_KIND(link), PyUnicode_DATA(link), size + length + 3, ')');
    if (PyUnicode_CopyCharacters(link, 1, text, 0, size) < 0 ||
        PyUnicode_CopyCharacters(link, size + 3, target, 0, length) < 0) {
        Py_CLEAR(link);
    }
    return link;
}

static PyObject *written(LinkWriter *self, PyObject *element, PyObject *text) {
    PyObject *href = attribute_value(element, name_href);
    if (href == NULL) {
        return NULL;
    }
    PyObject *target = NULL, *link = NULL;
    int marks = 0;
    if (!PyUnicode_Check(href) || PyUnicode_GET_LENGTH(href) == 0 || !is_plain(href)) {
        target = Py_NewRef(Py_None);
    } else {
        marks = PyUnicode_READ_CHAR(href, 0) == '#' ? is_mark(self, text) : 0;
        target = marks ? NULL : target_of(self, href);
    }
    if (marks == 1) {
        link = PyUnicode_FromStringAndSize(NULL, 0);
    } else if (target == Py_None) {
        PyObject *given[] = {element, text};
        link = PyObject_Vectorcall(self->slow, given, 2, NULL);
    } else if (target != NULL) {
        link = joined(text, target);
    }
    Py_XDECREF(target);
    Py_DECREF(href);
    return link;
}

static int is_asked_for(PyObject *const *given, Py_ssize_t count, PyObject *named) {
    if ((named != NULL && PyTuple_GET_SIZE(named)) || count != 2 || !PyUnicode_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "an element and its text are given, and nothing by name");
        return 0;
    }
    return 1;
}

static PyObject *writer_call(PyObject *object, PyObject *const *given, size_t flags, PyObject *named) {
    LinkWriter *self = (LinkWriter *)object;
    if (!is_asked_for(given, PyVectorcall_NARGS(flags), named)) {
        return NULL;
    }
    if (is_plain_line(given[1])) {
        return written(self, given[0], given[1]);
    }
    return PyObject_Vectorcall(self->slow, given, 2, NULL);
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    PyObject *references, *page, *marks, *slow;
    (void)named;
    if (!PyArg_ParseTuple(args, "O!UO!O", &ReferencesType, &references, &page, &PyFrozenSet_Type,
                          &marks, &slow)) {
        return NULL;
    }
    LinkWriter *self = (LinkWriter *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->call = writer_call;
    self->references = (References *)Py_NewRef(references);
    self->page = Py_NewRef(page);
    self->marks = Py_NewRef(marks);
    self->slow = Py_NewRef(slow);
    self->targets = PyDict_New();
    if (self->targets == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void writer_free(PyObject *object) {
    LinkWriter *self = (LinkWriter *)object;
    Py_XDECREF(self->references);
    Py_XDECREF(self->page);
    Py_XDECREF(self->marks);
    Py_XDECREF(self->slow);
    Py_XDECREF(self->targets);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject LinkWriterType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "trapline.native._native.LinkWriter",
    .tp_basicsize = sizeof(LinkWriter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(LinkWriter, call),
    .tp_doc = "Writes the links of one page.",
    .tp_new = writer_new,
    .tp_dealloc = writer_free,
    .tp_call = PyVectorcall_Call,
};
