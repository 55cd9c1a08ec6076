/* The columns of a block's row, from left to right: what the model is told of it. */
#include "page.h"
#include <string.h>

enum { CONTAINERS = 7 };

static void put_summary(Row *row, Summary summary) {
    const float values[] = {summary.mean, summary.low, summary.high};
    put_floats(row, values, 3);
}

/* Whether a word is one of the echo's that this block had not before. */
static int echoes(Page *page, Py_ssize_t block, PyObject *text, Py_ssize_t start, Py_ssize_t end) {
    if (end - start > page->longest_echo) {
        return 0;
    }
    uint8_t *word = page->room.bytes;
    Py_ssize_t place = lexicon_find(&page->echo, hash_of(word, write_part(text, start, end, word)));
    if (place < 0 || page->echo.stamps[place] == block) {
        return 0;
    }
    page->echo.stamps[place] = block;
    return 1;
}

/* So many letters, at most a chunk, in bytes that are blank but for them. */
static void narrow(PyObject *text, Py_ssize_t from, Py_ssize_t size, uint8_t chunk[CHUNK]) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    memset(chunk, ' ', CHUNK);
    if (kind == PyUnicode_1BYTE_KIND) {
        memcpy(chunk, (const Py_UCS1 *)data + from, size);
        return;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        chunk[i] = narrowed(PyUnicode_READ(kind, data, from + i));
    }
}

static uint64_t blanks_of(const uint8_t *chunk) {
    uint64_t blanks = 0;
    for (int i = 0; i < CHUNK; i += 16) {
        blanks |= sixteen_bits((Sixteen)(*(const Sixteen *)(chunk + i) == ' ')) << i;
    }
    return blanks;
}

/* How many words of the echo a block has. Most words are none of them by their first letters and
 * their length, which is where the first blank after them is. */
static Py_ssize_t echoed(Page *page, Py_ssize_t block) {
    PyObject *text = PyList_GET_ITEM(page->texts, block);
    Py_ssize_t shared = 0, size = page->echoes ? PyUnicode_GET_LENGTH(text) : 0;
    int narrow_already = PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND;
    for (Py_ssize_t from = 0; from < size;) {
        uint8_t room[CHUNK];
        const uint8_t *chunk = room;
        if (narrow_already && size - from >= CHUNK) {
            chunk = PyUnicode_1BYTE_DATA(text) + from;
        } else {
            narrow(text, from, size - from < CHUNK ? size - from : CHUNK, room);
        }
        uint64_t blanks = blanks_of(chunk);
        if (blanks == 0) {
            Py_ssize_t end = PyUnicode_FindChar(text, ' ', from + CHUNK, size, 1);
            end = end < 0 ? size : end;
            shared += echoes(page, block, text, from, end);
            from = end;
            continue;
        }
        /* What begins after the last blank is looked at with what follows. */
        int last = CHUNK - 1 - __builtin_clzll(blanks);
        uint64_t starts = ~blanks & (blanks << 1 | 1) & (((uint64_t)1 << last) - 1);
        for (; starts; starts &= starts - 1) {
            int start = __builtin_ctzll(starts);
            uint64_t ends = blanks >> start, end = ends & -ends;
            if (page->echo_sizes[echo_place(chunk[start], chunk[start + 1])] & end) {
                Py_ssize_t word = from + start;
                shared += echoes(page, block, text, word, word + __builtin_ctzll(end));
            }
        }
        from += last + 1;
    }
    return shared;
}

void put_echo(Page *page, Py_ssize_t block, Row *row) {
    Py_ssize_t shared = echoed(page, block);
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

void put_text(Page *page, Py_ssize_t block, Row *row) {
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

/* What no list of tags has goes to where the next column comes. */
void put_tags(const Page *page, Py_ssize_t block, Row *row) {
    int64_t owner = page->owner[block];
    double chars = at_least_one(page->chars[block]);
    memset(row->next, 0, config.own.size * sizeof(float));
    row->next[config.own.place[page->code[owner]]] = 1;
    row->next += config.own.size;
    const ElementContext *holder = around(page, page->first[block]);
    for (int i = 0; i < MAX_WITHIN; i++) {
        row->next[i] = holder->within[i];
    }
    row->next += config.within.size;
    for (int i = 0; i < MAX_INLINED; i++) {
        row->next[i] = (float)(page->parts[block][i] / chars);
    }
    row->next += config.inlined.size;
    put(row, log_of(page->holders[page->holder_of[owner]].depth));
    put(row, holder->lists);
}

static int is_prose(const Page *page, Py_ssize_t block) {
    return page->words[block] > 12 && page->link_chars[block] < page->chars[block] * 0.4;
}

Progress start_of(const Page *page) {
    Progress progress = {.heading = -1, .first_h1 = -1};
    for (Py_ssize_t block = 0; block < page->blocks; block++) {
        progress.all_words += page->words[block];
        progress.all_prose += is_prose(page, block);
        if (progress.first_h1 < 0 && page->code[page->owner[block]] == config.h1) {
            progress.first_h1 = block;
        }
    }
    return progress;
}

static void put_neighbours(const Page *page, Py_ssize_t block, Row *row) {
    Py_ssize_t size = page->blocks;
    put(row, page->density[block]);
    for (int distance = 1; distance <= 2; distance++) {
        Py_ssize_t before = block - distance, after = block + distance;
        put(row, before >= 0 ? log_of(page->words[before]) : -1.0);
        put(row, after < size ? log_of(page->words[after]) : -1.0);
        put(row, before >= 0 ? page->density[before] : -1.0);
        put(row, after < size ? page->density[after] : -1.0);
    }
    for (int number = 0; number < SPANS; number++) {
        int span = span_of(number);
        const int64_t *before = page->passed[block > span ? block - span : 0];
        const int64_t *to = page->passed[block + span + 1 < size ? block + span + 1 : size];
        uint64_t words = (uint64_t)(to[NEAR_WORDS] - before[NEAR_WORDS]);
        put(row, words < NEAR_LOGS ? near_logs[number][words] : log1p((int64_t)words / (2.0 * span + 1)));
        double chars = at_least_one(to[NEAR_CHARS] - before[NEAR_CHARS]);
        put(row, (to[NEAR_LINKS] - before[NEAR_LINKS]) / chars);
    }
}

void put_place(const Page *page, Py_ssize_t block, Progress *progress, Row *row) {
    if (config.heading[page->code[page->owner[block]]]) {
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

/* The last row, from one on backwards, that holds so much of the page's prose. */
int64_t root_of(const Page *page, double part, int64_t from) {
    double all = (double)total(page, 0, PROSE), wanted = part * (all > 1 ? all : 1.0);
    for (int64_t row = from; row > 0; row--) {
        /* Where less is left of the page there is no need to look into what a row holds. */
        if (all - page->running[row][PROSE] >= wanted && total(page, row, PROSE) >= wanted) {
            return row;
        }
    }
    return 0;
}

void put_containers(Page *page, Py_ssize_t block, const int64_t roots[2], Row *row) {
    int64_t record = page->records[block];
    const int64_t containers[CONTAINERS] = {
        page->level[block][1], page->level[block][2],  page->level[block][3], page->level[block][4],
        page->landmarks[block], record, page->parent[record]};
    for (int i = 0; i < CONTAINERS; i++) {
        put_floats(row, measures_of(page, containers[i]), MEASURES);
    }
    for (int i = 0; i < 2; i++) {
        int64_t first = page->first[block];
        put(row, first >= roots[i] && first <= page->last[roots[i]]);
    }
}

void put_record(const Page *page, Py_ssize_t block, const BlockGroups *alike, Row *row) {
    int64_t record = page->records[block], holder = page->parent[record];
    int32_t group = alike->group[block];
    int64_t span = page->last[holder] - holder;
    put(row, log_of(repeats_of(page, record)));
    put(row, record == 0);
    put(row, (page->first[block] - holder) / at_least_one(span));
    put(row, log_of((int64_t)page->holders[page->holder_of[page->owner[block]]].repeats));
    put(row, log_of(repeats_of(page, page->owner[block])));
    put(row, log_of(repeats_of(page, page->level[block][1])));
    put(row, log_of(alike->count[group]));
    put(row, alike->mean[group]);
    put(row, alike->words[group] / at_least_one(total(page, 0, WORDS)));
}

void put_names(const Page *page, Py_ssize_t block, Row *row) {
    for (int i = 0; i < 4; i++) {
        put_summary(row, page->named[page->holder_of[page->level[block][i]]]);
    }
    put_summary(row, page->named[page->holder_of[page->records[block]]]);
    const ElementContext *holder = page->holders + page->holder_of[page->owner[block]];
    put(row, holder->high);
    put(row, holder->low);
    put(row, holder->names / at_least_one(holder->known));
    put(row, holder->known);
}

static int is_short(const Page *page, Py_ssize_t block) {
    return page->words[block] <= config.short_text;
}

int seek_words(Page *page, Py_ssize_t block, WordHashes *sought) {
    PyObject *text = PyList_GET_ITEM(page->texts, block);
    return is_short(page, block) ? seek_text(page->short_texts, text, &page->room, sought)
                                 : seek_prose(page->prose, text, &page->room, sought);
}

void put_words(const Page *page, Py_ssize_t block, const WordHashes *sought, float *passed, Row *row) {
    Summary brief = {0, 0, 0}, prose = {0, 0, 0};
    if (is_short(page, block)) {
        brief = summary_of_few(page->short_texts, sought);
    } else {
        prose = summary_of_all(page->prose, sought);
    }
    int32_t section = page->section[block];
    *passed = smaller(*passed, page->heading_scores[section].mean);
    put_summary(row, brief);
    put_summary(row, page->heading_scores[section]);
    put_summary(row, page->heading_scores[page->section_above[section]]);
    put(row, *passed);
    put_summary(row, prose);
}
