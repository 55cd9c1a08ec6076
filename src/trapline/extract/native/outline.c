/* A parsed page as flat arrays: the twin of outline.py. */
#include "native.h"

static PyObject *array_of(Py_ssize_t size) {
    return PyBytes_FromStringAndSize(NULL, size * (Py_ssize_t)sizeof(int64_t));
}

static int64_t *items(PyObject *array) {
    return (int64_t *)PyBytes_AS_STRING(array);
}

/* The code of what is no element, by its type. */
static int code_of_kind(PyObject *kind) {
    PyObject *code = PyDict_GetItemWithError(design.codes, kind);
    if (code == NULL) {
        return PyErr_Occurred() ? -1 : OTHER_TAG;
    }
    long number = PyLong_AsLong(code);
    if (number < 0 || number >= design.tags) {
        PyErr_SetString(PyExc_ValueError, "the code of no tag");
        return -1;
    }
    return (int)number;
}

static int code_of(PyObject *node) {
    if (Py_TYPE(node) == design.text) {
        return TEXT_NODE;
    }
    if (Py_TYPE(node) != design.element) {
        return code_of_kind((PyObject *)Py_TYPE(node));
    }
    PyObject *tag = property(node, &element_tag);
    if (tag == NULL) {
        return -1;
    }
    int code = code_of_tag(tag);
    Py_DECREF(tag);
    return code < 0 ? OTHER_TAG : code;
}

/* The elements that are open at a place of the page, outermost first. */
typedef struct {
    PyObject **node;
    int64_t *row;
    Py_ssize_t size, room;
} Open;

static int open_push(Open *open, PyObject *node, int64_t row) {
    if (open->size == open->room) {
        Py_ssize_t room = open->room ? 2 * open->room : 256;
        PyObject **nodes = PyMem_Realloc(open->node, room * sizeof(PyObject *));
        if (nodes != NULL) {
            open->node = nodes;
        }
        int64_t *rows = PyMem_Realloc(open->row, room * sizeof(int64_t));
        if (rows != NULL) {
            open->row = rows;
        }
        if (nodes == NULL || rows == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        open->room = room;
    }
    open->node[open->size] = node;
    open->row[open->size++] = row;
    return 0;
}

/* The row of a node's parent. A node object stays the same as long as somebody has it. */
static int64_t parent_row(Open *open, PyObject *node) {
    PyObject *parent = property(node, Py_TYPE(node) == design.text ? &text_parent : &element_parent);
    if (parent == NULL) {
        return -1;
    }
    Py_DECREF(parent);
    while (open->size > 1 && open->node[open->size - 1] != parent) {
        open->size--;
    }
    return open->row[open->size - 1];
}

/* Nodes as they are met, with the code and the row of the parent of each. */
typedef struct {
    PyObject *node;
    int32_t code, parent;
} Met;

typedef struct {
    Met *met;
    Py_ssize_t size, room;
} Walk;

/* Takes the node over, also where it fails. */
static int walk_add(Walk *walk, PyObject *node, int code, int64_t parent) {
    if (walk->size == walk->room) {
        Py_ssize_t room = walk->room ? 2 * walk->room : 4096;
        Met *met = PyMem_Realloc(walk->met, room * sizeof(Met));
        if (met == NULL) {
            Py_DECREF(node);
            PyErr_NoMemory();
            return -1;
        }
        walk->met = met;
        walk->room = room;
    }
    walk->met[walk->size++] = (Met){node, code, (int32_t)parent};
    return code < 0 || parent < 0 ? -1 : 0;
}

/* The nodes as a list, which takes them over. */
static PyObject *walk_end(Walk *walk, int failed) {
    PyObject *nodes = failed ? NULL : PyList_New(walk->size);
    for (Py_ssize_t row = 0; row < walk->size; row++) {
        if (nodes == NULL) {
            Py_DECREF(walk->met[row].node);
        } else {
            PyList_SET_ITEM(nodes, row, walk->met[row].node);
        }
    }
    return nodes;
}

/* Reads nodes in their order; returns how deep they go. */
static Py_ssize_t read_nodes(PyObject *tree, Py_ssize_t most, Walk *walk) {
    Open open = {0};
    Py_ssize_t depth = -1, deepest = 1;
    PyObject *descendants = PyObject_GetAttr(tree, name_descendants);
    PyObject *nodes = descendants ? PyObject_GetIter(descendants) : NULL, *node = NULL;
    if (nodes == NULL || walk_add(walk, Py_NewRef(tree), OTHER_NODE, 0) < 0 ||
        open_push(&open, tree, 0) < 0) {
        goto done;
    }
    iternextfunc next = Py_TYPE(nodes)->tp_iternext;
    for (Py_ssize_t row = 1; row <= most && (node = next(nodes)) != NULL; row++) {
        int code = code_of(node);
        if (walk_add(walk, node, code, code < 0 ? -1 : parent_row(&open, node)) < 0) {
            goto done;
        }
        deepest = open.size + 1 > deepest ? open.size + 1 : deepest;
        if (code != TEXT_NODE && open_push(&open, node, row) < 0) {
            goto done;
        }
    }
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyErr_Clear();
    }
    if (!PyErr_Occurred()) {
        depth = deepest;
    }
done:
    PyMem_Free(open.node);
    PyMem_Free(open.row);
    Py_XDECREF(descendants);
    Py_XDECREF(nodes);
    return depth;
}

/* Rows in order of their code, and where those of each code start. */
static PyObject *arrange(const int64_t *code, Py_ssize_t size, int64_t *by_code) {
    int64_t starts[MAX_CODES + 1] = {0};
    for (Py_ssize_t row = 0; row < size; row++) {
        starts[code[row] + 1]++;
    }
    PyObject *list = PyList_New(design.tags + 1);
    for (int tag = 0; list != NULL && tag <= design.tags; tag++) {
        starts[tag] += tag ? starts[tag - 1] : 0;
        PyObject *start = PyLong_FromLongLong(starts[tag]);
        if (start == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, tag, start);
    }
    for (Py_ssize_t row = 0; list != NULL && row < size; row++) {
        by_code[starts[code[row]]++] = row;
    }
    return list;
}

PyObject *native_outline(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *tree, *result = NULL, *code = NULL, *parent = NULL, *last = NULL, *by_code = NULL;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(args, "On", &tree, &most)) {
        return NULL;
    }
    if (design.codes == NULL || most < 0 || most >= MAX_ROWS) {
        PyErr_SetString(PyExc_ValueError, "not configured, or too many nodes");
        return NULL;
    }
    Walk walk = {0};
    Py_ssize_t depth = read_nodes(tree, most, &walk), size = walk.size;
    PyObject *nodes = walk_end(&walk, depth < 0), *starts = NULL;
    if (nodes == NULL) {
        goto done;
    }
    code = array_of(size);
    parent = array_of(size);
    last = array_of(size);
    by_code = array_of(size);
    if (code == NULL || parent == NULL || last == NULL || by_code == NULL) {
        goto done;
    }
    for (Py_ssize_t row = 0; row < size; row++) {
        items(code)[row] = walk.met[row].code;
        items(parent)[row] = walk.met[row].parent;
        items(last)[row] = row;
    }
    for (Py_ssize_t row = size - 1; row > 0; row--) {
        int64_t *above = items(last) + items(parent)[row];
        *above = *above > items(last)[row] ? *above : items(last)[row];
    }
    starts = arrange(items(code), size, items(by_code));
    if (starts != NULL) {
        result = Py_BuildValue("OOOOOOn", nodes, code, parent, last, by_code, starts, depth);
    }
done:
    PyMem_Free(walk.met);
    Py_XDECREF(nodes);
    Py_XDECREF(code);
    Py_XDECREF(parent);
    Py_XDECREF(last);
    Py_XDECREF(by_code);
    Py_XDECREF(starts);
    return result;
}

static int add_row(PyObject *rows, Py_ssize_t row) {
    PyObject *number = PyLong_FromSsize_t(row);
    int failed = number == NULL || PyList_Append(rows, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* The rows of nodes that are in the order of the page, as most are: how many of them were met. */
static Py_ssize_t rows_in_order(PyObject *nodes, PyObject *wanted, PyObject *rows) {
    Py_ssize_t size = PyList_GET_SIZE(nodes), count = PyList_GET_SIZE(wanted), met = 0;
    for (Py_ssize_t row = 0; row < size && met < count; row++) {
        if (PyList_GET_ITEM(nodes, row) == PyList_GET_ITEM(wanted, met)) {
            if (add_row(rows, row) < 0) {
                return -1;
            }
            met++;
        }
    }
    return met;
}

static int rows_in_any_order(PyObject *nodes, PyObject *wanted, PyObject *rows) {
    Py_ssize_t size = PyList_GET_SIZE(nodes), count = PyList_GET_SIZE(wanted);
    int failed = 0;
    Numbers places;
    if (numbers_open(&places, count + 1) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        number_of(&places, (int64_t)(intptr_t)PyList_GET_ITEM(wanted, i));
    }
    for (Py_ssize_t row = 0; row < size && !failed; row++) {
        int known = is_numbered(&places, (int64_t)(intptr_t)PyList_GET_ITEM(nodes, row));
        failed = known && add_row(rows, row) < 0;
    }
    numbers_close(&places);
    return failed ? -1 : 0;
}

/* The rows of some nodes, ascending; those of another tree have none. */
PyObject *native_rows(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *nodes, *wanted;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &nodes, &PyList_Type, &wanted)) {
        return NULL;
    }
    PyObject *rows = PyList_New(0);
    Py_ssize_t met = rows == NULL ? -1 : rows_in_order(nodes, wanted, rows);
    int all = met == PyList_GET_SIZE(wanted);
    if (met < 0 || (!all && (PyList_SetSlice(rows, 0, met, NULL) < 0 ||
                             rows_in_any_order(nodes, wanted, rows) < 0))) {
        Py_CLEAR(rows);
    }
    return rows;
}
