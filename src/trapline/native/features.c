/* What the model is told of each block: the counterpart of features.py and vocabulary.py. */
#include "page.h"
#include <string.h>

enum { KEYS = 6 };

/* Sections, and what the words of their headings score. */
static int read_sections(Page *page) {
    Py_ssize_t most = page->blocks + 1, sections = 1, open = 1;
    int32_t *ranks = PyMem_Malloc(2 * most * sizeof(int32_t));
    if (ranks == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int32_t *numbers = ranks + most;
    ranks[0] = numbers[0] = 0;
    page->section_above[0] = 0;
    page->heading_scores[0] = (Summary){0, 0, 0};
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        int32_t rank = (int32_t)page->code[page->owner[block]];
        if (config.heading[rank]) {
            PyObject *text = PyList_GET_ITEM(page->texts, block);
            WordHashes sought;
            if (seek_text(page->headings, text, &page->room, &sought) < 0) {
                PyMem_Free(ranks);
                return -1;
            }
            page->heading_scores[sections] = summary_of_few(page->headings, &sought);
            while (open > 1 && ranks[open - 1] >= rank) {
                open--;
            }
            page->section_above[sections] = numbers[open - 1];
            ranks[open] = rank;
            numbers[open++] = (int32_t)sections++;
        }
        page->section[block] = (int32_t)sections - 1;
    }
    page->sections = sections;
    PyMem_Free(ranks);
    return 0;
}

static int is_wanted(Py_ssize_t made, Py_ssize_t wanted) {
    if (made != wanted) {
        PyErr_Format(PyExc_ValueError, "%zd features where %zd are wanted", made, wanted);
        return 0;
    }
    return 1;
}

static int find_alike(const Page *page, BlockGroups *alike, int64_t *keys) {
    Numbers groups;
    if (numbers_open(&groups, page->blocks + 1) < 0) {
        return -1;
    }
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        const int32_t *level = page->level[block];
        keys[block] = (int64_t)page->signature[level[0]] * 31 + page->signature[level[1]];
        int32_t group = alike->group[block] = number_of(&groups, keys[block]);
        alike->count[group] += 1;
        alike->words[group] += page->words[block];
    }
    for (int32_t group = 0; group < groups.count; group++) {
        alike->mean[group] = log1p((double)alike->words[group] / alike->count[group]);
    }
    numbers_close(&groups);
    return 0;
}

static int fill(Page *page, float *matrix, Py_ssize_t width, int64_t *keys) {
    Py_ssize_t blocks = page->blocks;
    int64_t *sums = PyMem_Calloc(2 * (blocks + 1), sizeof(int64_t));
    double *means = PyMem_Malloc((blocks + 1) * sizeof(double));
    int32_t *small = PyMem_Calloc(3 * (blocks + 2), sizeof(int32_t));
    int failed = 1;
    if (sums == NULL || means == NULL || small == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    BlockGroups alike = {small, sums, sums + blocks + 1, means};
    int32_t *number = small + blocks + 2, *copies = number + blocks + 2;
    if (find_alike(page, &alike, keys) < 0 || number_texts(page, number, copies) < 0) {
        goto done;
    }
    Progress progress = start_of(page);
    /* What holds four fifths holds half. */
    int64_t half = root_of(page, 0.5, page->size - 1);
    const int64_t roots[2] = {half, root_of(page, 0.8, half)};
    float passed = 0;
    int32_t met = 0;
    /* The words of a block, and of the next one: they are looked up a block later. */
    WordHashes sought[2];
    if (blocks > 0 && seek_words(page, 0, sought) < 0) {
        goto done;
    }
    for (Py_ssize_t block = 0; block < blocks; block++) {
        float cells[MOST_COLUMNS];
        Row row = {cells};
        Py_ssize_t next = block + 1;
        if (next < blocks && seek_words(page, next, sought + next % 2) < 0) {
            goto done;
        }
        put_echo(page, block, &row);
        put_text(page, block, &row);
        put_tags(page, block, &row);
        put_place(page, block, &progress, &row);
        put_containers(page, block, roots, &row);
        put_record(page, block, &alike, &row);
        put(&row, log_of(copies[number[block]] - 1));
        put(&row, number[block] > met);
        met = number[block] > met ? number[block] : met;
        put_names(page, block, &row);
        put_words(page, block, sought + block % 2, &passed, &row);
        if (!is_wanted(row.next - cells, width)) {
            goto done;
        }
        memcpy(matrix + block * width, cells, width * sizeof(float));
        int64_t record = page->records[block];
        int32_t section = page->section[block];
        keys[blocks + block] = page->parent[record];
        keys[2 * blocks + block] = record;
        keys[3 * blocks + block] = page->level[block][2];
        keys[4 * blocks + block] = section;
        keys[5 * blocks + block] = page->section_above[section];
    }
    failed = 0;
done:
    PyMem_Free(sums);
    PyMem_Free(means);
    PyMem_Free(small);
    return failed ? -1 : 0;
}

/* What the page says of itself. */
static int put_hints(const Page *page, float *vector) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(page->hints); i++) {
        double value = PyFloat_AsDouble(PyList_GET_ITEM(page->hints, i));
        if (value == -1 && PyErr_Occurred()) {
            return -1;
        }
        vector[i] = (float)value;
    }
    return 0;
}

/* Numbers about the whole page, and its hints after them. */
static int describe(const Page *page, const float *matrix, Py_ssize_t width, float *vector,
                    Py_ssize_t vector_size) {
    float cells[MOST_COLUMNS];
    Row row = {cells};
    int64_t tags[MAX_CODES] = {0}, long_words = 0, longs = 0;
    for (Py_ssize_t i = 0; i < page->size; i++) {
        tags[page->code[i]]++;
    }
    for (int i = 0; i < config.counted.size; i++) {
        put(&row, log_of(tags[config.counted.code[i]]));
    }
    double words = at_least_one(total(page, 0, WORDS));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(config.shared); i++) {
        long column = PyLong_AsLong(PyTuple_GET_ITEM(config.shared, i));
        if (column < 0 || column >= width) {
            PyErr_SetString(PyExc_ValueError, "a column of another model");
            return -1;
        }
        int64_t inside = 0;
        for (Py_ssize_t block = 0; block < page->blocks; block++) {
            inside += matrix[block * width + column] > 0 ? page->words[block] : 0;
        }
        put(&row, inside / words);
    }
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        longs += page->words[block] > 12;
        long_words += page->words[block] > 12 ? page->words[block] : 0;
    }
    put(&row, log_of(page->blocks));
    put(&row, log1p(words));
    put(&row, total(page, 0, LINK_CHARS) / at_least_one(total(page, 0, CHARS)));
    put(&row, log_of(longs));
    put(&row, long_words / words);
    put(&row, longs ? log1p((double)long_words / longs) : 0.0);
    put(&row, total(page, 0, STOPS) / words);
    if (!is_wanted(row.next - cells, vector_size)) {
        return -1;
    }
    memcpy(vector, cells, vector_size * sizeof(float));
    return put_hints(page, vector + vector_size);
}

static int read_echo(Page *page, PyObject *echo) {
    page->echoes = PySet_GET_SIZE(echo);
    if (lexicon_open(&page->echo, page->echoes) < 0) {
        return -1;
    }
    PyObject *walk = PyObject_GetIter(echo), *word;
    int failed = walk == NULL;
    while (!failed && (word = PyIter_Next(walk)) != NULL) {
        Py_ssize_t size = PyUnicode_Check(word) ? PyUnicode_GET_LENGTH(word) : 0;
        if (size == 0) {
            PyErr_SetString(PyExc_TypeError, "a word is a string with letters");
            failed = 1;
        } else {
            failed = lexicon_add(&page->echo, word, &page->room) < 0;
            page->longest_echo = size > page->longest_echo ? size : page->longest_echo;
            uint8_t first = narrowed(PyUnicode_READ_CHAR(word, 0));
            uint8_t second = size > 1 ? narrowed(PyUnicode_READ_CHAR(word, 1)) : ' ';
            page->echo_sizes[echo_place(first, second)] |= (uint64_t)1 << (size < 63 ? size : 63);
        }
        Py_DECREF(word);
    }
    Py_XDECREF(walk);
    /* Words of texts that may be one of them are written there. */
    return failed || PyErr_Occurred() ? -1 : lowered_open(&page->room, 4 * page->longest_echo);
}

/* One piece of memory for everything that is made; given back at once. */
static int room_for(Page *page, Arena *room) {
    Py_ssize_t size = page->size + 1, blocks = page->blocks + 1, holders = 0;
    for (Py_ssize_t row = 0; row < page->size; row++) {
        holders += page->code[row] != TEXT_NODE;
    }
    struct {
        void *place;
        Py_ssize_t bytes;
    } parts[] = {
        {&page->holders, holders * (Py_ssize_t)sizeof(ElementContext)},
        {&page->chars, blocks * (Py_ssize_t)sizeof(int64_t)},
        {&page->link_chars, blocks * (Py_ssize_t)sizeof(int64_t)},
        {&page->density, blocks * (Py_ssize_t)sizeof(double)},
        {&page->passed, blocks * (Py_ssize_t)sizeof(page->passed[0])},
        {&page->holder_of, size * (Py_ssize_t)sizeof(int32_t)},
        {&page->element, size * (Py_ssize_t)sizeof(int32_t)},
        {&page->signature, size * (Py_ssize_t)sizeof(uint32_t)},
        {&page->alike, size * (Py_ssize_t)sizeof(int32_t)},
        {&page->repeats, (holders + 1) * (Py_ssize_t)sizeof(int32_t)},
        {&page->parts, blocks * (Py_ssize_t)sizeof(page->parts[0])},
        {&page->named, holders * (Py_ssize_t)sizeof(Summary)},
        {&page->running, size * (Py_ssize_t)sizeof(page->running[0])},
        {&page->measures, holders * (Py_ssize_t)sizeof(page->measures[0])},
        {&page->measured, holders},
        {&page->holding, holders},
        {&page->level, blocks * (Py_ssize_t)sizeof(page->level[0])},
        {&page->records, blocks * (Py_ssize_t)sizeof(int32_t)},
        {&page->landmarks, blocks * (Py_ssize_t)sizeof(int32_t)},
        {&page->section, blocks * (Py_ssize_t)sizeof(int32_t)},
        {&page->section_above, blocks * (Py_ssize_t)sizeof(int32_t)},
        {&page->counts, blocks * (Py_ssize_t)sizeof(page->counts[0])},
        {&page->heading_scores, blocks * (Py_ssize_t)sizeof(Summary)},
    };
    Py_ssize_t bytes = 0, count = sizeof(parts) / sizeof(parts[0]);
    for (Py_ssize_t i = 0; i < count; i++) {
        bytes += (parts[i].bytes + 15) / 16 * 16;
    }
    if (arena_acquire(room, (size_t)bytes) < 0) {
        return -1;
    }
    char *at = room->memory;
    for (Py_ssize_t i = 0; i < count; i++) {
        memcpy(parts[i].place, &at, sizeof(at));
        at += (parts[i].bytes + 15) / 16 * 16;
    }
    memset(page->named, 0, holders * sizeof(Summary));
    memset(page->measured, 0, holders);
    int32_t number = 0;
    for (Py_ssize_t row = 0; row < page->size; row++) {
        int64_t code = page->code[row];
        /* Without a branch: whether a text or an element comes next cannot be foretold. */
        int32_t text = code == TEXT_NODE;
        page->holder_of[row] = number | -text;
        page->element[number] = (int32_t)row;
        number += !text;
        page->signature[row] = (uint32_t)code;
        page->named_elements += config.named[code];
    }
    page->elements = number;
    return 0;
}

static PyObject *read_page(Page *page, PyObject *echo, Py_ssize_t width) {
    Py_ssize_t vector_size = config.counted.size + PyTuple_GET_SIZE(config.shared) + 7;
    Py_ssize_t hints = PyList_GET_SIZE(page->hints), item = sizeof(float);
    PyObject *matrix = NULL, *vector = NULL, *keys = NULL, *result = NULL;
    Arena room = {NULL, 0};
    logs_open();
    if (room_for(page, &room) < 0 || read_echo(page, echo) < 0 || read_names(page) < 0 ||
        count_repeats(page) < 0) {
        goto done;
    }
    inherit(page);
    place_blocks(page);
    count_characters(page);
    sum_up(page);
    sum_blocks(page);
    matrix = PyByteArray_FromStringAndSize(NULL, page->blocks * width * item);
    vector = PyByteArray_FromStringAndSize(NULL, (vector_size + hints) * item);
    keys = PyByteArray_FromStringAndSize(NULL, KEYS * page->blocks * (Py_ssize_t)sizeof(int64_t));
    if (matrix == NULL || vector == NULL || keys == NULL || read_sections(page) < 0) {
        goto done;
    }
    float *cells = (float *)PyByteArray_AS_STRING(matrix);
    if (fill(page, cells, width, (int64_t *)PyByteArray_AS_STRING(keys)) < 0) {
        goto done;
    }
    if (describe(page, cells, width, (float *)PyByteArray_AS_STRING(vector), vector_size) == 0) {
        result = PyTuple_Pack(3, matrix, vector, keys);
    }
done:
    Py_XDECREF(matrix);
    Py_XDECREF(vector);
    Py_XDECREF(keys);
    lexicon_close(&page->echo);
    lowered_close(&page->room);
    arena_release(&room);
    return result;
}

/* In the order in which they are handed over. */
static int arrays_fit(const Page *page, const Py_buffer *array) {
    Py_ssize_t size = page->size, blocks = page->blocks, pieces = page->pieces;
    if (tree_fits(size, array, array + 1, array + 2) < 0 || texts_fit(page->texts) < 0 ||
        numbers_fit(array + 3, blocks, INT32_MAX) < 0 || numbers_fit(array + 4, blocks, size) < 0 ||
        numbers_fit(array + 5, blocks, size) < 0 || numbers_fit(array + 6, pieces, size) < 0 ||
        numbers_fit(array + 7, pieces, blocks) < 0 || numbers_fit(array + 8, pieces, INT32_MAX) < 0) {
        return -1;
    }
    for (Py_ssize_t block = 0; block < blocks; block++) {
        if (page->code[page->owner[block]] == TEXT_NODE) {
            PyErr_SetString(PyExc_ValueError, "a block stands in an element");
            return -1;
        }
    }
    return 0;
}

PyObject *native_reading(PyObject *module, PyObject *args) {
    (void)module;
    enum { ARRAYS = 9 };
    Py_buffer array[ARRAYS];
    PyObject *echo, *lexicons[4], *result = NULL;
    Py_ssize_t width;
    Page page = {0};
    if (!PyArg_ParseTuple(args, "O!y*y*y*O!y*y*y*y*y*y*O!O!(OOOO)n", &PyList_Type, &page.nodes, array,
                          array + 1, array + 2, &PyList_Type, &page.texts, array + 3, array + 4,
                          array + 5, array + 6, array + 7, array + 8, &PyFrozenSet_Type, &echo,
                          &PyList_Type, &page.hints, lexicons, lexicons + 1, lexicons + 2, lexicons + 3, &width)) {
        return NULL;
    }
    const int64_t **places[ARRAYS] = {&page.code,      &page.parent,      &page.last,
                                      &page.words,     &page.owner,       &page.first,
                                      &page.piece_row, &page.piece_block, &page.piece_size};
    for (int i = 0; i < ARRAYS; i++) {
        *places[i] = array[i].buf;
    }
    page.size = PyList_GET_SIZE(page.nodes);
    page.blocks = PyList_GET_SIZE(page.texts);
    page.pieces = array[6].len / (Py_ssize_t)sizeof(int64_t);
    page.names = lexicon_of(lexicons[0]);
    page.short_texts = lexicon_of(lexicons[1]);
    page.headings = lexicon_of(lexicons[2]);
    page.prose = lexicon_of(lexicons[3]);
    if (!PyErr_Occurred() && arrays_fit(&page, array) == 0 && width_fits(width) == 0) {
        result = read_page(&page, echo, width);
    }
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return result;
}
