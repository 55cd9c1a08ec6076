/* The links of a page: the twin of the loop in links.py. */
#include "references.h"

typedef struct {
    PyObject *type, *label_of, *better, *rels_of, *keep_other;
    /* The links by their URLs, and the URLs of those that are shown and say something. */
    PyObject *found, *enough;
    References *references;
    Py_ssize_t longest, budget;
    Letters room;
} Work;

/* Whether a text is on one line, with single spaces between its words and none around them. */
static int is_squeezed(PyObject *text) {
    int kind = PyUnicode_KIND(text), spaced = 1;
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        int space = Py_UNICODE_ISSPACE(letter);
        if (space && (spaced || letter != ' ')) {
            return 0;
        }
        spaced = space;
    }
    return !spaced || size == 0;
}

/* A text on one line, with single spaces; most are that already. */
static PyObject *squeezed(Letters *room, PyObject *text) {
    if (is_squeezed(text)) {
        return Py_NewRef(text);
    }
    int kind = PyUnicode_KIND(text), spaced = 1;
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    room->size = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        int space = Py_UNICODE_ISSPACE(letter);
        if (!(space && spaced) && letters_add(room, space ? ' ' : letter) < 0) {
            return NULL;
        }
        spaced = space;
    }
    room->size -= room->size && spaced;
    return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, room->data, room->size);
}

/* What an anchor says, cut to its longest. */
static PyObject *text_of(Work *work, PyObject *anchor) {
    if (work->budget <= 0) {
        work->budget--;
        return PyUnicode_FromStringAndSize(NULL, 0);
    }
    PyObject *whole = property(anchor, &element_text);
    PyObject *text = NULL;
    if (whole != NULL && !PyUnicode_Check(whole)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
    } else if (whole != NULL) {
        text = squeezed(&work->room, whole);
    }
    Py_XDECREF(whole);
    if (text != NULL && PyUnicode_GET_LENGTH(text) == 0) {
        Py_DECREF(text);
        text = PyObject_CallOneArg(work->label_of, anchor);
        if (text != NULL && !PyUnicode_Check(text)) {
            PyErr_SetString(PyExc_TypeError, "a label is a string");
            Py_CLEAR(text);
        }
    }
    if (text == NULL) {
        return NULL;
    }
    work->budget -= PyUnicode_GET_LENGTH(text) + 1;
    if (PyUnicode_GET_LENGTH(text) > work->longest) {
        PyObject *cut = PyUnicode_Substring(text, 0, work->longest);
        Py_DECREF(text);
        text = cut;
    }
    return text;
}

/* Whether a link is shown and says something: 1 if so, -1 for an error. */
static int says_enough(PyObject *known) {
    PyObject *text = PyObject_GetAttr(known, name_text);
    int said = text == NULL ? -1 : PyObject_IsTrue(text);
    Py_XDECREF(text);
    if (said != 1) {
        return said;
    }
    PyObject *hidden = PyObject_GetAttr(known, name_hidden);
    int unseen = hidden == NULL ? -1 : PyObject_IsTrue(hidden);
    Py_XDECREF(hidden);
    return unseen < 0 ? -1 : !unseen;
}

static int put_link(Work *work, PyObject *anchor, PyObject *url, PyObject *region, PyObject *unseen) {
    int enough = PySet_Contains(work->enough, url);
    PyObject *known = enough ? NULL : PyDict_GetItemWithError(work->found, url);
    if (enough || (known == NULL && PyErr_Occurred())) {
        return enough > 0 ? 0 : -1;
    }
    PyObject *text = text_of(work, anchor), *link = NULL;
    PyObject *rel = text ? attribute_value(anchor, name_rel) : NULL;
    PyObject *rels = rel == NULL      ? NULL
                     : rel == Py_None ? PyTuple_New(0)
                                      : PyObject_CallOneArg(work->rels_of, rel);
    if (rels != NULL) {
        PyObject *given[] = {url, text, rels, region, unseen};
        link = PyObject_Vectorcall(work->type, given, 5, NULL);
    }
    if (link != NULL && known != NULL) {
        PyObject *pair[] = {known, link};
        PyObject *chosen = PyObject_Vectorcall(work->better, pair, 2, NULL);
        Py_DECREF(link);
        link = chosen;
    }
    int failed = link == NULL || PyDict_SetItem(work->found, url, link) < 0;
    enough = failed ? -1 : says_enough(link);
    failed = enough < 0 || (enough && PySet_Add(work->enough, url) < 0);
    Py_XDECREF(text);
    Py_XDECREF(rel);
    Py_XDECREF(rels);
    Py_XDECREF(link);
    return failed ? -1 : 0;
}

static int read_anchor(Work *work, PyObject *anchor, PyObject *region, PyObject *unseen) {
    PyObject *href = attribute_value(anchor, name_href);
    if (href == NULL) {
        return -1;
    }
    int empty = !PyUnicode_Check(href) || PyUnicode_GET_LENGTH(href) == 0 ||
                PyUnicode_READ_CHAR(href, 0) == '#';
    PyObject *url = empty ? NULL : absolute_url(work->references, href);
    int failed = !empty && url == NULL;
    if (url == Py_None) {
        PyObject *nothing = PyObject_CallOneArg(work->keep_other, href);
        failed = nothing == NULL;
        Py_XDECREF(nothing);
    } else if (url != NULL) {
        failed = put_link(work, anchor, url, region, unseen) < 0;
    }
    Py_XDECREF(url);
    Py_DECREF(href);
    return failed ? -1 : 0;
}

/* A dict from URLs to links, in the order of the page. */
PyObject *native_links(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *anchors, *regions, *hidden;
    Work work = {0};
    if (!PyArg_ParseTuple(args, "O!O!O!O!(OOOOO)nn", &PyList_Type, &anchors, &PyList_Type, &regions,
                          &PyList_Type, &hidden, &ReferencesType, &work.references, &work.type,
                          &work.label_of, &work.better, &work.rels_of, &work.keep_other,
                          &work.longest, &work.budget)) {
        return NULL;
    }
    work.found = PyDict_New();
    work.enough = PySet_New(NULL);
    int failed = work.found == NULL || work.enough == NULL;
    /* What is called may change the lists. */
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(anchors); i++) {
        if (i >= PyList_GET_SIZE(regions) || i >= PyList_GET_SIZE(hidden)) {
            PyErr_SetString(PyExc_ValueError, "lists of different pages");
            failed = 1;
            break;
        }
        PyObject *anchor = Py_NewRef(PyList_GET_ITEM(anchors, i));
        PyObject *region = Py_NewRef(PyList_GET_ITEM(regions, i));
        PyObject *unseen = Py_NewRef(PyList_GET_ITEM(hidden, i));
        failed = read_anchor(&work, anchor, region, unseen) < 0;
        Py_DECREF(anchor);
        Py_DECREF(region);
        Py_DECREF(unseen);
    }
    if (failed) {
        Py_CLEAR(work.found);
    }
    Py_XDECREF(work.enough);
    PyMem_Free(work.room.data);
    return work.found;
}
