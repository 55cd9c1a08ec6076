/* Shared declarations of the native library.
 *
 * Every function here has a counterpart in Python (outline.py, blocks.py, features.py, vocabulary.py,
 * scorer.py), which says what it means; tests hold the two together. Arrays come and go as buffers
 * of 64-bit integers or 32-bit floats, so that nothing of numpy is needed to build this.
 */
#ifndef TRAPLINE_NATIVE_H
#define TRAPLINE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Arrays of numpy's own integers are read as 64-bit ones; elsewhere Python reads pages alone. */
_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "a machine of 64 bits is needed");

enum { OTHER_NODE = 0, TEXT_NODE = 1, OTHER_TAG = 2 };
/* Words of a short text, and of the beginning of a long one. */
enum { MAX_SHORT = 31, MAX_PROSE = 512 };
enum { MAX_CODES = 256, MAX_LISTED = 32, MAX_WITHIN = 15, MAX_INLINED = 8, MAX_COMMON = 8 };
/* Rows are kept in 32 bits, and shifted by 40; a page has 200,000. */
enum { MAX_ROWS = 1 << 22, MAX_WIDTH = 1 << 12 };
/* Kinds of characters. */
enum { LETTER, UPPER, DIGIT, STOP, COMMA, JOINT, MONEY, QUOTE, SPACE, OTHER, CLASSES };

/* A list of tag codes, in the order of the columns made of them. */
typedef struct {
    int size;
    uint8_t code[MAX_LISTED];
    /* Where in the list each code is; one that is not listed, at its end. */
    uint8_t place[MAX_CODES];
} Codes;

/* Tables that Python defines and C needs: set once, when the module is loaded. */
typedef struct {
    PyObject *codes;
    PyTypeObject *element, *text;
    int tags;
    uint8_t block[MAX_CODES], hidden[MAX_CODES], named[MAX_CODES], heading[MAX_CODES];
    uint8_t control[MAX_CODES], landmark[MAX_CODES], listed[MAX_CODES];
    uint8_t media[MAX_CODES], kept_empty[MAX_CODES], frame[MAX_CODES];
    Codes own, within, inlined, counted;
    uint8_t a, br, img, p, h1, pre;
    PyObject *shared, *common;
    uint8_t *character;
    Py_ssize_t characters;
    /* For each of the first letters a one where its kind is counted. */
    uint64_t counting[256];
    int short_text, prose;
} Config;

/* Kinds but letters and white space, eight bits each. */
static inline int counting_shift(int kind) {
    return 8 * (kind < SPACE ? kind - 1 : kind - 2);
}

extern Config config;
extern PyObject *name_tag, *name_parent, *name_descendants, *name_data, *name_attr, *name_attrs, *name_lower;
extern PyObject *name_class, *name_id, *name_decompose, *name_text, *name_hidden, *name_rel, *name_href, *name_find_all;

/* A property of nodes of one type, which is read without looking for it in the type each time. */
typedef struct {
    PyTypeObject *type;
    PyObject *name;
    getter get;
    void *closure;
} Property;

extern Property element_tag, element_attrs, element_parent, element_text, text_parent, text_data;

/* The value of an element's attribute, or None. */
PyObject *attribute_value(PyObject *element, PyObject *name);

/* How many attributes an element has; -1 for an error. To ask costs a third of asking for one of them. */
Py_ssize_t attribute_count(PyObject *element);

static inline PyObject *property(PyObject *node, const Property *wanted) {
    if (wanted->get != NULL && Py_TYPE(node) == wanted->type) {
        return wanted->get(node, wanted->closure);
    }
    return PyObject_GetAttr(node, wanted->name);
}

int array_fits(const Py_buffer *array, Py_ssize_t items, Py_ssize_t item);
/* Code, parent and last of a tree. */
enum { TREE = 3 };

int tree_fits(Py_ssize_t size, const Py_buffer *codes, const Py_buffer *parents,
              const Py_buffer *lasts);
int numbers_fit(const Py_buffer *array, Py_ssize_t items, int64_t bound);
int texts_fit(PyObject *texts);
int width_fits(Py_ssize_t width);

/* Makes the tables below unpredictable; once, before any is made. */
int hashes_open(void);
/* Learns which of the first letters are white space; once. */
void blanks_open(void);

/* A block of memory; its content is undefined. */
typedef struct {
    void *memory;
    size_t bytes;
} Arena;

int arena_acquire(Arena *room, size_t bytes);
void arena_release(Arena *room);

/* A table from keys to small numbers, in the order in which keys were first seen. */
typedef struct {
    int64_t *keys;
    int32_t *places;
    size_t mask;
    int32_t count;
} Numbers;

int numbers_open(Numbers *numbers, Py_ssize_t expected);
void numbers_close(Numbers *numbers);
int32_t number_of(Numbers *numbers, int64_t key);
int is_numbered(const Numbers *numbers, int64_t key);

/* Arena for letters, which grows. */
typedef struct {
    Py_UCS4 *data;
    Py_ssize_t size, room;
} Letters;

int letters_grow(Letters *letters);

static inline int letters_add(Letters *letters, Py_UCS4 letter) {
    if (letters->size == letters->room && letters_grow(letters) < 0) {
        return -1;
    }
    letters->data[letters->size++] = letter;
    return 0;
}

/* The code of a tag that is known by name; -1 for others. */
int code_of_tag(PyObject *tag);
int tags_open(PyObject *codes);

/* Compiled once for each width of a string's characters, which is then a constant. */
#define FOR_EACH_WIDTH static inline __attribute__((always_inline))

void similarity_open(void);
PyObject *similarity_words(PyObject *module, PyObject *text);
PyObject *similarity_features(PyObject *module, PyObject *args);
PyObject *content_hash_squeezed(PyObject *module, PyObject *text);
PyObject *lexicon_new(PyObject *module, PyObject *scores);
PyObject *native_outline(PyObject *module, PyObject *args);
PyObject *native_rows(PyObject *module, PyObject *args);
PyObject *native_reading(PyObject *module, PyObject *args);
PyObject *native_choose(PyObject *module, PyObject *args);
PyObject *native_prune(PyObject *module, PyObject *args);
PyObject *native_network(PyObject *module, PyObject *args);
PyObject *native_scores(PyObject *module, PyObject *args);
PyObject *native_seeker(PyObject *module, PyObject *rules);
PyObject *native_seek(PyObject *module, PyObject *args);
PyObject *native_tidy(PyObject *module, PyObject *text);

#endif
