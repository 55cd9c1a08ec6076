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

/* Blocks as they are found; arrays of 64-bit numbers that grow together. */
typedef struct {
    int64_t *words, *owner, *first, *piece_row, *piece_block, *piece_size;
    Py_ssize_t blocks, pieces;
    PyObject *texts;
    Text text;
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
static int text_grow(Text *text, Py_ssize_t more) {
    Py_ssize_t wanted = text->size + more;
    if (text->is_wide && wanted > text->letters_room) {
        Py_ssize_t room = wanted + wanted / 2 + 256;
        Py_UCS4 *letters = PyMem_Realloc(text->letters, room * sizeof(Py_UCS4));
        if (letters == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        text->letters = letters;
        text->letters_room = room;
    } else if (!text->is_wide && wanted > text->room) {
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

/* Adds eight letters as they are, if all are ASCII and have no white space but single blanks. */
static inline int add_eight(Text *text, const Py_UCS1 *data) {
    uint64_t letters = eight_bytes(data);
    uint64_t blanks = ~((letters ^ ' ' * ONES) + 0x7f * ONES) & HIGHEST;
    uint64_t after_blank = blanks << 8 | (uint64_t)text->after_blank << 7;
    /* Nothing is beyond ASCII, nothing is below a blank, no blank is after a blank. */
    if ((letters & HIGHEST) || (~(letters + 0x60 * ONES) & HIGHEST) || (blanks & after_blank)) {
        return 0;
    }
    memcpy(text->bytes + text->size, data, 8);
    text->size += 8;
    text->words += (int64_t)((after_blank >> 7) * ONES >> 56);
    text->after_blank = (int)(blanks >> 63);
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
        Py_ssize_t count = size < 8 ? size : 8;
        if (count < 8 || !add_eight(&text, data)) {
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
    if (text_grow(text, size) < 0) {
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

static PyObject *text_end(const Text *text) {
    Py_ssize_t size = text->size - (text->after_blank && text->size > 0);
    if (text->is_wide) {
        return PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, text->letters, size);
    }
    PyObject *made = PyUnicode_New(size, text->seen < 128 ? 127 : 255);
    if (made != NULL && size > 0) {
        memcpy(PyUnicode_1BYTE_DATA(made), text->bytes, size);
    }
    return made;
}

static int end_block(Found *found) {
    if (found->blocks == 0) {
        return 0;
    }
    PyObject *text = text_end(&found->text);
    int failed = text == NULL || PyList_Append(found->texts, text) < 0;
    Py_XDECREF(text);
    found->words[found->blocks - 1] = found->text.words;
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
    int spaced;
} Place;

static int add_piece(Found *found, PyObject *text, int64_t row, Place before, Place here) {
    int64_t breaks = here.breaks - before.breaks;
    int failed = 0;
    if (found->blocks == 0 || here.owner != before.owner || here.opened != before.opened ||
        breaks >= 2) {
        failed = end_block(found) < 0;
        text_begin(&found->text);
        found->owner[found->blocks] = here.owner;
        found->first[found->blocks++] = row;
    } else if (here.spaced || breaks > 0) {
        failed = add_blank(&found->text) < 0;
    }
    found->piece_row[found->pieces] = row;
    found->piece_block[found->pieces] = found->blocks - 1;
    found->piece_size[found->pieces++] = PyUnicode_GET_LENGTH(text);
    return failed ? -1 : add_text(&found->text, text);
}

static int find_blocks(Found *found, PyObject *nodes, const int64_t *code, const int64_t *parent,
                       const int64_t *last, int64_t *owner) {
    Py_ssize_t size = PyList_GET_SIZE(nodes);
    int64_t hidden_to = -1;
    Place before = {-1, -1, 0, 0}, here = {0};
    for (Py_ssize_t row = 0; row < size; row++) {
        int64_t kind = code[row];
        if (kind != TEXT_NODE) {
            int block_level = design.block[kind] || kind == OTHER_NODE;
            owner[row] = block_level ? row : owner[parent[row]];
            here.opened += block_level;
            here.breaks += kind == design.br;
            if (row > hidden_to && design.hidden[kind]) {
                hidden_to = last[row];
            }
            continue;
        }
        if (row <= hidden_to) {
            continue;
        }
        PyObject *text = property(PyList_GET_ITEM(nodes, row), &text_data);
        if (text == NULL) {
            return -1;
        }
        if (!PyUnicode_Check(text)) {
            PyErr_SetString(PyExc_TypeError, "a text is a string");
            Py_DECREF(text);
            return -1;
        }
        int failed = 0;
        if (is_blank(text)) {
            here.spaced = 1;
        } else {
            here.owner = owner[parent[row]];
            failed = add_piece(found, text, row, before, here) < 0;
            here.spaced = 0;
            before = here;
        }
        Py_DECREF(text);
        if (failed) {
            return -1;
        }
    }
    return end_block(found);
}

static PyObject *numbers(const int64_t *data, Py_ssize_t size) {
    return PyBytes_FromStringAndSize((const char *)data, size * (Py_ssize_t)sizeof(int64_t));
}

PyObject *native_blocks(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *nodes, *result = NULL;
    Py_buffer code, parent, last;
    if (!PyArg_ParseTuple(args, "O!y*y*y*", &PyList_Type, &nodes, &code, &parent, &last)) {
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(nodes), texts = 0;
    Found found = {0};
    int64_t *room = NULL;
    if (tree_fits(size, &code, &parent, &last) < 0) {
        goto done;
    }
    for (Py_ssize_t row = 0; row < size; row++) {
        texts += ((const int64_t *)code.buf)[row] == TEXT_NODE;
    }
    found.texts = PyList_New(0);
    room = PyMem_Malloc((6 * texts + size + 1) * sizeof(int64_t));
    if (room == NULL) {
        PyErr_NoMemory();
    } else if (found.texts != NULL) {
        found.words = room;
        found.owner = room + texts;
        found.first = room + 2 * texts;
        found.piece_row = room + 3 * texts;
        found.piece_block = room + 4 * texts;
        found.piece_size = room + 5 * texts;
        if (find_blocks(&found, nodes, code.buf, parent.buf, last.buf, room + 6 * texts) == 0) {
            result = Py_BuildValue(
                "ONNNNNN", found.texts, numbers(found.words, found.blocks),
                numbers(found.owner, found.blocks), numbers(found.first, found.blocks),
                numbers(found.piece_row, found.pieces), numbers(found.piece_block, found.pieces),
                numbers(found.piece_size, found.pieces));
        }
    }
done:
    Py_XDECREF(found.texts);
    PyMem_Free(found.text.bytes);
    PyMem_Free(found.text.letters);
    PyMem_Free(room);
    PyBuffer_Release(&code);
    PyBuffer_Release(&parent);
    PyBuffer_Release(&last);
    return result;
}
