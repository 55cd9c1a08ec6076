/* What the model is told of a page is made in three steps: what each element is and holds
 * (elements.c), a row of numbers for each block (columns.c), and the whole (features.c). */
#ifndef TRAPLINE_PAGE_H
#define TRAPLINE_PAGE_H

#include "vocabulary.h"
#include <math.h>
#include <string.h>

enum { LEVELS = 5, MEASURES = 9, LOGS = 8192, ECHO_PLACES = 256 };
/* What is summed over subtrees. */
enum { BLOCKS, WORDS, PROSE, STOPS, CHARS, LINK_CHARS, IMAGES, CONTROLS, ANCHORS };
/* What is summed over the blocks near a block. */
enum { NEAR_WORDS, NEAR_CHARS, NEAR_LINKS, NEAR };

/* What an element passes on to all that it holds. Elements are no deeper in each other than the parser
 * lets them, which is some hundreds; of inline ones it counts whether they are there, a bit for each. */
typedef struct {
    uint16_t within[MAX_WITHIN + 1];
    uint32_t inlined, lists, depth, known;
    double names;
    float high, low, repeats;
    int32_t above, record, landmark;
} ElementContext;

/* A signature has the number of a class and a tag. */
_Static_assert((uint64_t)MAX_ROWS * 2 * MAX_CODES <= UINT32_MAX, "signatures have 32 bits");

typedef struct {
    /* Given. */
    PyObject *nodes, *texts, *hints;
    Py_ssize_t size, blocks, pieces;
    const int64_t *code, *parent, *last, *words, *owner, *first, *piece_row, *piece_block, *piece_size;
    Lexicon *names, *short_texts, *headings, *prose, echo;
    Py_ssize_t echoes, longest_echo;
    uint64_t echo_sizes[ECHO_PLACES];
    /* Made; `holder_of` numbers the rows that are no texts, which `element` lists, `alike` those that
     * repeat each other, of which there are `repeats`; `holding` are those that hold blocks. */
    int32_t *holder_of, *element;
    Py_ssize_t elements;
    uint8_t *holding;
    ElementContext *holders;
    uint32_t *signature;
    int32_t *alike, *repeats;
    Py_ssize_t named_elements;
    Summary *named;
    int32_t (*running)[MEASURES];
    float (*measures)[MEASURES];
    uint8_t *measured;
    int32_t (*level)[LEVELS];
    int32_t *records, *landmarks, *section, *section_above;
    int64_t *chars, *link_chars;
    int32_t (*parts)[MAX_INLINED];
    double *density;
    int64_t (*passed)[NEAR];
    int32_t (*counts)[CLASSES];
    Summary *heading_scores;
    Py_ssize_t sections;
    Lowered room;
} Page;

/* A row of numbers, filled from left to right. */
typedef struct {
    float *next;
} Row;

/* More columns than the config's lists and all others make together. */
enum { MOST_COLUMNS = 2 * MAX_LISTED + MAX_WITHIN + MAX_INLINED + 256 };

/* Blocks of the same markup: how many, and how many words they have. */
typedef struct {
    int32_t *group;
    int64_t *count, *words;
    double *mean;
} BlockGroups;

/* What is known of a block's place once all before it are counted. */
typedef struct {
    Py_ssize_t heading, first_h1;
    int64_t words, all_words, prose, all_prose;
} Progress;

/* How far blocks are near: two measures. */
enum { SPANS = 2, NEAR_LOGS = 1024 };

static inline int span_of(int number) {
    return 4 + 8 * number;
}

/* log1p of the smaller counts, and of means of them over what is near; made by `logs_open`. */
extern double logs[LOGS], near_logs[SPANS][NEAR_LOGS];
void logs_open(void);

/* Nothing is less than none, but for a sum that has outgrown its bits. */
static inline double log_of(int64_t count) {
    if (count < 0) {
        return 0;
    }
    return count < LOGS ? logs[count] : log1p((double)count);
}

static inline double at_least_one(int64_t count) {
    return count > 1 ? (double)count : 1.0;
}

static inline float larger(float one, float other) {
    return one > other ? one : other;
}

static inline float smaller(float one, float other) {
    return one < other ? one : other;
}

/* The text node's parent: what it stands in. */
static inline const ElementContext *around(const Page *page, int64_t row) {
    return page->holders + page->holder_of[page->parent[row]];
}

static inline int64_t total(const Page *page, int64_t row, int what) {
    return page->running[page->last[row] + 1][what] - page->running[row][what];
}

/* How many siblings of its own tag and class an element has, itself included. */
static inline int32_t repeats_of(const Page *page, int64_t row) {
    return page->repeats[page->alike[row]];
}

/* A letter as a byte, which is a blank only if the letter is one. */
static inline uint8_t narrowed(Py_UCS4 letter) {
    return (uint8_t)(letter > 0xff ? letter | 0x80 : letter);
}

/* Where a word's length is noted, by its first letters. */
static inline int echo_place(uint8_t first, uint8_t second) {
    return (first + 8 * second) % ECHO_PLACES;
}

static inline void put(Row *row, double value) {
    *row->next++ = (float)value;
}

static inline void put_floats(Row *row, const float *values, int count) {
    memcpy(row->next, values, count * sizeof(float));
    row->next += count;
}

int number_texts(const Page *page, int32_t *number, int32_t *copies);
int read_names(Page *page);
int count_repeats(Page *page);
void inherit(Page *page);
void place_blocks(Page *page);
void count_characters(Page *page);
void sum_up(Page *page);
void sum_blocks(Page *page);
const float *measures_of(Page *page, int64_t row);

Progress start_of(const Page *page);
int64_t root_of(const Page *page, double part, int64_t from);
void put_echo(Page *page, Py_ssize_t block, Row *row);
void put_text(Page *page, Py_ssize_t block, Row *row);
void put_tags(const Page *page, Py_ssize_t block, Row *row);
void put_place(const Page *page, Py_ssize_t block, Progress *progress, Row *row);
void put_containers(Page *page, Py_ssize_t block, const int64_t roots[2], Row *row);
void put_record(const Page *page, Py_ssize_t block, const BlockGroups *alike, Row *row);
void put_names(const Page *page, Py_ssize_t block, Row *row);
int seek_words(Page *page, Py_ssize_t block, WordHashes *sought);
void put_words(const Page *page, Py_ssize_t block, const WordHashes *sought, float *passed, Row *row);

#endif
