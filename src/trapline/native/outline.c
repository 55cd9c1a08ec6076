/* A parsed page as flat arrays: the counterpart of outline.py. */
#include "blocks.h"

static PyObject *array_of(Py_ssize_t size) {
    return PyBytes_FromStringAndSize(NULL, size * (Py_ssize_t)sizeof(int64_t));
}

static int64_t *items(PyObject *array) {
    return (int64_t *)PyBytes_AS_STRING(array);
}

/* The code of what is no element, by its type. */
static int code_of_kind(PyObject *kind) {
    PyObject *code = PyDict_GetItemWithError(config.codes, kind);
    if (code == NULL) {
        return PyErr_Occurred() ? -1 : OTHER_TAG;
    }
    long number = PyLong_AsLong(code);
    if (number < 0 || number >= config.tags) {
        PyErr_SetString(PyExc_ValueError, "the code of no tag");
        return -1;
    }
    return (int)number;
}

/* The elements of one tag, as the parser lists them, and which of them is the next to be met. */
typedef struct {
    PyObject *elements, *next;
    Py_ssize_t met;
    int code;
} TagCursor;

/* Elements of the commonest tags, which most are, need not be asked for theirs: a node that is the next
 * of a list has that list's tag. What is in none of them is asked. */
typedef struct {
    TagCursor tags[MAX_COMMON];
    Py_ssize_t size;
} Common;

static void tag_cursor_step(TagCursor *listed) {
    Py_ssize_t place = listed->met++;
    listed->next =
        place < PyList_GET_SIZE(listed->elements) ? PyList_GET_ITEM(listed->elements, place) : NULL;
}

static int common_open(Common *common, PyObject *tree) {
    for (; common->size < PyTuple_GET_SIZE(config.common); common->size++) {
        PyObject *tag = PyTuple_GET_ITEM(config.common, common->size);
        TagCursor *listed = common->tags + common->size;
        *listed = (TagCursor){PyObject_CallMethodOneArg(tree, name_find_all, tag), NULL, 0, code_of_tag(tag)};
        if (listed->elements == NULL || !PyList_CheckExact(listed->elements)) {
            Py_XDECREF(listed->elements);
            return PyErr_Occurred() ? -1 : 0;
        }
        tag_cursor_step(listed);
    }
    return 0;
}

static void common_close(Common *common) {
    while (common->size > 0) {
        Py_DECREF(common->tags[--common->size].elements);
    }
}

static int code_of(Common *common, PyObject *node) {
    if (Py_TYPE(node) == config.text) {
        return TEXT_NODE;
    }
    if (Py_TYPE(node) != config.element) {
        return code_of_kind((PyObject *)Py_TYPE(node));
    }
    for (Py_ssize_t i = 0; i < common->size; i++) {
        if (common->tags[i].next == node) {
            tag_cursor_step(common->tags + i);
            return common->tags[i].code;
        }
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
    OpenElement *holding;
    Py_ssize_t size, room;
} Open;

static const OpenElement *innermost(const Open *open) {
    return open->holding + open->size - 1;
}

static int open_grow(Open *open) {
    Py_ssize_t room = open->room ? 2 * open->room : 256;
    OpenElement *holding = PyMem_Realloc(open->holding, room * sizeof(OpenElement));
    if (holding == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    open->holding = holding;
    open->room = room;
    return 0;
}

static inline int open_push(Open *open, PyObject *node, Py_ssize_t row, int code) {
    if (open->size == open->room && open_grow(open) < 0) {
        return -1;
    }
    OpenElement above = open->size ? *innermost(open) : (OpenElement){0};
    open->holding[open->size++] = (OpenElement){
        .node = node,
        .row = (int32_t)row,
        .owner = is_block_level(code) ? (int32_t)row : above.owner,
        .is_hidden = above.is_hidden | config.hidden[code],
        .is_code = above.is_code | (code == config.pre),
    };
    return 0;
}

/* A node's parent, which becomes the innermost element. A node object stays the same as long as somebody has
 * it. */
static const OpenElement *parent_of(Open *open, PyObject *node) {
    PyObject *parent = property(node, Py_TYPE(node) == config.text ? &text_parent : &element_parent);
    if (parent == NULL) {
        return NULL;
    }
    Py_DECREF(parent);
    while (open->size > 1 && innermost(open)->node != parent) {
        open->size--;
    }
    return innermost(open);
}

/* Nodes as they are met, with the code and the row of the parent of each; texts have none that is kept. */
typedef struct {
    PyObject *node;
    int32_t code, parent;
} VisitedNode;

typedef struct {
    VisitedNode *met;
    Py_ssize_t size, room;
} Walk;

/* Takes the node over, also where it fails. */
static int walk_add(Walk *walk, PyObject *node, int code, int32_t parent) {
    if (walk->size == walk->room) {
        Py_ssize_t room = walk->room ? 2 * walk->room : 4096;
        VisitedNode *met = PyMem_Realloc(walk->met, room * sizeof(VisitedNode));
        if (met == NULL) {
            Py_DECREF(node);
            PyErr_NoMemory();
            return -1;
        }
        walk->met = met;
        walk->room = room;
    }
    walk->met[walk->size++] = (VisitedNode){node, code, parent};
    return 0;
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

/* Passes a text on to the blocks, and keeps nothing of it: nodes of texts are many, and nearly all are
 * never asked for again. */
static int meet_text(Walk *walk, BlockBuilder *found, const OpenElement *parent, PyObject *node) {
    PyObject *text = is_asked_for(parent) ? property(node, &text_data) : Py_NewRef(Py_None);
    int failed = text == NULL || (is_asked_for(parent) && pass_text(found, walk->size, parent, text) < 0);
    Py_XDECREF(text);
    Py_DECREF(node);
    return failed ? -1 : walk_add(walk, Py_NewRef(Py_None), TEXT_NODE, parent->row);
}

/* Takes the node over. */
static int meet(Walk *walk, Open *open, BlockBuilder *found, PyObject *node, int code) {
    const OpenElement *parent = code < 0 ? NULL : parent_of(open, node);
    if (parent == NULL) {
        Py_DECREF(node);
        return -1;
    }
    if (code == TEXT_NODE) {
        return meet_text(walk, found, parent, node);
    }
    Py_ssize_t row = walk->size;
    if (walk_add(walk, node, code, parent->row) < 0) {
        return -1;
    }
    return pass_element(found, code) < 0 ? -1 : open_push(open, node, row, code);
}

/* Reads nodes in their order; returns how deep they go. */
static Py_ssize_t read_nodes(PyObject *tree, Py_ssize_t most, Walk *walk, BlockBuilder *found) {
    Open open = {0};
    Common common = {0};
    Py_ssize_t depth = -1, deepest = 1;
    PyObject *descendants = PyObject_GetAttr(tree, name_descendants);
    PyObject *nodes = descendants ? PyObject_GetIter(descendants) : NULL, *node = NULL;
    if (nodes == NULL || common_open(&common, tree) < 0 || walk_add(walk, Py_NewRef(tree), OTHER_NODE, 0) < 0 ||
        pass_element(found, OTHER_NODE) < 0 || open_push(&open, tree, 0, OTHER_NODE) < 0) {
        goto done;
    }
    iternextfunc next = Py_TYPE(nodes)->tp_iternext;
    for (Py_ssize_t row = 1; row <= most && (node = next(nodes)) != NULL; row++) {
        int code = code_of(&common, node);
        if (meet(walk, &open, found, node, code) < 0) {
            goto done;
        }
        Py_ssize_t depth_here = open.size + (code == TEXT_NODE);
        deepest = depth_here > deepest ? depth_here : deepest;
    }
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_StopIteration)) {
        PyErr_Clear();
    }
    if (!PyErr_Occurred()) {
        depth = deepest;
    }
done:
    common_close(&common);
    PyMem_Free(open.holding);
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
    PyObject *list = PyList_New(config.tags + 1);
    for (int tag = 0; list != NULL && tag <= config.tags; tag++) {
        int is_new = tag == 0 || starts[tag] > 0;
        starts[tag] += tag ? starts[tag - 1] : 0;
        /* Most tags are not there. */
        PyObject *start =
            is_new ? PyLong_FromLongLong(starts[tag]) : Py_NewRef(PyList_GET_ITEM(list, tag - 1));
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
    if (config.codes == NULL || most < 0 || most >= MAX_ROWS) {
        PyErr_SetString(PyExc_ValueError, "not configured, or too many nodes");
        return NULL;
    }
    Walk walk = {0};
    BlockBuilder *found = blocks_open();
    Py_ssize_t depth = found == NULL ? -1 : read_nodes(tree, most, &walk, found), size = walk.size;
    PyObject *nodes = walk_end(&walk, depth < 0), *starts = NULL;
    PyObject *blocks = nodes == NULL ? NULL : blocks_made(found);
    if (blocks == NULL) {
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
        result = Py_BuildValue("O(OOOO)OnO", nodes, code, parent, last, by_code, starts, depth, blocks);
    }
done:
    PyMem_Free(walk.met);
    blocks_close(found);
    Py_XDECREF(blocks);
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
