/* The text of a page, cut into blocks: the counterpart of blocks.py. */
#include "blocks.h"
#include "vocabulary.h"
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

/* What separates one text from the text before it. */
typedef struct {
    int64_t owner, opened, breaks;
} Place;

/* Numbers of the same kind for one block after another, or for one piece after another. */
enum { COLUMNS = 3 };
enum { WORDS, OWNER, FIRST };
enum { ROW, BLOCK, SIZE };

typedef struct {
    int64_t (*rows)[COLUMNS];
    Py_ssize_t size, room;
} Table;

struct BlockBuilder {
    Table blocks, pieces;
    PyObject *texts, *shown, *line;
    /* Where the text before stands; how many block-level elements and breaks were passed since the beginning, and
     * whether white space was since that text. */
    Place before;
    int64_t opened, breaks;
    int spaced;
    Text text;
    Code code;
};

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

/* Where a text in bytes goes on: what changes with each letter. */
typedef struct {
    Py_UCS1 *to;
    int64_t words;
    int after_blank;
    Py_UCS1 seen;
} End;

/* Adds one to eight letters as they are, if all are ASCII and have no white space but single blanks.
 * There is room for eight. */
static inline int add_eight(End *text, const Py_UCS1 *data, int count) {
    uint64_t given = few_bytes(data, count), mine = ~(uint64_t)0 >> 8 * (EIGHT - count);
    uint64_t letters = given | (~mine & 'a' * ONES);
    uint64_t blanks = ~((letters ^ ' ' * ONES) + 0x7f * ONES) & HIGHEST;
    uint64_t after_blank = blanks << 8 | (uint64_t)text->after_blank << 7;
    /* Nothing is beyond ASCII, nothing is below a blank, no blank is after a blank. */
    if ((letters & HIGHEST) || (~(letters + 0x60 * ONES) & HIGHEST) || (blanks & after_blank)) {
        return 0;
    }
    memcpy(text->to, &given, EIGHT);
    text->to += count;
    text->words += (int64_t)(((after_blank & mine) >> 7) * ONES >> 56);
    text->after_blank = (int)(blanks >> (8 * count - 1) & 1);
    return 1;
}

/* Without a branch for each letter: where words end cannot be foretold. A blank after a blank is
 * overwritten by what follows. */
static inline void add_few(End *text, const Py_UCS1 *data, int count) {
    End end = *text;
    for (int i = 0; i < count; i++) {
        int blank = is_blank_byte[data[i]];
        Py_UCS1 letter = blank ? ' ' : data[i];
        end.seen |= letter;
        end.words += end.after_blank & !blank;
        *end.to = letter;
        end.to += !(end.after_blank & blank);
        end.after_blank = blank;
    }
    *text = end;
}

static void add_bytes(Text *text, const Py_UCS1 *data, Py_ssize_t size) {
    End end = {text->bytes + text->size, text->words, text->after_blank, text->seen};
    while (size > 0) {
        int count = size < EIGHT ? (int)size : EIGHT;
        if (!add_eight(&end, data, count)) {
            add_few(&end, data, count);
        }
        data += count;
        size -= count;
    }
    text->size = end.to - text->bytes;
    text->words = end.words;
    text->after_blank = end.after_blank;
    text->seen = end.seen;
}

static void add_letters(Text *text, PyObject *given) {
    int kind = PyUnicode_KIND(given), after_blank = text->after_blank;
    const void *data = PyUnicode_DATA(given);
    Py_ssize_t size = PyUnicode_GET_LENGTH(given);
    Py_UCS4 *to = text->letters + text->size;
    int64_t words = text->words;
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        int blank = letter < 256 ? is_blank_byte[letter] : Py_UNICODE_ISSPACE(letter) != 0;
        words += after_blank & !blank;
        *to = blank ? ' ' : letter;
        to += !(after_blank & blank);
        after_blank = blank;
    }
    text->size = to - text->letters;
    text->words = words;
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
static int put_shown(BlockBuilder *found, PyObject *shown) {
    if (found->shown == found->texts) {
        return 0;
    }
    return shown == NULL ? -1 : PyList_Append(found->shown, shown);
}

static int put_code(BlockBuilder *found) {
    if (found->shown == found->texts) {
        Py_SETREF(found->shown, PyList_GetSlice(found->texts, 0, found->blocks.size - 1));
    }
    PyObject *code = found->shown != NULL ? code_end(&found->code) : NULL;
    int failed = put_shown(found, code) < 0;
    Py_XDECREF(code);
    return failed ? -1 : 0;
}

static int end_block(BlockBuilder *found) {
    if (found->blocks.size == 0) {
        return 0;
    }
    found->blocks.rows[found->blocks.size - 1][WORDS] = found->text.words;
    PyObject *text = text_end(&found->text);
    int failed = text == NULL || PyList_Append(found->texts, text) < 0;
    if (!failed) {
        failed = (found->code.is_shown ? put_code(found) : put_shown(found, text)) < 0;
    }
    Py_XDECREF(text);
    return failed ? -1 : 0;
}

static int table_grow(Table *table) {
    Py_ssize_t room = table->room ? 2 * table->room : 512;
    int64_t(*rows)[COLUMNS] = PyMem_Realloc(table->rows, room * sizeof(rows[0]));
    if (rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    table->rows = rows;
    table->room = room;
    return 0;
}

static int table_add(Table *table, int64_t first, int64_t second, int64_t third) {
    if (table->size == table->room && table_grow(table) < 0) {
        return -1;
    }
    int64_t *row = table->rows[table->size++];
    row[0] = first;
    row[1] = second;
    row[2] = third;
    return 0;
}

static PyObject *column(const Table *table, int which) {
    PyObject *made = PyBytes_FromStringAndSize(NULL, table->size * (Py_ssize_t)sizeof(int64_t));
    int64_t *numbers = made == NULL ? NULL : (int64_t *)PyBytes_AS_STRING(made);
    for (Py_ssize_t i = 0; numbers != NULL && i < table->size; i++) {
        numbers[i] = table->rows[i][which];
    }
    return made;
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

static int begin_block(BlockBuilder *found, Py_ssize_t row, const OpenElement *parent) {
    if (end_block(found) < 0) {
        return -1;
    }
    text_begin(&found->text);
    text_begin(&found->code.text);
    found->code.is_shown = parent->is_code;
    return table_add(&found->blocks, 0, parent->owner, row);
}

static int add_piece(BlockBuilder *found, PyObject *text, Py_ssize_t row, const OpenElement *parent) {
    Place before = found->before;
    int64_t breaks = found->breaks - before.breaks;
    int failed = 0;
    if (found->blocks.size == 0 || parent->owner != before.owner || found->opened != before.opened ||
        breaks >= 2) {
        failed = begin_block(found, row, parent) < 0;
    } else if (found->spaced || breaks > 0) {
        failed = add_blank(&found->text) < 0;
    }
    found->before = (Place){parent->owner, found->opened, found->breaks};
    found->spaced = 0;
    failed = failed || table_add(&found->pieces, row, found->blocks.size - 1, PyUnicode_GET_LENGTH(text)) < 0;
    return failed ? -1 : add_text(&found->text, text);
}

/* What is between two texts of a block is a part of the code that it shows, were it hidden. */
static int add_code(BlockBuilder *found, PyObject *text, int is_piece) {
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

int pass_element(BlockBuilder *found, int code) {
    found->opened += is_block_level(code);
    if (code == config.br) {
        found->breaks++;
        return add_code(found, found->line, 0);
    }
    return 0;
}

int pass_text(BlockBuilder *found, Py_ssize_t row, const OpenElement *parent, PyObject *text) {
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return -1;
    }
    if (parent->is_hidden) {
        return add_code(found, text, 0);
    }
    if (is_blank(text)) {
        found->spaced = 1;
        return add_code(found, text, 0);
    }
    return add_piece(found, text, row, parent) < 0 ? -1 : add_code(found, text, 1);
}

PyObject *blocks_made(BlockBuilder *found) {
    if (end_block(found) < 0) {
        return NULL;
    }
    return Py_BuildValue("OONNNNNN", found->texts, found->shown, column(&found->blocks, WORDS),
                         column(&found->blocks, OWNER), column(&found->blocks, FIRST),
                         column(&found->pieces, ROW), column(&found->pieces, BLOCK),
                         column(&found->pieces, SIZE));
}

BlockBuilder *blocks_open(void) {
    BlockBuilder *found = PyMem_Calloc(1, sizeof(BlockBuilder));
    if (found == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    found->texts = PyList_New(0);
    found->shown = Py_XNewRef(found->texts);
    found->line = PyUnicode_FromString("\n");
    if (found->texts == NULL || found->line == NULL) {
        blocks_close(found);
        return NULL;
    }
    return found;
}

void blocks_close(BlockBuilder *found) {
    if (found == NULL) {
        return;
    }
    Py_XDECREF(found->texts);
    Py_XDECREF(found->shown);
    Py_XDECREF(found->line);
    PyMem_Free(found->text.bytes);
    PyMem_Free(found->text.letters);
    PyMem_Free(found->code.text.bytes);
    PyMem_Free(found->code.text.letters);
    PyMem_Free(found->blocks.rows);
    PyMem_Free(found->pieces.rows);
    PyMem_Free(found);
}
