/* Cuts a tree down to the chosen blocks: main_content/pruning.py. */
#include "native.h"
#include <string.h>

/* What is known of a row: it or something in it is wanted, it is a text of a block, it left the tree. */
enum { NEEDED = 1, PIECE = 2, GONE = 4 };

typedef struct {
    PyObject *nodes;
    Py_ssize_t size, blocks, pieces;
    const int64_t *code, *parent, *last, *words, *first, *piece_row, *piece_block;
    const uint8_t *chosen;
    uint8_t *marks;
    /* The words up to each block, and of those the chosen ones. */
    int64_t *all_words, *kept_words;
    int32_t *holders;
} Pruning;

static void need(Pruning *pruning, int64_t row) {
    for (; row > 0 && !(pruning->marks[row] & NEEDED); row = pruning->parent[row]) {
        pruning->marks[row] |= NEEDED;
    }
}

/* How many blocks begin before a row. */
static Py_ssize_t blocks_before(const Pruning *pruning, int64_t row) {
    Py_ssize_t low = 0, high = pruning->blocks;
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (pruning->first[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int64_t words_within(const Pruning *pruning, const int64_t *running, int64_t row) {
    return running[blocks_before(pruning, pruning->last[row] + 1)] - running[blocks_before(pruning, row)];
}

/* The innermost element with words that a row is or stands in. What was found on the way up is kept, so
 * that no way is gone twice. */
static int64_t holder_of(Pruning *pruning, int64_t row) {
    int64_t holder = row;
    while (holder > 0 && !pruning->holders[holder] &&
           words_within(pruning, pruning->all_words, holder) == 0) {
        holder = pruning->parent[holder];
    }
    holder = pruning->holders[holder] ? pruning->holders[holder] : holder;
    for (; row > holder; row = pruning->parent[row]) {
        pruning->holders[row] = (int32_t)holder;
    }
    return holder;
}

/* A picture between two chosen blocks, or beside one in an element that is mostly chosen. */
static int is_among_chosen(Pruning *pruning, int64_t row) {
    Py_ssize_t following = blocks_before(pruning, row);
    int before = following > 0 && pruning->chosen[following - 1];
    int after = following < pruning->blocks && pruning->chosen[following];
    if (before == after) {
        return before;
    }
    int64_t holder = holder_of(pruning, row);
    int64_t words = words_within(pruning, pruning->all_words, holder);
    int64_t kept = words_within(pruning, pruning->kept_words, holder);
    return kept / (double)(words > 1 ? words : 1) > 0.5;
}

static void need_media(Pruning *pruning) {
    for (Py_ssize_t block = 0; block < pruning->blocks; block++) {
        int64_t words = pruning->words[block];
        pruning->all_words[block + 1] = pruning->all_words[block] + words;
        pruning->kept_words[block + 1] = pruning->kept_words[block] + (pruning->chosen[block] ? words : 0);
    }
    for (Py_ssize_t row = 0; row < pruning->size; row++) {
        if (config.media[pruning->code[row]] && is_among_chosen(pruning, row)) {
            need(pruning, row);
        }
    }
}

static void need_chosen(Pruning *pruning) {
    for (Py_ssize_t piece = 0; piece < pruning->pieces; piece++) {
        int64_t row = pruning->piece_row[piece];
        pruning->marks[row] |= PIECE;
        if (pruning->chosen[pruning->piece_block[piece]]) {
            need(pruning, row);
        }
    }
}

/* Whether a row can go that is not needed. What is in one that goes goes with it. */
static int is_droppable(const Pruning *pruning, int64_t row) {
    int64_t code = pruning->code[row], above = pruning->parent[row];
    if (code == TEXT_NODE ? !(pruning->marks[row] & PIECE)
                          : code == OTHER_NODE || config.kept_empty[code] || config.frame[code]) {
        return 0;
    }
    return above == 0 || config.frame[pruning->code[above]] || pruning->marks[above] & NEEDED;
}

/* The rows of the outermost subtrees that hold nothing wanted, ascending: how many there are. */
static Py_ssize_t find_unwanted(Pruning *pruning, int32_t *rows) {
    Py_ssize_t count = 0;
    for (Py_ssize_t row = 1; row < pruning->size; row++) {
        if (!(pruning->marks[row] & NEEDED) && is_droppable(pruning, row)) {
            rows[count++] = (int32_t)row;
            memset(pruning->marks + row, GONE, pruning->last[row] + 1 - row);
            row = pruning->last[row];
        }
    }
    return count;
}

/* Puts the nodes of those texts that are cut by themselves where none was kept: few pages have such. */
static int fetch_texts(Pruning *pruning, const int32_t *rows, Py_ssize_t count) {
    while (count > 0 && pruning->code[rows[count - 1]] != TEXT_NODE) {
        count--;
    }
    if (count == 0) {
        return 0;
    }
    PyObject *descendants = PyObject_GetAttr(PyList_GET_ITEM(pruning->nodes, 0), name_descendants);
    PyObject *nodes = descendants ? PyObject_GetIter(descendants) : NULL, *node = NULL;
    for (Py_ssize_t row = 1, next = 0; nodes != NULL && next < count; row++) {
        node = PyIter_Next(nodes);
        if (node == NULL) {
            break;
        }
        int is_next = row == rows[next];
        next += is_next;
        if (is_next && pruning->code[row] == TEXT_NODE) {
            PyList_SetItem(pruning->nodes, row, node);
        } else {
            Py_DECREF(node);
        }
    }
    Py_XDECREF(descendants);
    Py_XDECREF(nodes);
    return PyErr_Occurred() ? -1 : 0;
}

static int cut(Pruning *pruning) {
    /* The holders of pictures are known no longer. */
    int32_t *rows = pruning->holders;
    Py_ssize_t count = find_unwanted(pruning, rows);
    int failed = fetch_texts(pruning, rows, count) < 0;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        PyObject *node = PyList_GET_ITEM(pruning->nodes, rows[i]);
        PyObject *done = PyObject_CallMethodNoArgs(node, name_decompose);
        failed = done == NULL;
        Py_XDECREF(done);
    }
    return failed ? -1 : 0;
}

/* The rows of the elements that are left, in order of their code, and where those of each code
 * start. */
static PyObject *left_of(const Pruning *pruning, const int64_t *by_code, Py_ssize_t rows) {
    for (; rows > 0 && pruning->code[*by_code] < OTHER_TAG; rows--) {
        by_code++;
    }
    PyObject *left = PyBytes_FromStringAndSize(NULL, rows * (Py_ssize_t)sizeof(int64_t));
    PyObject *starts = PyList_New(config.tags + 1);
    int64_t count[MAX_CODES] = {0}, start = 0, *next = left ? (int64_t *)PyBytes_AS_STRING(left) : NULL;
    for (Py_ssize_t i = 0; next != NULL && i < rows; i++) {
        int64_t row = by_code[i];
        *next = row;
        int stays = !(pruning->marks[row] & GONE);
        next += stays;
        count[pruning->code[row]] += stays;
    }
    for (int tag = 0; starts != NULL && tag <= config.tags; tag++) {
        int is_new = tag == 0 || count[tag - 1] > 0;
        PyObject *number = is_new ? PyLong_FromLongLong(start) : Py_NewRef(PyList_GET_ITEM(starts, tag - 1));
        start += tag < config.tags ? count[tag] : 0;
        if (number == NULL) {
            Py_CLEAR(starts);
        } else {
            PyList_SET_ITEM(starts, tag, number);
        }
    }
    if (left != NULL && starts != NULL) {
        _PyBytes_Resize(&left, start * (Py_ssize_t)sizeof(int64_t));
    }
    PyObject *result = left && starts ? PyTuple_Pack(2, left, starts) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(starts);
    return result;
}

PyObject *native_prune(PyObject *module, PyObject *args) {
    (void)module;
    enum { ARRAYS = 9 };
    Py_buffer array[ARRAYS];
    Pruning pruning = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*y*y*y*y*y*", &PyList_Type, &pruning.nodes, array,
                          array + 1, array + 2, array + 3, array + 4, array + 5, array + 6, array + 7,
                          array + 8)) {
        return NULL;
    }
    const int64_t *by_code = NULL;
    const int64_t **places[ARRAYS - 1] = {&pruning.code,  &pruning.parent,    &pruning.last,
                                          &by_code,       &pruning.words,     &pruning.first,
                                          &pruning.piece_row, &pruning.piece_block};
    for (int i = 0; i < ARRAYS - 1; i++) {
        *places[i] = array[i].buf;
    }
    pruning.chosen = array[ARRAYS - 1].buf;
    pruning.size = PyList_GET_SIZE(pruning.nodes);
    pruning.blocks = array[ARRAYS - 1].len;
    pruning.pieces = array[6].len / (Py_ssize_t)sizeof(int64_t);
    Py_ssize_t size = pruning.size, blocks = pruning.blocks, pieces = pruning.pieces;
    Py_ssize_t rows = array[3].len / (Py_ssize_t)sizeof(int64_t);
    if (tree_fits(size, array, array + 1, array + 2) < 0 ||
        numbers_fit(array + 3, rows, size) < 0 || numbers_fit(array + 4, blocks, INT64_MAX) < 0 ||
        numbers_fit(array + 5, blocks, size) < 0 || numbers_fit(array + 6, pieces, size) < 0 ||
        numbers_fit(array + 7, pieces, blocks) < 0) {
        goto done;
    }
    pruning.marks = PyMem_Calloc(size, 1);
    pruning.holders = PyMem_Calloc(size, sizeof(int32_t));
    pruning.all_words = PyMem_Calloc(2 * (blocks + 1), sizeof(int64_t));
    if (pruning.marks == NULL || pruning.holders == NULL || pruning.all_words == NULL) {
        PyErr_NoMemory();
    } else {
        pruning.kept_words = pruning.all_words + blocks + 1;
        need_chosen(&pruning);
        need_media(&pruning);
        result = cut(&pruning) < 0 ? NULL : left_of(&pruning, by_code, rows);
    }
    PyMem_Free(pruning.marks);
    PyMem_Free(pruning.holders);
    PyMem_Free(pruning.all_words);
done:
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return result;
}
