/* The choice of blocks by their scores: main_content/selection.py. */
#include "native.h"
#include <math.h>
#include <string.h>

enum { REPEATED_WORDS = 3, DATA_QUOTES = 8 };

typedef struct {
    uint32_t key;
    int32_t block;
} Ranked;

/* A number that is smaller for a better score, and largest for what is no number. */
static uint32_t key_of(float score) {
    uint32_t bits;
    score += 0.0F; /* There is one zero. */
    memcpy(&bits, &score, sizeof(bits));
    return isnan(score) ? UINT32_MAX : bits >> 31 ? bits : ~(bits | (uint32_t)1 << 31);
}

/* Sorts by the four bytes of keys, the last of them first; what is equal stays in order. `room` is for
 * as many. */
static void rank(Ranked *ranked, Ranked *room, Py_ssize_t size) {
    int32_t starts[4][257] = {{0}};
    for (Py_ssize_t i = 0; i < size; i++) {
        for (int byte = 0; byte < 4; byte++) {
            starts[byte][1 + (ranked[i].key >> 8 * byte & 0xff)]++;
        }
    }
    for (int byte = 0; byte < 4; byte++) {
        for (int i = 1; i < 257; i++) {
            starts[byte][i] += starts[byte][i - 1];
        }
        for (Py_ssize_t i = 0; i < size; i++) {
            room[starts[byte][ranked[i].key >> 8 * byte & 0xff]++] = ranked[i];
        }
        Ranked *sorted = room;
        room = ranked;
        ranked = sorted;
    }
}

/* Marks the best blocks up to where the expected F-beta is highest; recall is the square of beta. */
static void take_prefix(const Ranked *ranked, Py_ssize_t size, const float *scores, const int64_t *words,
                        double recall, uint8_t *chosen) {
    double all = 0, hits = 0, taken = 0, best = -1;
    /* The first at least: where scores or words come to nothing, no prefix is better than another. */
    Py_ssize_t end = size > 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        all += (double)scores[ranked[i].block] * (double)words[ranked[i].block];
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        double count = (double)words[ranked[i].block];
        hits += scores[ranked[i].block] * count;
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
        ranked[block] = (Ranked){key_of(scores[block]), (int32_t)block};
    }
    rank(ranked, ranked + size, size);
    take_prefix(ranked, size, scores, words, recall, best);
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
static PyObject *choice_of(PyObject *flags, const float *scores, const int64_t *words,
                           const Ranked *ranked) {
    const char *chosen = PyByteArray_AS_STRING(flags);
    Py_ssize_t size = PyByteArray_GET_SIZE(flags);
    int64_t all = 0;
    for (Py_ssize_t block = 0; block < size; block++) {
        all += chosen[block] ? words[block] : 0;
    }
    return Py_BuildValue("OLf", flags, (long long)all, size ? scores[ranked[0].block] : 1.0F);
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
    Ranked *ranked = PyMem_Malloc((2 * size + 1) * sizeof(Ranked));
    uint8_t *best = PyMem_Calloc(size + 1, 1);
    if (ranked == NULL || best == NULL) {
        PyErr_NoMemory();
    } else if (array_fits(&scores, size, sizeof(float)) == 0 &&
               array_fits(&words, size, sizeof(int64_t)) == 0 && texts_fit(texts) == 0) {
        flags = PyByteArray_FromStringAndSize(NULL, size);
    }
    if (flags != NULL && choose(texts, scores.buf, words.buf, floor, recall,
                                (uint8_t *)PyByteArray_AS_STRING(flags), best, ranked) == 0) {
        result = choice_of(flags, scores.buf, words.buf, ranked);
    }
    Py_XDECREF(flags);
    PyMem_Free(ranked);
    PyMem_Free(best);
    PyBuffer_Release(&scores);
    PyBuffer_Release(&words);
    return result;
}
