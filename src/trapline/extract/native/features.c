/* What the model is told of each block: the twin of features.py and vocabulary.py. */
#include "native.h"
#include <math.h>
#include <string.h>

enum { LEVELS = 5, MEASURES = 9, CONTAINERS = 7, KEYS = 6, LOGS = 8192 };
enum { ECHO_LETTERS = 64 };
/* What is summed over subtrees. */
enum { BLOCKS, WORDS, PROSE, STOPS, CHARS, LINK_CHARS, IMAGES, CONTROLS, ANCHORS };

static double logs[LOGS];

/* Nothing is less than none, but for a sum that has outgrown its bits. */
static double log_of(int64_t count) {
    if (logs[1] == 0) {
        for (int i = 1; i < LOGS; i++) {
            logs[i] = log1p(i);
        }
    }
    if (count < 0) {
        return 0;
    }
    return count < LOGS ? logs[count] : log1p((double)count);
}

static double at_least_one(int64_t count) {
    return count > 1 ? (double)count : 1.0;
}

/* What an element passes on to all that it holds. */
typedef struct {
    uint32_t within[MAX_WITHIN], inlined[MAX_INLINED];
    uint32_t lists, depth, known;
    double names;
    float high, low, repeats;
    int32_t above, record, landmark;
} Holder;

typedef struct {
    /* Given. */
    PyObject *nodes, *texts;
    Py_ssize_t size, blocks, pieces;
    const int64_t *code, *parent, *last, *words, *owner, *first, *piece_row, *piece_block, *piece_size;
    Lexicon *names, *short_texts, *headings, *prose, echo;
    Py_ssize_t echoes, longest_echo;
    uint64_t echo_sizes[ECHO_LETTERS];
    /* Made; `holder_of` numbers the rows that are no texts. */
    int32_t *holder_of;
    Holder *holders;
    int64_t *classes, *signature;
    int32_t *repeats;
    Summary *named;
    int32_t (*running)[MEASURES];
    float (*measures)[MEASURES];
    uint8_t *measured;
    int32_t (*level)[LEVELS];
    int32_t *records, *landmarks, *section, *section_above;
    int64_t *chars, *link_chars;
    int32_t (*counts)[CLASSES];
    Summary *heading_scores;
    Py_ssize_t sections;
    Letters room;
} Page;

/* The number of a string among those met so far, from 1; 0 for None. */
static int64_t number_of_string(PyObject *numbers, PyObject *string) {
    if (string == Py_None) {
        return 0;
    }
    if (!PyUnicode_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "a name is a string");
        return -1;
    }
    PyObject *known = PyDict_GetItemWithError(numbers, string);
    if (known != NULL) {
        return PyLong_AsLongLong(known);
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    int64_t number = PyDict_GET_SIZE(numbers) + 1;
    PyObject *value = PyLong_FromLongLong(number);
    int failed = value == NULL || PyDict_SetItem(numbers, string, value) < 0;
    Py_XDECREF(value);
    return failed ? -1 : number;
}

/* The class and the id of every element that has names worth reading. */
static int read_names(Page *page) {
    PyObject *classes = PyDict_New(), *ids = PyDict_New();
    Numbers pairs = {0};
    Summary *summaries = PyMem_Malloc((page->size + 1) * sizeof(Summary));
    int failed = classes == NULL || ids == NULL || numbers_open(&pairs, page->size + 1) < 0;
    if (summaries == NULL) {
        PyErr_NoMemory();
        failed = 1;
    }
    for (Py_ssize_t row = 0; !failed && row < page->size; row++) {
        page->classes[row] = 0;
        if (page->code[row] == TEXT_NODE || !design.named[page->code[row]]) {
            continue;
        }
        PyObject *node = PyList_GET_ITEM(page->nodes, row);
        PyObject *name = PyObject_CallMethodOneArg(node, name_attr, name_class);
        PyObject *id = name ? PyObject_CallMethodOneArg(node, name_attr, name_id) : NULL;
        int64_t class_number = id ? number_of_string(classes, name) : -1;
        int64_t id_number = class_number < 0 ? -1 : number_of_string(ids, id);
        failed = id_number < 0;
        if (!failed && (class_number || id_number)) {
            int32_t known = pairs.count;
            int32_t pair = number_of(&pairs, (class_number << 32) + id_number);
            if (pair == known) {
                summaries[pair] = summary_of_names(page->names, name, id);
            }
            page->classes[row] = class_number;
            page->named[page->holder_of[row]] = summaries[pair];
        }
        Py_XDECREF(name);
        Py_XDECREF(id);
    }
    Py_XDECREF(classes);
    Py_XDECREF(ids);
    numbers_close(&pairs);
    PyMem_Free(summaries);
    return failed ? -1 : 0;
}

/* How many siblings of its own tag and class each element has, itself included. */
static int count_repeats(Page *page) {
    Numbers alike;
    if (numbers_open(&alike, page->size + 1) < 0) {
        return -1;
    }
    int32_t *group = PyMem_Malloc((page->size + 1) * 2 * sizeof(int32_t));
    if (group == NULL) {
        numbers_close(&alike);
        PyErr_NoMemory();
        return -1;
    }
    int32_t *count = group + page->size + 1;
    memset(count, 0, (page->size + 1) * sizeof(int32_t));
    for (Py_ssize_t row = 0; row < page->size; row++) {
        if (page->code[row] == TEXT_NODE) {
            continue;
        }
        /* Twice the tags, as the twin has it; its TAG has the first three codes less. */
        page->signature[row] = page->classes[row] * (design.tags - 3) * 2 + page->code[row];
        if (page->code[row] >= OTHER_TAG) {
            int64_t key = page->parent[row] * ((int64_t)1 << 40) + page->signature[row];
            count[group[row] = number_of(&alike, key)]++;
        }
    }
    for (Py_ssize_t row = 0; row < page->size; row++) {
        int element = page->code[row] >= OTHER_TAG && page->code[row] != TEXT_NODE;
        page->repeats[row] = element ? count[group[row]] : 1;
    }
    numbers_close(&alike);
    PyMem_Free(group);
    return 0;
}

static float larger(float one, float other) {
    return one > other ? one : other;
}

static float smaller(float one, float other) {
    return one < other ? one : other;
}

static void inherit(Page *page) {
    for (Py_ssize_t row = 0; row < page->size; row++) {
        int64_t code = page->code[row];
        if (code == TEXT_NODE) {
            continue;
        }
        int32_t number = page->holder_of[row], repeats = page->repeats[row];
        Holder *holder = page->holders + number, *parent = NULL;
        if (row == 0) {
            memset(holder, 0, sizeof(*holder));
        } else {
            parent = page->holders + page->holder_of[page->parent[row]];
            *holder = *parent;
        }
        for (int i = 0; i < design.within.size; i++) {
            holder->within[i] += design.within.code[i] == code;
        }
        for (int i = 0; i < design.inlined.size; i++) {
            holder->inlined[i] += design.inlined.code[i] == code;
        }
        Summary named = page->named[number];
        holder->lists += design.listed[code];
        holder->depth += code >= OTHER_TAG;
        holder->names += named.mean;
        holder->known += named.mean != 0;
        holder->high = larger(holder->high, named.high);
        holder->low = smaller(holder->low, named.low);
        holder->repeats = larger(holder->repeats, (float)repeats);
        if (repeats > 2 && code != design.br) {
            holder->record = (int32_t)row;
        }
        if (design.landmark[code]) {
            holder->landmark = (int32_t)row;
        }
        /* For now the nearest element of a block's level, this one included. */
        if (design.block[code] || code < OTHER_TAG) {
            holder->above = (int32_t)row;
        }
    }
}

static int32_t above(const Page *page, int64_t row) {
    return page->holders[page->holder_of[page->parent[row]]].above;
}

static void place_blocks(Page *page) {
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

static void count_characters(Page *page) {
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        PyObject *text = PyList_GET_ITEM(page->texts, block);
        int kind = PyUnicode_KIND(text);
        const void *data = PyUnicode_DATA(text);
        Py_ssize_t size = PyUnicode_GET_LENGTH(text), most = design.characters - 1;
        int32_t *counts = page->counts[block];
        memset(counts, 0, sizeof(page->counts[block]));
        for (Py_ssize_t i = 0; i < size; i++) {
            Py_UCS4 letter = PyUnicode_READ(kind, data, i);
            counts[design.character[(Py_ssize_t)letter < most ? (Py_ssize_t)letter : most]]++;
        }
    }
}

/* The text node's parent: what it stands in. */
static const Holder *around(const Page *page, int64_t row) {
    return page->holders + page->holder_of[page->parent[row]];
}

static int in_link(const Page *page, int64_t row) {
    for (int i = 0; i < design.inlined.size; i++) {
        if (design.inlined.code[i] == design.a) {
            return around(page, row)->inlined[i] > 0;
        }
    }
    return 0;
}

static void sum_up(Page *page) {
    memset(page->running, 0, (page->size + 1) * sizeof(page->running[0]));
    memset(page->chars, 0, page->blocks * sizeof(int64_t));
    memset(page->link_chars, 0, page->blocks * sizeof(int64_t));
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        int32_t *values = page->running[page->first[block] + 1];
        int paragraph = page->code[page->owner[block]] == design.p;
        values[BLOCKS] += 1;
        values[WORDS] += (int32_t)page->words[block];
        values[PROSE] += paragraph ? (int32_t)page->words[block] : 0;
        values[STOPS] += page->counts[block][STOP];
    }
    for (Py_ssize_t piece = 0; piece < page->pieces; piece++) {
        int64_t row = page->piece_row[piece], size = page->piece_size[piece];
        int64_t linked = in_link(page, row) ? size : 0;
        page->running[row + 1][CHARS] += (int32_t)size;
        page->running[row + 1][LINK_CHARS] += (int32_t)linked;
        page->chars[page->piece_block[piece]] += size;
        page->link_chars[page->piece_block[piece]] += linked;
    }
    for (Py_ssize_t row = 0; row < page->size; row++) {
        int32_t *values = page->running[row + 1];
        values[IMAGES] += page->code[row] == design.img;
        values[CONTROLS] += design.control[page->code[row]];
        values[ANCHORS] += page->code[row] == design.a;
        for (int i = 0; i < MEASURES; i++) {
            values[i] += page->running[row][i];
        }
    }
}

static int64_t total(const Page *page, int64_t row, int what) {
    return page->running[page->last[row] + 1][what] - page->running[row][what];
}

static const float *measures_of(Page *page, int64_t row) {
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
        if (design.heading[rank]) {
            PyObject *text = PyList_GET_ITEM(page->texts, block);
            Summary *scores = page->heading_scores + sections;
            if (summary_of_text(page->headings, text, &page->room, scores) < 0) {
                PyMem_Free(ranks);
                return -1;
            }
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

/* A block's row of the matrix, filled from left to right. What a model of another width has no room
 * for is counted all the same, so that it can be refused. */
typedef struct {
    float *cells;
    Py_ssize_t size, used;
} Row;

static void put(Row *row, double value) {
    if (row->used < row->size) {
        row->cells[row->used] = (float)value;
    }
    row->used++;
}

static int is_full(const Row *row) {
    if (row->used != row->size) {
        PyErr_Format(PyExc_ValueError, "%zd features where %zd are wanted", row->used, row->size);
        return 0;
    }
    return 1;
}

static void put_summary(Row *row, Summary summary) {
    put(row, summary.mean);
    put(row, summary.low);
    put(row, summary.high);
}

/* Whether a word may be one of the echo's: by its first letter and its length. */
static int may_echo(const Page *page, Py_UCS4 first, Py_ssize_t size) {
    return page->echo_sizes[first % ECHO_LETTERS] >> (size < 63 ? size : 63) & 1;
}

static void put_echo(Page *page, Py_ssize_t block, Row *row) {
    PyObject *text = PyList_GET_ITEM(page->texts, block);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text), shared = 0, start = 0;
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t end = 0; page->echoes && end <= size; end++) {
        if (end < size && PyUnicode_READ(kind, data, end) != ' ') {
            continue;
        }
        if (end > start && end - start <= page->longest_echo &&
            may_echo(page, PyUnicode_READ(kind, data, start), end - start)) {
            /* Room for the longest word of the echo was made before. */
            for (Py_ssize_t i = start; i < end; i++) {
                page->room.data[i - start] = PyUnicode_READ(kind, data, i);
            }
            Entry *entry = lexicon_find(&page->echo, page->room.data, end - start);
            if (entry != NULL && entry->stamp != block) {
                entry->stamp = block;
                shared++;
            }
        }
        start = end + 1;
    }
    put(row, shared / at_least_one(page->words[block]));
    put(row, shared / at_least_one(page->echoes));
}

static int is_one_of(Py_UCS4 letter, const Py_UCS4 *letters) {
    for (; *letters; letters++) {
        if (*letters == letter) {
            return 1;
        }
    }
    return 0;
}

static const Py_UCS4 CLOSING[] = {'.', '!', '?', 0x2026, 0};
static const Py_UCS4 ENDING[] = {'.', '!', '?', 0x2026, ':', '"', 0x201d, 0};

static void put_text(Page *page, Py_ssize_t block, Row *row) {
    PyObject *text = PyList_GET_ITEM(page->texts, block);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    const int32_t *counts = page->counts[block];
    double length = at_least_one(size);
    Py_UCS4 last = size ? PyUnicode_READ_CHAR(text, size - 1) : 0;
    put(row, log_of(page->words[block]));
    put(row, log_of(size));
    put(row, size / at_least_one(page->words[block]));
    put(row, counts[UPPER] / length);
    put(row, counts[DIGIT] / length);
    put(row, log_of(counts[STOP]));
    put(row, log_of(counts[COMMA]));
    put(row, counts[JOINT] / length);
    put(row, log_of(counts[MONEY]));
    put(row, counts[QUOTE] / length);
    put(row, counts[OTHER] / length);
    put(row, is_one_of(last, ENDING));
    put(row, is_one_of(last, CLOSING));
}

static void put_tags(Page *page, Py_ssize_t block, const int64_t (*parts)[MAX_INLINED], Row *row) {
    int64_t own = page->code[page->owner[block]];
    for (int i = 0; i < design.own.size; i++) {
        put(row, design.own.code[i] == own);
    }
    const Holder *holder = around(page, page->first[block]);
    for (int i = 0; i < design.within.size; i++) {
        put(row, holder->within[i]);
    }
    for (int i = 0; i < design.inlined.size; i++) {
        put(row, parts[block][i] / at_least_one(page->chars[block]));
    }
    put(row, log_of(page->holders[page->holder_of[page->owner[block]]].depth));
    put(row, holder->lists);
}

/* What is known of a block's place once all before it are counted. */
typedef struct {
    Py_ssize_t heading, first_h1;
    int64_t words, all_words, prose, all_prose;
} Progress;

static int is_prose(const Page *page, Py_ssize_t block) {
    return page->words[block] > 12 && page->link_chars[block] < page->chars[block] * 0.4;
}

static Progress start_of(const Page *page) {
    Progress progress = {.heading = -1, .first_h1 = -1};
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        progress.all_words += page->words[block];
        progress.all_prose += is_prose(page, block);
        if (progress.first_h1 < 0 && page->code[page->owner[block]] == design.h1) {
            progress.first_h1 = block;
        }
    }
    return progress;
}

static double density(const Page *page, Py_ssize_t block) {
    return page->link_chars[block] / at_least_one(page->chars[block]);
}

static int64_t near(const int64_t *values, Py_ssize_t size, Py_ssize_t place, int span) {
    Py_ssize_t from = place > span ? place - span : 0;
    Py_ssize_t to = place + span + 1 < size ? place + span + 1 : size;
    int64_t sum = 0;
    for (Py_ssize_t i = from; i < to; i++) {
        sum += values[i];
    }
    return sum;
}

static void put_neighbours(const Page *page, Py_ssize_t block, Row *row) {
    Py_ssize_t size = page->blocks;
    put(row, density(page, block));
    for (int distance = 1; distance <= 2; distance++) {
        Py_ssize_t before = block - distance, after = block + distance;
        put(row, before >= 0 ? log_of(page->words[before]) : -1.0);
        put(row, after < size ? log_of(page->words[after]) : -1.0);
        put(row, before >= 0 ? density(page, before) : -1.0);
        put(row, after < size ? density(page, after) : -1.0);
    }
    for (int span = 4; span <= 12; span += 8) {
        put(row, log1p(near(page->words, size, block, span) / (2.0 * span + 1)));
        double chars = at_least_one(near(page->chars, size, block, span));
        put(row, near(page->link_chars, size, block, span) / chars);
    }
}

static void put_place(const Page *page, Py_ssize_t block, Progress *progress, Row *row) {
    if (design.heading[page->code[page->owner[block]]]) {
        progress->heading = block;
    }
    Py_ssize_t from = block - (progress->first_h1 < 0 ? 0 : progress->first_h1);
    int prose = is_prose(page, block);
    put(row, (double)block / page->blocks);
    put(row, progress->words / at_least_one(progress->all_words));
    put(row, log_of(block));
    put(row, log_of(page->blocks - 1 - block));
    put(row, log_of(block - progress->heading));
    put(row, from < 0 ? -log_of(-from) : log_of(from));
    put(row, progress->first_h1 >= 0);
    put(row, progress->prose / at_least_one(progress->all_prose));
    put(row, log_of(progress->all_prose - progress->prose - prose));
    put_neighbours(page, block, row);
    progress->words += page->words[block];
    progress->prose += prose;
}

/* The last row that holds so much of the page's prose. */
static int64_t root_of(const Page *page, double part) {
    double all = (double)total(page, 0, PROSE), wanted = part * (all > 1 ? all : 1.0);
    for (int64_t row = page->size - 1; row > 0; row--) {
        /* Where less is left of the page there is no need to look into what a row holds. */
        if (all - page->running[row][PROSE] >= wanted && total(page, row, PROSE) >= wanted) {
            return row;
        }
    }
    return 0;
}

static void put_containers(Page *page, Py_ssize_t block, const int64_t roots[2], Row *row) {
    int64_t record = page->records[block];
    const int64_t containers[CONTAINERS] = {
        page->level[block][1], page->level[block][2],  page->level[block][3], page->level[block][4],
        page->landmarks[block], record, page->parent[record]};
    for (int i = 0; i < CONTAINERS; i++) {
        const float *measures = measures_of(page, containers[i]);
        for (int measure = 0; measure < MEASURES; measure++) {
            put(row, measures[measure]);
        }
    }
    for (int i = 0; i < 2; i++) {
        int64_t first = page->first[block];
        put(row, first >= roots[i] && first <= page->last[roots[i]]);
    }
}

/* Blocks of the same markup: how many, and how many words they have. */
typedef struct {
    int32_t *group;
    int64_t *count, *words;
} Alike;

static void put_record(const Page *page, Py_ssize_t block, const Alike *alike, Row *row) {
    int64_t record = page->records[block], holder = page->parent[record];
    int32_t group = alike->group[block];
    int64_t span = page->last[holder] - holder;
    put(row, log_of(page->repeats[record]));
    put(row, record == 0);
    put(row, (page->first[block] - holder) / at_least_one(span));
    put(row, log_of((int64_t)page->holders[page->holder_of[page->owner[block]]].repeats));
    put(row, log_of(page->repeats[page->owner[block]]));
    put(row, log_of(page->repeats[page->level[block][1]]));
    put(row, log_of(alike->count[group]));
    put(row, log1p((double)alike->words[group] / alike->count[group]));
    put(row, alike->words[group] / at_least_one(total(page, 0, WORDS)));
}

static void put_names(const Page *page, Py_ssize_t block, Row *row) {
    for (int i = 0; i < 4; i++) {
        put_summary(row, page->named[page->holder_of[page->level[block][i]]]);
    }
    put_summary(row, page->named[page->holder_of[page->records[block]]]);
    const Holder *holder = page->holders + page->holder_of[page->owner[block]];
    put(row, holder->high);
    put(row, holder->low);
    put(row, holder->names / at_least_one(holder->known));
    put(row, holder->known);
}

static int put_words(Page *page, Py_ssize_t block, float *passed, Row *row) {
    PyObject *text = PyList_GET_ITEM(page->texts, block);
    Summary brief = {0, 0, 0}, prose = {0, 0, 0};
    int is_short = page->words[block] <= design.short_text;
    if (is_short ? summary_of_text(page->short_texts, text, &page->room, &brief)
                 : summary_of_prose(page->prose, text, &page->room, &prose)) {
        return -1;
    }
    int32_t section = page->section[block];
    *passed = smaller(*passed, page->heading_scores[section].mean);
    put_summary(row, brief);
    put_summary(row, page->heading_scores[section]);
    put_summary(row, page->heading_scores[page->section_above[section]]);
    put(row, *passed);
    put_summary(row, prose);
    return 0;
}

/* How much of each block stands in each kind of inline element. */
static void sum_parts(const Page *page, int64_t (*parts)[MAX_INLINED]) {
    memset(parts, 0, page->blocks * sizeof(parts[0]));
    for (Py_ssize_t piece = 0; piece < page->pieces; piece++) {
        const Holder *holder = around(page, page->piece_row[piece]);
        int64_t *part = parts[page->piece_block[piece]];
        for (int i = 0; i < design.inlined.size; i++) {
            part[i] += holder->inlined[i] ? page->piece_size[piece] : 0;
        }
    }
}

static int find_alike(const Page *page, Alike *alike, int64_t *keys) {
    Numbers groups;
    if (numbers_open(&groups, page->blocks + 1) < 0) {
        return -1;
    }
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        const int32_t *level = page->level[block];
        keys[block] = page->signature[level[0]] * 31 + page->signature[level[1]];
        int32_t group = alike->group[block] = number_of(&groups, keys[block]);
        alike->count[group] += 1;
        alike->words[group] += page->words[block];
    }
    numbers_close(&groups);
    return 0;
}

/* The number of each block's text among the page's different texts, in order of their coming. */
static int number_texts(const Page *page, int32_t *number, int32_t *copies) {
    PyObject *known = PyDict_New();
    int failed = known == NULL;
    for (Py_ssize_t block = 0; !failed && block < page->blocks; block++) {
        int64_t found = number_of_string(known, PyList_GET_ITEM(page->texts, block));
        failed = found < 0;
        if (!failed) {
            number[block] = (int32_t)found;
            copies[found]++;
        }
    }
    Py_XDECREF(known);
    return failed ? -1 : 0;
}

static int fill(Page *page, float *matrix, Py_ssize_t width, int64_t *keys) {
    Py_ssize_t blocks = page->blocks;
    int64_t(*parts)[MAX_INLINED] = PyMem_Malloc((blocks + 1) * sizeof(*parts));
    int64_t *sums = PyMem_Calloc(2 * (blocks + 1), sizeof(int64_t));
    int32_t *small = PyMem_Calloc(3 * (blocks + 2), sizeof(int32_t));
    int failed = 1;
    if (parts == NULL || sums == NULL || small == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    Alike alike = {small, sums, sums + blocks + 1};
    int32_t *number = small + blocks + 2, *copies = number + blocks + 2;
    if (find_alike(page, &alike, keys) < 0 || number_texts(page, number, copies) < 0) {
        goto done;
    }
    sum_parts(page, parts);
    Progress progress = start_of(page);
    const int64_t roots[2] = {root_of(page, 0.5), root_of(page, 0.8)};
    float passed = 0;
    int32_t met = 0;
    for (Py_ssize_t block = 0; block < blocks; block++) {
        Row row = {matrix + block * width, width, 0};
        put_echo(page, block, &row);
        put_text(page, block, &row);
        put_tags(page, block, (const int64_t(*)[MAX_INLINED])parts, &row);
        put_place(page, block, &progress, &row);
        put_containers(page, block, roots, &row);
        put_record(page, block, &alike, &row);
        put(&row, log_of(copies[number[block]] - 1));
        put(&row, number[block] > met);
        met = number[block] > met ? number[block] : met;
        put_names(page, block, &row);
        if (put_words(page, block, &passed, &row) < 0 || !is_full(&row)) {
            goto done;
        }
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
    PyMem_Free(parts);
    PyMem_Free(sums);
    PyMem_Free(small);
    return failed ? -1 : 0;
}

/* Numbers about the whole page, but for its hints. */
static int describe(const Page *page, const float *matrix, Py_ssize_t width, Row row) {
    int64_t tags[MAX_CODES] = {0}, long_words = 0, longs = 0;
    for (Py_ssize_t i = 0; i < page->size; i++) {
        tags[page->code[i]]++;
    }
    for (int i = 0; i < design.counted.size; i++) {
        put(&row, log_of(tags[design.counted.code[i]]));
    }
    double words = at_least_one(total(page, 0, WORDS));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(design.shared); i++) {
        long column = PyLong_AsLong(PyTuple_GET_ITEM(design.shared, i));
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
    return is_full(&row) ? 0 : -1;
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
            failed = lexicon_add(&page->echo, word, 1.0) < 0;
            page->longest_echo = size > page->longest_echo ? size : page->longest_echo;
            Py_UCS4 first = PyUnicode_READ_CHAR(word, 0);
            page->echo_sizes[first % ECHO_LETTERS] |= (uint64_t)1 << (size < 63 ? size : 63);
        }
        Py_DECREF(word);
    }
    Py_XDECREF(walk);
    while (!failed && page->room.room <= page->longest_echo) {
        page->room.size = page->room.room;
        failed = letters_add(&page->room, 0) < 0;
    }
    return failed || PyErr_Occurred() ? -1 : 0;
}

/* One piece of memory for everything that is made; freed at once. */
static void *room_for(Page *page) {
    Py_ssize_t size = page->size + 1, blocks = page->blocks + 1, holders = 0;
    for (Py_ssize_t row = 0; row < page->size; row++) {
        holders += page->code[row] != TEXT_NODE;
    }
    struct {
        void *place;
        Py_ssize_t bytes;
    } parts[] = {
        {&page->holders, holders * (Py_ssize_t)sizeof(Holder)},
        {&page->classes, size * (Py_ssize_t)sizeof(int64_t)},
        {&page->signature, size * (Py_ssize_t)sizeof(int64_t)},
        {&page->chars, blocks * (Py_ssize_t)sizeof(int64_t)},
        {&page->link_chars, blocks * (Py_ssize_t)sizeof(int64_t)},
        {&page->holder_of, size * (Py_ssize_t)sizeof(int32_t)},
        {&page->repeats, size * (Py_ssize_t)sizeof(int32_t)},
        {&page->named, holders * (Py_ssize_t)sizeof(Summary)},
        {&page->running, size * (Py_ssize_t)sizeof(page->running[0])},
        {&page->measures, holders * (Py_ssize_t)sizeof(page->measures[0])},
        {&page->measured, holders},
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
    char *memory = PyMem_Malloc(bytes), *at = memory;
    for (Py_ssize_t i = 0; memory != NULL && i < count; i++) {
        memcpy(parts[i].place, &at, sizeof(at));
        at += (parts[i].bytes + 15) / 16 * 16;
    }
    if (memory == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(page->named, 0, holders * sizeof(Summary));
    memset(page->measured, 0, holders);
    int32_t number = 0;
    for (Py_ssize_t row = 0; row < page->size; row++) {
        page->holder_of[row] = page->code[row] == TEXT_NODE ? -1 : number++;
    }
    return memory;
}

static PyObject *read_page(Page *page, PyObject *echo, Py_ssize_t width) {
    Py_ssize_t vector_size = design.counted.size + PyTuple_GET_SIZE(design.shared) + 7;
    PyObject *matrix = NULL, *vector = NULL, *keys = NULL, *result = NULL;
    void *memory = room_for(page);
    if (memory == NULL || read_echo(page, echo) < 0 || read_names(page) < 0 ||
        count_repeats(page) < 0) {
        goto done;
    }
    inherit(page);
    place_blocks(page);
    count_characters(page);
    sum_up(page);
    matrix = PyByteArray_FromStringAndSize(NULL, page->blocks * width * (Py_ssize_t)sizeof(float));
    vector = PyByteArray_FromStringAndSize(NULL, vector_size * (Py_ssize_t)sizeof(float));
    keys = PyByteArray_FromStringAndSize(NULL, KEYS * page->blocks * (Py_ssize_t)sizeof(int64_t));
    if (matrix == NULL || vector == NULL || keys == NULL || read_sections(page) < 0) {
        goto done;
    }
    float *cells = (float *)PyByteArray_AS_STRING(matrix);
    if (fill(page, cells, width, (int64_t *)PyByteArray_AS_STRING(keys)) < 0) {
        goto done;
    }
    Row row = {(float *)PyByteArray_AS_STRING(vector), vector_size, 0};
    if (describe(page, cells, width, row) == 0) {
        result = PyTuple_Pack(3, matrix, vector, keys);
    }
done:
    Py_XDECREF(matrix);
    Py_XDECREF(vector);
    Py_XDECREF(keys);
    lexicon_close(&page->echo);
    PyMem_Free(page->room.data);
    PyMem_Free(memory);
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
    if (!PyArg_ParseTuple(args, "O!y*y*y*O!y*y*y*y*y*y*O!(OOOO)n", &PyList_Type, &page.nodes, array,
                          array + 1, array + 2, &PyList_Type, &page.texts, array + 3, array + 4,
                          array + 5, array + 6, array + 7, array + 8, &PyFrozenSet_Type, &echo,
                          lexicons, lexicons + 1, lexicons + 2, lexicons + 3, &width)) {
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
