/* What each element of a page is, what it passes on to all that it holds, and what that sums up to. */
#include "page.h"
#include <string.h>

double logs[LOGS], near_logs[SPANS][NEAR_LOGS];

void logs_open(void) {
    if (logs[LOGS - 1] != 0) {
        return;
    }
    for (int i = 1; i < LOGS; i++) {
        logs[i] = log1p(i);
    }
    for (int span = 0; span < SPANS; span++) {
        for (int i = 0; i < NEAR_LOGS; i++) {
            near_logs[span][i] = log1p(i / (2.0 * span_of(span) + 1));
        }
    }
}

/* Strings are told apart by their hashes, of 64 bits and a secret: two of a page do not share one. None
 * has none. */
static int hash_of_string(PyObject *string, int64_t *hash) {
    if (string == Py_None) {
        *hash = 0;
        return 0;
    }
    if (!PyUnicode_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "a name is a string");
        return -1;
    }
    *hash = PyObject_Hash(string);
    return *hash == -1 ? -1 : 0;
}

/* The number of each block's text among the page's different texts, in order of their coming. */
int number_texts(const Page *page, int32_t *number, int32_t *copies) {
    Numbers known = {0};
    int failed = numbers_open(&known, page->blocks + 1) < 0;
    for (Py_ssize_t block = 0; !failed && block < page->blocks; block++) {
        int64_t hash;
        failed = hash_of_string(PyList_GET_ITEM(page->texts, block), &hash) < 0;
        if (!failed) {
            number[block] = 1 + number_of(&known, hash);
            copies[number[block]]++;
        }
    }
    numbers_close(&known);
    return failed ? -1 : 0;
}

/* Numbers the class of an element among the page's, from 1 (0 for none), which goes into its signature, and
 * says what its names score. */
static int read_name(Page *page, Py_ssize_t row, Numbers *classes) {
    PyObject *node = PyList_GET_ITEM(page->nodes, row);
    Py_ssize_t count = attribute_count(node);
    if (count <= 0) {
        return (int)count;
    }
    PyObject *names[2] = {attribute_value(node, name_class), NULL};
    if (names[0] != NULL) {
        int only = count == 1 && names[0] != Py_None;
        names[1] = only ? Py_NewRef(Py_None) : attribute_value(node, name_id);
    }
    int64_t key[2];
    int failed = names[1] == NULL || hash_of_string(names[0], key) < 0 ||
                 hash_of_string(names[1], key + 1) < 0;
    if (!failed && (names[0] != Py_None || names[1] != Py_None)) {
        Summary *summary = page->named + page->holder_of[row];
        if (names[0] != Py_None) {
            /* Twice the tags, as the counterpart has it; its TAG has the first three codes less. */
            uint32_t tags = 2 * (uint32_t)(config.tags - 3);
            page->signature[row] += (uint32_t)(number_of(classes, key[0]) + 1) * tags;
        }
        failed = summary_of_names(page->names, names, key, &page->room, summary) < 0;
    }
    Py_XDECREF(names[0]);
    Py_XDECREF(names[1]);
    return failed ? -1 : 0;
}

/* The class and the id of every element that has names worth reading. */
int read_names(Page *page) {
    Numbers classes;
    int failed = numbers_open(&classes, page->named_elements + 1) < 0;
    for (Py_ssize_t i = 0; !failed && i < page->elements; i++) {
        int32_t row = page->element[i];
        if (config.named[page->code[row]]) {
            failed = read_name(page, row, &classes) < 0;
        }
    }
    numbers_close(&classes);
    return failed ? -1 : 0;
}

/* Marks what holds blocks: all that is around the elements that they stand in. */
static void mark_holding(Page *page) {
    memset(page->holding, 0, page->elements);
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        int64_t row = page->owner[block];
        uint8_t *holding;
        do {
            row = page->parent[row];
            holding = page->holding + page->holder_of[row];
        } while (*holding == 0 && (*holding = 1));
    }
}

/* Numbers the elements by their parent, tag and class, from 1: whatever else there is repeats nothing.
 * Nobody asks about those that stand in a block, which are most. */
int count_repeats(Page *page) {
    Numbers alike;
    if (numbers_open(&alike, page->elements + 1) < 0) {
        return -1;
    }
    mark_holding(page);
    page->repeats[0] = 1;
    for (Py_ssize_t i = 0; i < page->elements; i++) {
        int32_t row = page->element[i], number = 0;
        int64_t parent = page->parent[row];
        if (page->holding[page->holder_of[parent]] && page->code[row] >= OTHER_TAG) {
            int64_t key = parent * ((int64_t)1 << 40) + page->signature[row];
            int32_t known = alike.count;
            number = 1 + number_of(&alike, key);
            page->repeats[number] = number > known ? 1 : page->repeats[number] + 1;
        }
        page->alike[row] = number;
    }
    numbers_close(&alike);
    return 0;
}

/* Made of what its parent is field by field: what was written in parts is slow to read as a whole. */
static void hold(const Page *page, Py_ssize_t row, const ElementContext *parent, ElementContext *holder) {
    int64_t code = page->code[row];
    int32_t repeats = repeats_of(page, row);
    Summary named = page->named[page->holder_of[row]];
    memcpy(holder->within, parent->within, sizeof(holder->within));
    if (config.within.place[code] < config.within.size) {
        holder->within[config.within.place[code]] += 1;
    }
    holder->inlined = parent->inlined | (uint32_t)1 << config.inlined.place[code];
    holder->lists = parent->lists + config.listed[code];
    holder->depth = parent->depth + (code >= OTHER_TAG);
    holder->known = parent->known + (named.mean != 0);
    holder->names = parent->names + named.mean;
    holder->high = larger(parent->high, named.high);
    holder->low = smaller(parent->low, named.low);
    holder->repeats = larger(parent->repeats, (float)repeats);
    /* For now the nearest element of a block's level, this one included. */
    holder->above = config.block[code] || code < OTHER_TAG ? (int32_t)row : parent->above;
    holder->record = repeats > 2 && code != config.br ? (int32_t)row : parent->record;
    holder->landmark = config.landmark[code] ? (int32_t)row : parent->landmark;
}

void inherit(Page *page) {
    static const ElementContext nothing = {0};
    for (Py_ssize_t i = 0; i < page->elements; i++) {
        int32_t row = page->element[i];
        const ElementContext *parent = page->holders + page->holder_of[page->parent[row]];
        hold(page, row, i ? parent : &nothing, page->holders + i);
    }
}

static int32_t above(const Page *page, int64_t row) {
    return page->holders[page->holder_of[page->parent[row]]].above;
}

void place_blocks(Page *page) {
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        int64_t owner = page->owner[block];
        page->level[block][0] = (int32_t)owner;
        for (int i = 1; i < LEVELS; i++) {
            page->level[block][i] = above(page, page->level[block][i - 1]);
        }
        page->records[block] = page->holders[page->holder_of[owner]].record;
        page->landmarks[block] = page->holders[page->holder_of[owner]].landmark;
    }
}

/* Eight kinds are counted at once, in a number that has eight bits for each: letters and white space
 * are not, for nobody asks how many there are. Letters that are not among the first are looked up. */
static inline __attribute__((always_inline)) void count_letters(int kind, const void *data,
                                                                Py_ssize_t size, int32_t *counts) {
    enum { MOST = 255 };
    Py_ssize_t most = config.characters - 1;
    for (Py_ssize_t from = 0; from < size; from += MOST) {
        Py_ssize_t to = from + MOST < size ? from + MOST : size;
        uint64_t sums = 0;
        for (Py_ssize_t i = from; i < to; i++) {
            Py_UCS4 letter = PyUnicode_READ(kind, data, i);
            if (kind == PyUnicode_1BYTE_KIND || letter <= MOST) {
                sums += config.counting[letter];
            } else {
                counts[config.character[(Py_ssize_t)letter < most ? (Py_ssize_t)letter : most]]++;
            }
        }
        for (int i = 0; i < CLASSES; i++) {
            counts[i] += i == LETTER || i == SPACE ? 0 : sums >> counting_shift(i) & MOST;
        }
    }
}

void count_characters(Page *page) {
    memset(page->counts, 0, page->blocks * sizeof(page->counts[0]));
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        PyObject *text = PyList_GET_ITEM(page->texts, block);
        const void *data = PyUnicode_DATA(text);
        Py_ssize_t size = PyUnicode_GET_LENGTH(text);
        switch (PyUnicode_KIND(text)) {
        case PyUnicode_1BYTE_KIND:
            count_letters(PyUnicode_1BYTE_KIND, data, size, page->counts[block]);
            break;
        case PyUnicode_2BYTE_KIND:
            count_letters(PyUnicode_2BYTE_KIND, data, size, page->counts[block]);
            break;
        default:
            count_letters(PyUnicode_4BYTE_KIND, data, size, page->counts[block]);
        }
    }
}

/* How much of its block stands in each kind of inline element, and in links. */
static void sum_piece(Page *page, Py_ssize_t piece) {
    static const uint32_t BIT[MAX_INLINED] = {1, 2, 4, 8, 16, 32, 64, 128};
    int64_t row = page->piece_row[piece], block = page->piece_block[piece];
    int64_t size = page->piece_size[piece];
    uint32_t inlined = around(page, row)->inlined;
    page->running[row + 1][CHARS] += (int32_t)size;
    page->chars[block] += size;
    for (int i = 0; i < MAX_INLINED; i++) {
        page->parts[block][i] += inlined & BIT[i] ? (int32_t)size : 0;
    }
    int link = config.inlined.place[config.a];
    if (link < config.inlined.size && inlined >> link & 1) {
        page->running[row + 1][LINK_CHARS] += (int32_t)size;
        page->link_chars[block] += size;
    }
}

void sum_up(Page *page) {
    memset(page->parts, 0, page->blocks * sizeof(page->parts[0]));
    memset(page->running, 0, (page->size + 1) * sizeof(page->running[0]));
    memset(page->chars, 0, page->blocks * sizeof(int64_t));
    memset(page->link_chars, 0, page->blocks * sizeof(int64_t));
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        int32_t *values = page->running[page->first[block] + 1];
        int paragraph = page->code[page->owner[block]] == config.p;
        values[BLOCKS] += 1;
        values[WORDS] += (int32_t)page->words[block];
        values[PROSE] += paragraph ? (int32_t)page->words[block] : 0;
        values[STOPS] += page->counts[block][STOP];
    }
    for (Py_ssize_t piece = 0; piece < page->pieces; piece++) {
        sum_piece(page, piece);
    }
    for (Py_ssize_t row = 0; row < page->size; row++) {
        int32_t *values = page->running[row + 1];
        values[IMAGES] += page->code[row] == config.img;
        values[CONTROLS] += config.control[page->code[row]];
        values[ANCHORS] += page->code[row] == config.a;
        for (int i = 0; i < MEASURES; i++) {
            values[i] += page->running[row][i];
        }
    }
}

void sum_blocks(Page *page) {
    memset(page->passed[0], 0, sizeof(page->passed[0]));
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        const int64_t *before = page->passed[block];
        int64_t *after = page->passed[block + 1];
        after[NEAR_WORDS] = before[NEAR_WORDS] + page->words[block];
        after[NEAR_CHARS] = before[NEAR_CHARS] + page->chars[block];
        after[NEAR_LINKS] = before[NEAR_LINKS] + page->link_chars[block];
        page->density[block] = page->link_chars[block] / at_least_one(page->chars[block]);
    }
}

const float *measures_of(Page *page, int64_t row) {
    int32_t number = page->holder_of[row];
    float *found = page->measures[number];
    if (page->measured[number]) {
        return found;
    }
    page->measured[number] = 1;
    double words = (double)total(page, row, WORDS), blocks = at_least_one(total(page, row, BLOCKS));
    found[0] = (float)log_of((int64_t)words);
    found[1] = (float)(words / at_least_one(total(page, 0, WORDS)));
    found[2] = (float)(total(page, row, LINK_CHARS) / at_least_one(total(page, row, CHARS)));
    found[3] = (float)(total(page, row, PROSE) / at_least_one(total(page, 0, PROSE)));
    found[4] = (float)log_of(total(page, row, BLOCKS));
    found[5] = (float)(total(page, row, STOPS) / at_least_one((int64_t)words));
    found[6] = (float)log_of(total(page, row, IMAGES));
    found[7] = (float)(total(page, row, CONTROLS) / blocks);
    found[8] = (float)(total(page, row, ANCHORS) / blocks);
    return found;
}
