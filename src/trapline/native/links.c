/* The links of a page: the counterpart of the loop in links.py. */
#include "url_resolution.h"

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

/* Where on the page its rows stand, as one after another is asked for. */
typedef struct {
    const int64_t *last, *hidden;
    Py_ssize_t size, hidden_size, next_hidden, next_landmark;
    /* The landmarks with their regions, by ascending rows, and the region of all else. */
    PyObject *landmarks, *elsewhere, *region;
    int64_t covered, hidden_to;
} Places;

/* Steps to the landmark that a row stands in, if any: of nested ones to the outermost. */
static int reach_landmark(Places *places, int64_t row) {
    for (; places->next_landmark < PyList_GET_SIZE(places->landmarks); places->next_landmark++) {
        PyObject *landmark = PyList_GET_ITEM(places->landmarks, places->next_landmark);
        if (!PyTuple_Check(landmark) || PyTuple_GET_SIZE(landmark) != 2) {
            PyErr_SetString(PyExc_TypeError, "a landmark is a row and a region");
            return -1;
        }
        Py_ssize_t start = PyLong_AsSsize_t(PyTuple_GET_ITEM(landmark, 0));
        if (start < 0 || start >= places->size) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "a landmark of another page");
            }
            return -1;
        }
        if (start > row) {
            break;
        }
        if (start > places->covered) {
            places->covered = places->last[start];
            Py_XSETREF(places->region, Py_NewRef(PyTuple_GET_ITEM(landmark, 1)));
        }
    }
    return 0;
}

static PyObject *is_hidden(Places *places, int64_t row) {
    for (; places->next_hidden < places->hidden_size; places->next_hidden++) {
        int64_t start = places->hidden[places->next_hidden];
        if (start > row) {
            break;
        }
        places->hidden_to = places->last[start] > places->hidden_to ? places->last[start] : places->hidden_to;
    }
    return row <= places->hidden_to ? Py_True : Py_False;
}

static int read_row(Work *work, Places *places, PyObject *nodes, int64_t row) {
    /* What is called may change the lists. */
    if (row >= PyList_GET_SIZE(nodes)) {
        PyErr_SetString(PyExc_ValueError, "rows of different pages");
        return -1;
    }
    if (reach_landmark(places, row) < 0) {
        return -1;
    }
    PyObject *anchor = Py_NewRef(PyList_GET_ITEM(nodes, row));
    PyObject *region = Py_NewRef(row <= places->covered ? places->region : places->elsewhere);
    int failed = read_anchor(work, anchor, region, is_hidden(places, row)) < 0;
    Py_DECREF(anchor);
    Py_DECREF(region);
    return failed ? -1 : 0;
}

static int read_rows(Work *work, Places *places, PyObject *nodes, const int64_t *rows, Py_ssize_t count) {
    work->found = PyDict_New();
    work->enough = PySet_New(NULL);
    int failed = work->found == NULL || work->enough == NULL;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        failed = read_row(work, places, nodes, rows[i]) < 0;
    }
    if (failed) {
        Py_CLEAR(work->found);
    }
    Py_XDECREF(work->enough);
    PyMem_Free(work->room.data);
    return failed ? -1 : 0;
}

/* A dict from URLs to links, in the order of the page. */
PyObject *native_links(PyObject *module, PyObject *args) {
    (void)module;
    enum { ARRAYS = 3, ITEM = sizeof(int64_t) };
    PyObject *nodes;
    Py_buffer array[ARRAYS];
    Work work = {0};
    Places places = {.covered = -1, .hidden_to = -1};
    if (!PyArg_ParseTuple(args, "O!y*y*(O!Oy*)O!(OOOOO)nn", &PyList_Type, &nodes, array, array + 1,
                          &PyList_Type, &places.landmarks, &places.elsewhere, array + 2, &ReferencesType,
                          &work.references, &work.type, &work.label_of, &work.better, &work.rels_of,
                          &work.keep_other, &work.longest, &work.budget)) {
        return NULL;
    }
    places.size = PyList_GET_SIZE(nodes);
    places.hidden_size = array[2].len / ITEM;
    Py_ssize_t count = array[1].len / ITEM;
    if (numbers_fit(array, places.size, places.size) == 0 && numbers_fit(array + 1, count, places.size) == 0 &&
        numbers_fit(array + 2, places.hidden_size, places.size) == 0) {
        places.last = array[0].buf;
        places.hidden = array[2].buf;
        read_rows(&work, &places, nodes, array[1].buf, count);
    }
    Py_XDECREF(places.region);
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return work.found;
}
