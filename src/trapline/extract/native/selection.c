/* From scores to a choice of blocks, and from that to what is left of the tree: the twin of
 * selection.py and pruning.py. */
#include "native.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATED_WORDS = 3, DATA_QUOTES = 8 };

typedef struct {
    float score;
    int32_t block;
} Ranked;

/* The best score first; of equal ones the first of the page. What is no number comes last: qsort
 * may leave its array where the order contradicts itself. */
static int by_score(const void *one, const void *other) {
    const Ranked *a = one, *b = other;
    int strange = isnan(a->score) != 0, stranger = isnan(b->score) != 0;
    if (strange != stranger) {
        return strange - stranger;
    }
    if (!strange && a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return (a->block > b->block) - (a->block < b->block);
}

/* Marks the best blocks up to where the expected F-beta is highest; recall is the square of beta. */
static void take_prefix(Ranked *ranked, Py_ssize_t size, const int64_t *words, double recall,
                        uint8_t *chosen) {
    double all = 0, hits = 0, taken = 0, best = -1;
    /* The first at least: where scores or words come to nothing, no prefix is better than another. */
    Py_ssize_t end = size > 0;
    qsort(ranked, size, sizeof(Ranked), by_score);
    for (Py_ssize_t i = 0; i < size; i++) {
        all += (double)ranked[i].score * (double)words[ranked[i].block];
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        double count = (double)words[ranked[i].block];
        hits += ranked[i].score * count;
        taken += count;
        double expected = hits / (taken + recall * all);
        if (expected > best) {
            best = expected;
            end = i + 1;
        }
    }
    for (Py_ssize_t i = 0; i < end; i++) {
        chosen[ranked[i].block] = 1;
    }
}

/* What was left in the page for its scripts. */
static int is_data(PyObject *text) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    if (size < 2) {
        return 0;
    }
    Py_UCS4 first = PyUnicode_READ_CHAR(text, 0), second = PyUnicode_READ_CHAR(text, 1);
    if (!(first == '{' && second == '"') && !(first == '[' && (second == '{' || second == '['))) {
        return 0;
    }
    int quotes = 0;
    for (Py_ssize_t i = 0; i < size && quotes < DATA_QUOTES; i++) {
        quotes += PyUnicode_READ_CHAR(text, i) == '"';
    }
    return quotes >= DATA_QUOTES;
}

static int drop_repeats(PyObject *texts, const int64_t *words, uint8_t *chosen) {
    PyObject *seen = PySet_New(NULL);
    int failed = seen == NULL;
    for (Py_ssize_t block = 0; !failed && block < PyList_GET_SIZE(texts); block++) {
        if (!chosen[block] || words[block] < REPEATED_WORDS) {
            continue;
        }
        PyObject *text = PyList_GET_ITEM(texts, block);
        int known = PySet_Contains(seen, text);
        failed = known < 0 || (!known && PySet_Add(seen, text) < 0);
        chosen[block] = known ? 0 : 1;
    }
    Py_XDECREF(seen);
    return failed ? -1 : 0;
}

static int choose(PyObject *texts, const float *scores, const int64_t *words, double floor,
                  double recall, uint8_t *chosen, uint8_t *best, Ranked *ranked) {
    Py_ssize_t size = PyList_GET_SIZE(texts);
    for (Py_ssize_t block = 0; block < size; block++) {
        ranked[block] = (Ranked){scores[block], (int32_t)block};
    }
    take_prefix(ranked, size, words, recall, best);
    for (int pass = 0; pass < 2; pass++) {
        int any = 0;
        for (Py_ssize_t block = 0; block < size; block++) {
            chosen[block] = best[block] && (pass || scores[block] >= floor) &&
                            !is_data(PyList_GET_ITEM(texts, block));
            any |= chosen[block];
        }
        if (any) {
            return drop_repeats(texts, words, chosen);
        }
    }
    memcpy(chosen, best, size);
    return 0;
}

/* The blocks that were chosen, how many words they have, and the best score of all. */
static PyObject *choice_of(PyObject *flags, const int64_t *words, const Ranked *ranked) {
    const char *chosen = PyByteArray_AS_STRING(flags);
    Py_ssize_t size = PyByteArray_GET_SIZE(flags);
    int64_t all = 0;
    for (Py_ssize_t block = 0; block < size; block++) {
        all += chosen[block] ? words[block] : 0;
    }
    return Py_BuildValue("OLf", flags, (long long)all, size ? ranked[0].score : 1.0f);
}

PyObject *native_choose(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *texts, *flags = NULL, *result = NULL;
    Py_buffer scores, words;
    float floor;
    double recall;
    if (!PyArg_ParseTuple(args, "O!y*y*fd", &PyList_Type, &texts, &scores, &words, &floor,
                          &recall)) {
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(texts);
    Ranked *ranked = PyMem_Malloc((size + 1) * sizeof(Ranked));
    uint8_t *best = PyMem_Calloc(size + 1, 1);
    if (ranked == NULL || best == NULL) {
        PyErr_NoMemory();
    } else if (array_fits(&scores, size, sizeof(float)) == 0 &&
               array_fits(&words, size, sizeof(int64_t)) == 0 && texts_fit(texts) == 0) {
        flags = PyByteArray_FromStringAndSize(NULL, size);
    }
    if (flags != NULL && choose(texts, scores.buf, words.buf, floor, recall,
                                (uint8_t *)PyByteArray_AS_STRING(flags), best, ranked) == 0) {
        result = choice_of(flags, words.buf, ranked);
    }
    Py_XDECREF(flags);
    PyMem_Free(ranked);
    PyMem_Free(best);
    PyBuffer_Release(&scores);
    PyBuffer_Release(&words);
    return result;
}

typedef struct {
    PyObject *nodes;
    Py_ssize_t size, blocks, pieces;
    const int64_t *code, *parent, *last, *words, *first, *piece_row, *piece_block;
    const uint8_t *chosen;
    int64_t *all_words, *kept_words, *wanted;
    int32_t *near;
    uint8_t *text, *gone;
} Pruning;

static int64_t within(const Pruning *pruning, const int64_t *running, int64_t row) {
    return running[pruning->last[row] + 1] - running[row];
}

static void run_up(int64_t *values, Py_ssize_t size) {
    for (Py_ssize_t row = 0; row < size; row++) {
        values[row + 1] += values[row];
    }
}

static int has_media(const Pruning *pruning) {
    int found = 0;
    for (Py_ssize_t row = 0; row < pruning->size; row++) {
        found |= design.media[pruning->code[row]];
    }
    return found;
}

/* Pictures between two chosen blocks, or beside one in an element that is mostly chosen. */
static void want_media(Pruning *pruning) {
    Py_ssize_t following = 0;
    for (Py_ssize_t block = 0; block < pruning->blocks; block++) {
        int64_t row = pruning->first[block] + 1, words = pruning->words[block];
        pruning->all_words[row] += words;
        pruning->kept_words[row] += pruning->chosen[block] ? words : 0;
    }
    run_up(pruning->all_words, pruning->size);
    run_up(pruning->kept_words, pruning->size);
    for (Py_ssize_t row = 0; row < pruning->size; row++) {
        int64_t total = within(pruning, pruning->all_words, row);
        pruning->near[row] = total > 0 || row == 0 ? (int32_t)row : pruning->near[pruning->parent[row]];
        while (following < pruning->blocks && pruning->first[following] < row) {
            following++;
        }
        if (!design.media[pruning->code[row]]) {
            continue;
        }
        int before = following > 0 && pruning->chosen[following - 1];
        int after = following < pruning->blocks && pruning->chosen[following];
        int64_t holder = pruning->near[row];
        int64_t words = within(pruning, pruning->all_words, holder);
        double part = within(pruning, pruning->kept_words, holder) / (double)(words > 1 ? words : 1);
        pruning->wanted[row + 1] = (before && after) || ((before || after) && part > 0.5);
    }
}

/* Removes every outermost subtree that holds nothing wanted. */
static int cut(Pruning *pruning) {
    for (Py_ssize_t piece = 0; piece < pruning->pieces; piece++) {
        int64_t row = pruning->piece_row[piece];
        pruning->text[row] = 1;
        pruning->wanted[row + 1] |= pruning->chosen[pruning->piece_block[piece]];
    }
    run_up(pruning->wanted, pruning->size);
    for (Py_ssize_t row = 1; row < pruning->size; row++) {
        int64_t code = pruning->code[row], above = pruning->parent[row];
        if ((code == TEXT_NODE && !pruning->text[row]) || within(pruning, pruning->wanted, row) > 0 ||
            code == OTHER_NODE || design.kept_empty[code] || design.frame[code]) {
            continue;
        }
        if (above == 0 || design.frame[pruning->code[above]] ||
            within(pruning, pruning->wanted, above) > 0) {
            PyObject *done =
                PyObject_CallMethodNoArgs(PyList_GET_ITEM(pruning->nodes, row), name_decompose);
            if (done == NULL) {
                return -1;
            }
            Py_DECREF(done);
            memset(pruning->gone + row, 1, pruning->last[row] + 1 - row);
            row = pruning->last[row];
        }
    }
    return 0;
}

/* The rows of the elements that are left, in order of their code, and where those of each code
 * start. */
static PyObject *left_of(const Pruning *pruning, const int64_t *by_code, Py_ssize_t rows) {
    for (; rows > 0 && pruning->code[*by_code] < OTHER_TAG; rows--) {
        by_code++;
    }
    PyObject *left = PyBytes_FromStringAndSize(NULL, rows * (Py_ssize_t)sizeof(int64_t));
    PyObject *starts = PyList_New(design.tags + 1);
    int64_t count[MAX_CODES] = {0}, start = 0, *next = left ? (int64_t *)PyBytes_AS_STRING(left) : NULL;
    for (Py_ssize_t i = 0; next != NULL && i < rows; i++) {
        int64_t row = by_code[i];
        *next = row;
        next += !pruning->gone[row];
        count[pruning->code[row]] += !pruning->gone[row];
    }
    for (int tag = 0; starts != NULL && tag <= design.tags; tag++) {
        PyObject *number = PyLong_FromLongLong(start);
        start += tag < design.tags ? count[tag] : 0;
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
    int media = has_media(&pruning);
    int64_t *room = PyMem_Calloc((media ? 3 : 1) * (pruning.size + 1), sizeof(int64_t));
    pruning.near = PyMem_Malloc((media ? pruning.size + 1 : 1) * sizeof(int32_t));
    pruning.text = PyMem_Calloc(pruning.size + 1, 2);
    if (room == NULL || pruning.near == NULL || pruning.text == NULL) {
        PyErr_NoMemory();
    } else {
        pruning.wanted = room;
        pruning.gone = pruning.text + pruning.size + 1;
        if (media) {
            pruning.all_words = room + pruning.size + 1;
            pruning.kept_words = room + 2 * (pruning.size + 1);
            want_media(&pruning);
        }
        result = cut(&pruning) < 0 ? NULL : left_of(&pruning, by_code, rows);
    }
    PyMem_Free(room);
    PyMem_Free(pruning.near);
    PyMem_Free(pruning.text);
done:
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return result;
}
