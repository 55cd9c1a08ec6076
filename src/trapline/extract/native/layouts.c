/* Which tables are for layout, and which have cells that span: the twin of `verdicts` in tables.py. */
#include "native.h"

/* What a tag is to a table, as tables.py has it. */
enum { ROW = 1, CELL = 2, HEADED = 4, FORM = 8, BLOCK = 16, PARAGRAPH = 32, ODD = 64 };
enum { SHOWN, SPANNED, LAYOUT, UNKNOWN };

typedef struct {
    PyObject *nodes;
    const int64_t *code, *parent, *last, *left, *tables;
    const uint8_t *kinds;
    uint8_t *alive;
    Py_ssize_t size, count, lefts;
} Tables;

static PyObject *name_role, *name_colspan, *name_rowspan;

static int names_open(void) {
    if (name_role == NULL) {
        name_role = PyUnicode_InternFromString("role");
        name_colspan = PyUnicode_InternFromString("colspan");
        name_rowspan = PyUnicode_InternFromString("rowspan");
    }
    return name_role == NULL || name_colspan == NULL || name_rowspan == NULL ? -1 : 0;
}

/* -1 for an error. */
static int has_attribute(const Tables *page, int64_t row, PyObject *name) {
    PyObject *value = attribute_value(PyList_GET_ITEM(page->nodes, row), name);
    int has = value == NULL ? -1 : value != Py_None;
    Py_XDECREF(value);
    return has;
}

/* Whether the next element beside a paragraph is one as well. */
static int is_followed(const Tables *page, int64_t row, int64_t end) {
    int64_t next = page->last[row] + 1;
    while (next <= end && page->parent[next] == page->parent[row] &&
           (page->code[next] < OTHER_TAG || !page->alive[next])) {
        next = page->last[next] + 1;
    }
    return next <= end && page->parent[next] == page->parent[row] &&
           page->kinds[page->code[next]] & PARAGRAPH;
}

/* What is in a table: its rows, the cells of the widest, and kinds of elements. */
typedef struct {
    Py_ssize_t rows, widest;
    int kinds, spans;
} Inside;

static int look_inside(const Tables *page, int64_t table, Inside *inside) {
    int64_t end = page->last[table], held_by = -1;
    Py_ssize_t cells = 0;
    for (int64_t row = table + 1; row <= end; row++) {
        int kind = page->alive[row] ? page->kinds[page->code[row]] : 0;
        if (kind & ROW) {
            inside->rows++;
        }
        if (kind & PARAGRAPH && is_followed(page, row, end)) {
            kind |= BLOCK;
        }
        if (kind & CELL && page->kinds[page->code[page->parent[row]]] & ROW) {
            cells = page->parent[row] == held_by ? cells + 1 : 1;
            held_by = page->parent[row];
            inside->widest = cells > inside->widest ? cells : inside->widest;
        }
        if (kind & CELL && inside->spans == 0) {
            int wide = has_attribute(page, row, name_colspan);
            inside->spans = wide ? wide : has_attribute(page, row, name_rowspan);
        }
        inside->kinds |= kind;
        if (inside->spans < 0) {
            return -1;
        }
    }
    return 0;
}

static int verdict_on(const Tables *page, int64_t table) {
    Inside inside = {0};
    int named = has_attribute(page, table, name_role);
    if (named < 0 || look_inside(page, table, &inside) < 0) {
        return -1;
    }
    if (named || inside.kinds & ODD) {
        return UNKNOWN;
    }
    int headed = inside.kinds & HEADED && !(inside.kinds & FORM);
    if (inside.widest <= 1 || (!headed && (inside.rows == 1 || inside.kinds & BLOCK))) {
        return LAYOUT;
    }
    return inside.spans ? SPANNED : SHOWN;
}

/* One for each table; None where one of them needs a closer look. */
static PyObject *verdicts(Tables *page) {
    for (Py_ssize_t i = 0; i < page->lefts; i++) {
        page->alive[page->left[i]] = 1;
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, page->count);
    for (Py_ssize_t i = 0; found != NULL && i < page->count; i++) {
        int verdict = verdict_on(page, page->tables[i]);
        if (verdict < 0 || verdict == UNKNOWN) {
            Py_DECREF(found);
            return verdict < 0 ? NULL : Py_NewRef(Py_None);
        }
        PyBytes_AS_STRING(found)[i] = (char)verdict;
    }
    return found;
}

PyObject *native_verdicts(PyObject *module, PyObject *args) {
    (void)module;
    enum { ARRAYS = 6 };
    Py_buffer array[ARRAYS];
    Tables page = {0};
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*y*y*", &PyList_Type, &page.nodes, array, array + 1, array + 2,
                          array + 3, array + 4, array + 5)) {
        return NULL;
    }
    const int64_t **places[ARRAYS - 1] = {&page.code, &page.parent, &page.last, &page.left, &page.tables};
    for (int i = 0; i < ARRAYS - 1; i++) {
        *places[i] = array[i].buf;
    }
    page.kinds = array[ARRAYS - 1].buf;
    page.size = PyList_GET_SIZE(page.nodes);
    page.lefts = array[3].len / (Py_ssize_t)sizeof(int64_t);
    page.count = array[4].len / (Py_ssize_t)sizeof(int64_t);
    page.alive = PyMem_Calloc(page.size + 1, 1);
    PyObject *found = NULL;
    if (page.alive == NULL) {
        PyErr_NoMemory();
    } else if (names_open() == 0 && tree_fits(page.size, array, array + 1, array + 2) == 0 &&
               numbers_fit(array + 3, page.lefts, page.size) == 0 &&
               numbers_fit(array + 4, page.count, page.size) == 0 &&
               array_fits(array + 5, design.tags, 1) == 0) {
        found = verdicts(&page);
    }
    PyMem_Free(page.alive);
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return found;
}
