/* The text of a page, cut into blocks: the twin of blocks.py. */
#include "words.h"
#include <string.h>

/* A block's text as it grows, in bytes as long as these will do. Runs of white space are one blank; one
 * may stand at its end. */
typedef struct {
    Py_UCS1 *bytes;
    Py_UCS4 *letters;
    Py_ssize_t size, room, letters_room;
    int64_t words;
    int is_wide, after_blank;
    Py_UCS1 seen;
} Text;

/* Code as it is written, with its own white space, and where it ends with the last text that is more. */
typedef struct {
    Text text;
    Py_ssize_t end;
    int is_shown;
} Code;

/* Blocks as they are found; arrays of 64-bit numbers that grow together. */
typedef struct {
    int64_t *words, *owner, *first, *piece_row, *piece_block, *piece_size;
    Py_ssize_t blocks, pieces;
    PyObject *texts, *shown;
    Text text;
    Code code;
} Found;

static uint8_t is_blank_byte[256];

void blanks_open(void) {
    for (int i = 0; i < 256; i++) {
        is_blank_byte[i] = Py_UNICODE_ISSPACE((Py_UCS4)i) != 0;
    }
}

static void text_begin(Text *text) {
    text->size = text->words = 0;
    text->is_wide = text->seen = 0;
    text->after_blank = 1;
}

/* Makes room for so many letters more. */
static inline int text_grow(Text *text, Py_ssize_t more) {
    Py_ssize_t wanted = text->size + more;
    if (wanted <= (text->is_wide ? text->letters_room : text->room)) {
        return 0;
    }
    if (text->is_wide) {
        Py_ssize_t room = wanted + wanted / 2 + 256;
        Py_UCS4 *letters = PyMem_Realloc(text->letters, room * sizeof(Py_UCS4));
        if (letters == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        text->letters = letters;
        text->letters_room = room;
    } else {
        Py_ssize_t room = wanted + wanted / 2 + 1024;
        Py_UCS1 *bytes = PyMem_Realloc(text->bytes, room);
        if (bytes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        text->bytes = bytes;
        text->room = room;
    }
    return 0;
}

static int text_widen(Text *text) {
    if (text->is_wide) {
        return 0;
    }
    text->is_wide = 1;
    if (text_grow(text, 0) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < text->size; i++) {
        text->letters[i] = text->bytes[i];
    }
    return 0;
}

static const uint64_t ONES = 0x0101010101010101, HIGHEST = 0x8080808080808080;
enum { EIGHT = 8 };

/* Up to eight letters as a number; parts that have some of them in common are put together. */
static inline uint64_t few_bytes(const Py_UCS1 *data, int count) {
    if (count == EIGHT) {
        return eight_bytes(data);
    }
    if (count >= 4) {
        return four_bytes(data) | four_bytes(data + count - 4) << 8 * (count - 4);
    }
    return (uint64_t)data[0] | (uint64_t)data[count / 2] << 8 * (count / 2) |
           (uint64_t)data[count - 1] << 8 * (count - 1);
}

/* Adds one to eight letters as they are, if all are ASCII and have no white space but single blanks.
 * There is room for eight. */
static inline int add_eight(Text *text, const Py_UCS1 *data, int count) {
    uint64_t given = few_bytes(data, count), mine = ~(uint64_t)0 >> 8 * (EIGHT - count);
    uint64_t letters = given | (~mine & 'a' * ONES);
    uint64_t blanks = ~((letters ^ ' ' * ONES) + 0x7f * ONES) & HIGHEST;
    uint64_t after_blank = blanks << 8 | (uint64_t)text->after_blank << 7;
    /* Nothing is beyond ASCII, nothing is below a blank, no blank is after a blank. */
    if ((letters & HIGHEST) || (~(letters + 0x60 * ONES) & HIGHEST) || (blanks & after_blank)) {
        return 0;
    }
    memcpy(text->bytes + text->size, &given, EIGHT);
    text->size += count;
    text->words += (int64_t)(((after_blank & mine) >> 7) * ONES >> 56);
    text->after_blank = (int)(blanks >> (8 * count - 1) & 1);
    return 1;
}

/* Without a branch for each letter: where words end cannot be foretold. A blank after a blank is
 * overwritten by what follows. */
static inline void add_few(Text *text, const Py_UCS1 *data, Py_ssize_t size) {
    Py_UCS1 *to = text->bytes + text->size;
    int after_blank = text->after_blank;
    for (Py_ssize_t i = 0; i < size; i++) {
        int blank = is_blank_byte[data[i]];
        Py_UCS1 letter = blank ? ' ' : data[i];
        text->seen |= letter;
        text->words += after_blank & !blank;
        *to = letter;
        to += !(after_blank & blank);
        after_blank = blank;
    }
    text->size = to - text->bytes;
    text->after_blank = after_blank;
}

static void add_bytes(Text *given, const Py_UCS1 *data, Py_ssize_t size) {
    Text text = *given;
    while (size > 0) {
        int count = size < EIGHT ? (int)size : EIGHT;
        if (!add_eight(&text, data, count)) {
            add_few(&text, data, count);
        }
        data += count;
        size -= count;
    }
    *given = text;
}

static void add_letters(Text *text, PyObject *given) {
    int kind = PyUnicode_KIND(given), after_blank = text->after_blank;
    const void *data = PyUnicode_DATA(given);
    Py_ssize_t size = PyUnicode_GET_LENGTH(given);
    Py_UCS4 *to = text->letters + text->size;
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        int blank = letter < 256 ? is_blank_byte[letter] : Py_UNICODE_ISSPACE(letter) != 0;
        text->words += after_blank & !blank;
        *to = blank ? ' ' : letter;
        to += !(after_blank & blank);
        after_blank = blank;
    }
    text->size = to - text->letters;
    text->after_blank = after_blank;
}

static int add_text(Text *text, PyObject *given) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(given);
    if (PyUnicode_KIND(given) != PyUnicode_1BYTE_KIND && text_widen(text) < 0) {
        return -1;
    }
    if (text_grow(text, size + EIGHT) < 0) {
        return -1;
    }
    if (text->is_wide) {
        add_letters(text, given);
    } else {
        add_bytes(text, PyUnicode_1BYTE_DATA(given), size);
    }
    return 0;
}

static int add_blank(Text *text) {
    if (text->after_blank) {
        return 0;
    }
    if (text_grow(text, 1) < 0) {
        return -1;
    }
    if (text->is_wide) {
        text->letters[text->size++] = ' ';
    } else {
        text->bytes[text->size++] = ' ';
    }
    text->after_blank = 1;
    return 0;
}

/* The string between two letters of a text. */
static PyObject *text_part(const Text *text, Py_ssize_t from, Py_ssize_t to) {
    if (text->is_wide) {
        return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, text->letters + from, to - from);
    }
    if (text->seen >= 128) {
        return PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, text->bytes + from, to - from);
    }
    PyObject *made = PyUnicode_New(to - from, 127);
    if (made != NULL && to > from) {
        memcpy(PyUnicode_1BYTE_DATA(made), text->bytes + from, to - from);
    }
    return made;
}

static PyObject *text_end(const Text *text) {
    return text_part(text, 0, text->size - (text->after_blank && text->size > 0));
}

/* Adds a text as it is. */
static int add_written(Text *text, PyObject *given) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(given);
    int kind = PyUnicode_KIND(given);
    const void *data = PyUnicode_DATA(given);
    if ((kind != PyUnicode_1BYTE_KIND && text_widen(text) < 0) || text_grow(text, size + EIGHT) < 0) {
        return -1;
    }
    text->seen |= PyUnicode_IS_ASCII(given) ? 0 : 0x80;
    if (!text->is_wide) {
        memcpy(text->bytes + text->size, data, size);
    }
    for (Py_ssize_t i = 0; text->is_wide && i < size; i++) {
        text->letters[text->size + i] = PyUnicode_READ(kind, data, i);
    }
    text->size += size;
    return 0;
}

static int is_line_break(const Text *text, Py_ssize_t place) {
    return (text->is_wide ? text->letters[place] : text->bytes[place]) == '\n';
}

/* The code of a block without the line breaks around it. */
static PyObject *code_end(const Code *code) {
    Py_ssize_t from = 0, to = code->end;
    while (from < to && is_line_break(&code->text, from)) {
        from++;
    }
    while (to > from && is_line_break(&code->text, to - 1)) {
        to--;
    }
    return text_part(&code->text, from, to);
}

/* The texts as they are shown are a list of their own from the first code on. */
static int put_shown(Found *found, PyObject *shown) {
    if (found->shown == found->texts) {
        return 0;
    }
    return shown == NULL ? -1 : PyList_Append(found->shown, shown);
}

static int put_code(Found *found) {
    if (found->shown == found->texts) {
        Py_SETREF(found->shown, PyList_GetSlice(found->texts, 0, found->blocks - 1));
    }
    PyObject *code = found->shown != NULL ? code_end(&found->code) : NULL;
    int failed = put_shown(found, code) < 0;
    Py_XDECREF(code);
    return failed ? -1 : 0;
}

static int end_block(Found *found) {
    if (found->blocks == 0) {
        return 0;
    }
    found->words[found->blocks - 1] = found->text.words;
    PyObject *text = text_end(&found->text);
    int failed = text == NULL || PyList_Append(found->texts, text) < 0;
    if (!failed) {
        failed = (found->code.is_shown ? put_code(found) : put_shown(found, text)) < 0;
    }
    Py_XDECREF(text);
    return failed ? -1 : 0;
}

static int is_blank(PyObject *text) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        if (letter < 256 ? !is_blank_byte[letter] : !Py_UNICODE_ISSPACE(letter)) {
            return 0;
        }
    }
    return size > 0;
}

/* What separates one text from the text before it. */
typedef struct {
    int64_t owner, opened, breaks;
    int spaced, in_code;
} Place;

static int begin_block(Found *found, int64_t row, const Place *here) {
    int failed = end_block(found) < 0;
    text_begin(&found->text);
    text_begin(&found->code.text);
    found->code.is_shown = here->in_code;
    found->owner[found->blocks] = here->owner;
    found->first[found->blocks++] = row;
    return failed ? -1 : 0;
}

static int add_piece(Found *found, PyObject *text, int64_t row, const Place *before, const Place *here) {
    int64_t breaks = here->breaks - before->breaks;
    int failed = 0;
    if (found->blocks == 0 || here->owner != before->owner || here->opened != before->opened ||
        breaks >= 2) {
        failed = begin_block(found, row, here) < 0;
    } else if (here->spaced || breaks > 0) {
        failed = add_blank(&found->text) < 0;
    }
    found->piece_row[found->pieces] = row;
    found->piece_block[found->pieces] = found->blocks - 1;
    found->piece_size[found->pieces++] = PyUnicode_GET_LENGTH(text);
    return failed ? -1 : add_text(&found->text, text);
}

/* What is between two texts of a block is a part of the code that it shows, were it hidden. */
static int add_code(Found *found, PyObject *text, int is_piece) {
    Code *code = &found->code;
    if (!code->is_shown) {
        return 0;
    }
    if (add_written(&code->text, text) < 0) {
        return -1;
    }
    code->end = is_piece ? code->text.size : code->end;
    return 0;
}

typedef struct {
    PyObject *nodes;
    const int64_t *code, *parent, *last;
    /* The block-level element that each element is or stands in. */
    int64_t *owner;
    /* The last rows of what is hidden, and of what shows code. */
    int64_t hidden_to, code_to;
    Place before, here;
    PyObject *line;
} Walk;

static int pass_element(Walk *walk, Py_ssize_t row, Found *found) {
    int64_t kind = walk->code[row], last = walk->last[row];
    int block_level = design.block[kind] || kind == OTHER_NODE;
    walk->owner[row] = block_level ? row : walk->owner[walk->parent[row]];
    walk->here.opened += block_level;
    if (design.hidden[kind] && row > walk->hidden_to) {
        walk->hidden_to = last;
    }
    if (kind == design.pre && last > walk->code_to) {
        walk->code_to = last;
    }
    if (kind == design.br) {
        walk->here.breaks++;
        return add_code(found, walk->line, 0);
    }
    return 0;
}

static int pass_text(Walk *walk, Py_ssize_t row, PyObject *text, Found *found) {
    Place *here = &walk->here;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return -1;
    }
    if (row <= walk->hidden_to) {
        return add_code(found, text, 0);
    }
    if (is_blank(text)) {
        here->spaced = 1;
        return add_code(found, text, 0);
    }
    here->owner = walk->owner[walk->parent[row]];
    here->in_code = row <= walk->code_to;
    if (add_piece(found, text, row, &walk->before, here) < 0) {
        return -1;
    }
    here->spaced = 0;
    walk->before = *here;
    return add_code(found, text, 1);
}

static int find_blocks(Walk *walk, Found *found) {
    Py_ssize_t size = PyList_GET_SIZE(walk->nodes);
    walk->hidden_to = walk->code_to = walk->before.owner = walk->before.opened = -1;
    for (Py_ssize_t row = 0; row < size; row++) {
        if (walk->code[row] != TEXT_NODE) {
            if (pass_element(walk, row, found) < 0) {
                return -1;
            }
            continue;
        }
        if (row <= walk->hidden_to && row > walk->code_to) {
            continue;
        }
        PyObject *text = property(PyList_GET_ITEM(walk->nodes, row), &text_data);
        int failed = text == NULL || pass_text(walk, row, text, found) < 0;
        Py_XDECREF(text);
        if (failed) {
            return -1;
        }
    }
    return end_block(found);
}

static PyObject *numbers(const int64_t *data, Py_ssize_t size) {
    return PyBytes_FromStringAndSize((const char *)data, size * (Py_ssize_t)sizeof(int64_t));
}

static PyObject *blocks_of(Walk *walk, Py_ssize_t size) {
    Py_ssize_t texts = 0;
    for (Py_ssize_t row = 0; row < size; row++) {
        texts += walk->code[row] == TEXT_NODE;
    }
    PyObject *result = NULL;
    Found found = {.texts = PyList_New(0)};
    found.shown = Py_XNewRef(found.texts);
    int64_t *room = PyMem_Malloc((6 * texts + size + 1) * sizeof(int64_t));
    walk->line = PyUnicode_FromString("\n");
    if (room == NULL) {
        PyErr_NoMemory();
    } else if (found.texts != NULL && walk->line != NULL) {
        int64_t **arrays[] = {&found.words,     &found.owner,       &found.first,     &found.piece_row,
                              &found.piece_block, &found.piece_size, &walk->owner};
        for (int i = 0; i < 7; i++) {
            *arrays[i] = room + i * texts;
        }
        if (find_blocks(walk, &found) == 0) {
            result = Py_BuildValue(
                "OONNNNNN", found.texts, found.shown, numbers(found.words, found.blocks),
                numbers(found.owner, found.blocks), numbers(found.first, found.blocks),
                numbers(found.piece_row, found.pieces), numbers(found.piece_block, found.pieces),
                numbers(found.piece_size, found.pieces));
        }
    }
    Py_XDECREF(walk->line);
    Py_XDECREF(found.texts);
    Py_XDECREF(found.shown);
    PyMem_Free(found.text.bytes);
    PyMem_Free(found.text.letters);
    PyMem_Free(found.code.text.bytes);
    PyMem_Free(found.code.text.letters);
    PyMem_Free(room);
    return result;
}

PyObject *native_blocks(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *result = NULL;
    Py_buffer code, parent, last;
    Walk walk = {0};
    if (!PyArg_ParseTuple(args, "O!y*y*y*", &PyList_Type, &walk.nodes, &code, &parent, &last)) {
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(walk.nodes);
    if (tree_fits(size, &code, &parent, &last) == 0) {
        walk.code = code.buf;
        walk.parent = parent.buf;
        walk.last = last.buf;
        result = blocks_of(&walk, size);
    }
    PyBuffer_Release(&code);
    PyBuffer_Release(&parent);
    PyBuffer_Release(&last);
    return result;
}
