/* A parsed page as flat arrays, and its text cut into blocks: the twin of outline.py and blocks.py. */
#include "native.h"
#include <string.h>

static PyObject *array_of(Py_ssize_t size) {
    return PyBytes_FromStringAndSize(NULL, size * (Py_ssize_t)sizeof(int64_t));
}

static int64_t *items(PyObject *array) {
    return (int64_t *)PyBytes_AS_STRING(array);
}

static int code_of(PyObject *node) {
    if (Py_TYPE(node) == design.text) {
        return TEXT_NODE;
    }
    PyObject *kind = NULL;
    if (Py_TYPE(node) == design.element) {
        kind = PyObject_GetAttr(node, name_tag);
        if (kind == NULL) {
            return -1;
        }
    } else {
        kind = Py_NewRef((PyObject *)Py_TYPE(node));
    }
    PyObject *code = PyDict_GetItemWithError(design.codes, kind);
    Py_DECREF(kind);
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
    PyObject *parent = PyObject_GetAttr(node, name_parent);
    if (parent == NULL) {
        return -1;
    }
    Py_DECREF(parent);
    while (open->size > 1 && open->node[open->size - 1] != parent) {
        open->size--;
    }
    return open->row[open->size - 1];
}

/* Reads nodes into a list, with the code and the parent of each; returns how deep they go. */
static Py_ssize_t read_nodes(PyObject *tree, Py_ssize_t most, PyObject *nodes, Letters *pairs) {
    Open open = {0};
    Py_ssize_t depth = -1, deepest = 1;
    PyObject *descendants = PyObject_GetAttr(tree, name_descendants);
    PyObject *walk = descendants ? PyObject_GetIter(descendants) : NULL, *node = NULL;
    if (walk == NULL || PyList_Append(nodes, tree) < 0 || open_push(&open, tree, 0) < 0 ||
        letters_add(pairs, OTHER_NODE) < 0 || letters_add(pairs, 0) < 0) {
        goto done;
    }
    for (Py_ssize_t row = 1; row <= most && (node = PyIter_Next(walk)) != NULL; row++) {
        int failed = PyList_Append(nodes, node) < 0;
        Py_DECREF(node);
        int code = failed ? -1 : code_of(node);
        int64_t parent = code < 0 ? -1 : parent_row(&open, node);
        if (parent < 0 || letters_add(pairs, (Py_UCS4)code) < 0 ||
            letters_add(pairs, (Py_UCS4)parent) < 0) {
            goto done;
        }
        deepest = open.size + 1 > deepest ? open.size + 1 : deepest;
        if (code != TEXT_NODE && open_push(&open, node, row) < 0) {
            goto done;
        }
    }
    if (!PyErr_Occurred()) {
        depth = deepest;
    }
done:
    PyMem_Free(open.node);
    PyMem_Free(open.row);
    Py_XDECREF(descendants);
    Py_XDECREF(walk);
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
    Letters pairs = {0};
    PyObject *nodes = PyList_New(0), *starts = NULL;
    Py_ssize_t depth = nodes ? read_nodes(tree, most, nodes, &pairs) : -1;
    if (depth < 0) {
        goto done;
    }
    Py_ssize_t size = PyList_GET_SIZE(nodes);
    code = array_of(size);
    parent = array_of(size);
    last = array_of(size);
    by_code = array_of(size);
    if (code == NULL || parent == NULL || last == NULL || by_code == NULL) {
        goto done;
    }
    for (Py_ssize_t row = 0; row < size; row++) {
        items(code)[row] = pairs.data[2 * row];
        items(parent)[row] = pairs.data[2 * row + 1];
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
    PyMem_Free(pairs.data);
    Py_XDECREF(nodes);
    Py_XDECREF(code);
    Py_XDECREF(parent);
    Py_XDECREF(last);
    Py_XDECREF(by_code);
    Py_XDECREF(starts);
    return result;
}

/* Blocks as they are found; arrays of 64-bit numbers that grow together. */
typedef struct {
    int64_t *words, *owner, *first, *piece_row, *piece_block, *piece_size;
    Py_ssize_t blocks, pieces;
    PyObject *texts;
    Letters letters;
    int inside_word;
    int64_t counted;
} Found;

static int add_text(Found *found, PyObject *text) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        if (Py_UNICODE_ISSPACE(letter)) {
            found->inside_word = 0;
            continue;
        }
        if (!found->inside_word) {
            if (found->letters.size && letters_add(&found->letters, ' ') < 0) {
                return -1;
            }
            found->inside_word = 1;
            found->counted++;
        }
        if (letters_add(&found->letters, letter) < 0) {
            return -1;
        }
    }
    return 0;
}

static int end_block(Found *found) {
    if (found->blocks == 0) {
        return 0;
    }
    PyObject *text =
        PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, found->letters.data, found->letters.size);
    int failed = text == NULL || PyList_Append(found->texts, text) < 0;
    Py_XDECREF(text);
    found->words[found->blocks - 1] = found->counted;
    found->letters.size = 0;
    found->inside_word = 0;
    found->counted = 0;
    return failed ? -1 : 0;
}

static int is_blank(PyObject *text) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < size; i++) {
        if (!Py_UNICODE_ISSPACE(PyUnicode_READ(kind, data, i))) {
            return 0;
        }
    }
    return size > 0;
}

/* What separates one text from the text before it. */
typedef struct {
    int64_t owner, opened, breaks;
    int spaced;
} Place;

static int add_piece(Found *found, PyObject *text, int64_t row, Place before, Place here) {
    int64_t breaks = here.breaks - before.breaks;
    if (found->blocks == 0 || here.owner != before.owner || here.opened != before.opened ||
        breaks >= 2) {
        if (end_block(found) < 0) {
            return -1;
        }
        found->owner[found->blocks] = here.owner;
        found->first[found->blocks++] = row;
    } else if (here.spaced || breaks > 0) {
        found->inside_word = 0;
    }
    found->piece_row[found->pieces] = row;
    found->piece_block[found->pieces] = found->blocks - 1;
    found->piece_size[found->pieces++] = PyUnicode_GET_LENGTH(text);
    return add_text(found, text);
}

static int find_blocks(Found *found, PyObject *nodes, const int64_t *code, const int64_t *parent,
                       const int64_t *last, int64_t *owner) {
    Py_ssize_t size = PyList_GET_SIZE(nodes);
    int64_t hidden_to = -1;
    Place before = {-1, -1, 0, 0}, here = {0};
    for (Py_ssize_t row = 0; row < size; row++) {
        int64_t kind = code[row];
        if (kind != TEXT_NODE) {
            int block_level = design.block[kind] || kind == OTHER_NODE;
            owner[row] = block_level ? row : owner[parent[row]];
            here.opened += block_level;
            here.breaks += kind == design.br;
            if (row > hidden_to && design.hidden[kind]) {
                hidden_to = last[row];
            }
            continue;
        }
        if (row <= hidden_to) {
            continue;
        }
        PyObject *text = PyObject_GetAttr(PyList_GET_ITEM(nodes, row), name_data);
        if (text == NULL) {
            return -1;
        }
        if (!PyUnicode_Check(text)) {
            PyErr_SetString(PyExc_TypeError, "a text is a string");
            Py_DECREF(text);
            return -1;
        }
        int failed = 0;
        if (is_blank(text)) {
            here.spaced = 1;
        } else {
            here.owner = owner[parent[row]];
            failed = add_piece(found, text, row, before, here) < 0;
            here.spaced = 0;
            before = here;
        }
        Py_DECREF(text);
        if (failed) {
            return -1;
        }
    }
    return end_block(found);
}

static PyObject *numbers(const int64_t *data, Py_ssize_t size) {
    return PyBytes_FromStringAndSize((const char *)data, size * (Py_ssize_t)sizeof(int64_t));
}

PyObject *native_blocks(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *nodes, *result = NULL;
    Py_buffer code, parent, last;
    if (!PyArg_ParseTuple(args, "O!y*y*y*", &PyList_Type, &nodes, &code, &parent, &last)) {
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(nodes), texts = 0;
    Found found = {0};
    int64_t *room = NULL;
    if (tree_fits(size, &code, &parent, &last) < 0) {
        goto done;
    }
    for (Py_ssize_t row = 0; row < size; row++) {
        texts += ((const int64_t *)code.buf)[row] == TEXT_NODE;
    }
    found.texts = PyList_New(0);
    room = PyMem_Malloc((6 * texts + size + 1) * sizeof(int64_t));
    if (room == NULL) {
        PyErr_NoMemory();
    } else if (found.texts != NULL) {
        found.words = room;
        found.owner = room + texts;
        found.first = room + 2 * texts;
        found.piece_row = room + 3 * texts;
        found.piece_block = room + 4 * texts;
        found.piece_size = room + 5 * texts;
        if (find_blocks(&found, nodes, code.buf, parent.buf, last.buf, room + 6 * texts) == 0) {
            result = Py_BuildValue(
                "ONNNNNN", found.texts, numbers(found.words, found.blocks),
                numbers(found.owner, found.blocks), numbers(found.first, found.blocks),
                numbers(found.piece_row, found.pieces), numbers(found.piece_block, found.pieces),
                numbers(found.piece_size, found.pieces));
        }
    }
done:
    Py_XDECREF(found.texts);
    PyMem_Free(found.letters.data);
    PyMem_Free(room);
    PyBuffer_Release(&code);
    PyBuffer_Release(&parent);
    PyBuffer_Release(&last);
    return result;
}

/* The rows of some nodes, ascending; those of another tree have none. */
PyObject *native_rows(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *nodes, *wanted;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &nodes, &PyList_Type, &wanted)) {
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(nodes), count = PyList_GET_SIZE(wanted);
    Numbers places;
    PyObject *rows = PyList_New(0);
    if (rows == NULL || numbers_open(&places, count + 1) < 0) {
        Py_XDECREF(rows);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        number_of(&places, (int64_t)(intptr_t)PyList_GET_ITEM(wanted, i));
    }
    for (Py_ssize_t row = 0; row < size && rows != NULL; row++) {
        if (is_numbered(&places, (int64_t)(intptr_t)PyList_GET_ITEM(nodes, row))) {
            PyObject *number = PyLong_FromSsize_t(row);
            if (number == NULL || PyList_Append(rows, number) < 0) {
                Py_CLEAR(rows);
            }
            Py_XDECREF(number);
        }
    }
    numbers_close(&places);
    return rows;
}

PyObject *text_between(PyObject *nodes, const int64_t *code, Py_ssize_t from, Py_ssize_t to) {
    PyObject *parts = PyList_New(0), *empty = PyUnicode_FromString(""), *result = NULL;
    PyObject *line = PyUnicode_FromString("\n");
    int failed = parts == NULL || empty == NULL || line == NULL;
    for (Py_ssize_t row = from; !failed && row <= to; row++) {
        if (code[row] == TEXT_NODE) {
            PyObject *text = PyObject_GetAttr(PyList_GET_ITEM(nodes, row), name_data);
            failed = text == NULL || PyList_Append(parts, text) < 0;
            Py_XDECREF(text);
        } else if (code[row] == design.br) {
            failed = PyList_Append(parts, line) < 0;
        }
    }
    if (!failed) {
        result = PyUnicode_Join(empty, parts);
    }
    Py_XDECREF(parts);
    Py_XDECREF(empty);
    Py_XDECREF(line);
    return result;
}

PyObject *native_written(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *nodes, *result = NULL;
    Py_buffer code;
    Py_ssize_t from, to;
    if (!PyArg_ParseTuple(args, "O!y*nn", &PyList_Type, &nodes, &code, &from, &to)) {
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(nodes);
    if (array_fits(&code, size, sizeof(int64_t)) == 0) {
        result = text_between(nodes, code.buf, from > 0 ? from : 0, to < size ? to : size - 1);
    }
    PyBuffer_Release(&code);
    return result;
}
