/* The text of the chosen blocks, and what is shown above them: the twin of `chosen_text` and
 * `with_headline` in selection.py. */
#include "native.h"
#include <string.h>

typedef struct {
    PyObject *nodes, *texts;
    Py_ssize_t size, blocks, pieces, shown;
    const int64_t *code, *last, *first, *piece_row, *piece_block, *pre;
    const uint8_t *chosen;
} Choice;

/* Takes line breaks from one end of what was written after `from`. */
static int strip_lines(PyObject *parts, Py_ssize_t from, int at_end) {
    Py_ssize_t part = at_end ? PyList_GET_SIZE(parts) - 1 : from;
    for (; part >= from && part < PyList_GET_SIZE(parts); part += at_end ? -1 : 1) {
        PyObject *text = PyList_GET_ITEM(parts, part);
        Py_ssize_t start = 0, end = PyUnicode_GET_LENGTH(text), size = end;
        while (!at_end && start < end && PyUnicode_READ_CHAR(text, start) == '\n') {
            start++;
        }
        while (at_end && end > start && PyUnicode_READ_CHAR(text, end - 1) == '\n') {
            end--;
        }
        if (end - start < size) {
            PyObject *rest = PyUnicode_Substring(text, start, end);
            if (rest == NULL || PyList_SetItem(parts, part, rest) < 0) {
                return -1;
            }
        }
        if (end > start) {
            break;
        }
    }
    return 0;
}

/* Adds the text between two rows with its own white space, but for the lines around it. */
static int add_code(const Choice *choice, Py_ssize_t from, Py_ssize_t to, PyObject *line, PyObject *parts) {
    Py_ssize_t start = PyList_GET_SIZE(parts);
    for (Py_ssize_t row = from; row <= to; row++) {
        PyObject *text = NULL;
        if (choice->code[row] == TEXT_NODE) {
            text = property(PyList_GET_ITEM(choice->nodes, row), &text_data);
        } else if (choice->code[row] == design.br) {
            text = Py_NewRef(line);
        } else {
            continue;
        }
        int failed = text == NULL || !PyUnicode_Check(text) || PyList_Append(parts, text) < 0;
        Py_XDECREF(text);
        if (failed) {
            return -1;
        }
    }
    return strip_lines(parts, start, 0) < 0 || strip_lines(parts, start, 1) < 0 ? -1 : 0;
}

/* Blocks go by their first row, so what shows code is passed once. */
static int gather(const Choice *choice, PyObject *line, PyObject *parts) {
    Py_ssize_t piece = 0, shown = 0;
    int64_t code_to = -1;
    for (Py_ssize_t block = 0; block < choice->blocks; block++) {
        int64_t first = choice->first[block], end = first;
        for (; shown < choice->shown && choice->pre[shown] <= first; shown++) {
            int64_t last = choice->last[choice->pre[shown]];
            code_to = last > code_to ? last : code_to;
        }
        for (; piece < choice->pieces && choice->piece_block[piece] <= block; piece++) {
            end = choice->piece_row[piece];
        }
        if (!choice->chosen[block]) {
            continue;
        }
        if (PyList_GET_SIZE(parts) && PyList_Append(parts, line) < 0) {
            return -1;
        }
        int failed = first <= code_to
                         ? add_code(choice, first, end, line, parts)
                         : PyList_Append(parts, PyList_GET_ITEM(choice->texts, block));
        if (failed < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *native_chosen_text(PyObject *module, PyObject *args) {
    (void)module;
    enum { ARRAYS = 7 };
    Py_buffer array[ARRAYS];
    Choice choice = {0};
    if (!PyArg_ParseTuple(args, "O!O!y*y*y*y*y*y*y*", &PyList_Type, &choice.nodes, &PyList_Type,
                          &choice.texts, array, array + 1, array + 2, array + 3, array + 4, array + 5,
                          array + 6)) {
        return NULL;
    }
    const int64_t **places[ARRAYS - 1] = {&choice.code,      &choice.last,        &choice.first,
                                          &choice.piece_row, &choice.piece_block, &choice.pre};
    for (int i = 0; i < ARRAYS - 1; i++) {
        *places[i] = array[i].buf;
    }
    choice.chosen = array[ARRAYS - 1].buf;
    choice.size = PyList_GET_SIZE(choice.nodes);
    choice.blocks = PyList_GET_SIZE(choice.texts);
    choice.pieces = array[3].len / (Py_ssize_t)sizeof(int64_t);
    choice.shown = array[5].len / (Py_ssize_t)sizeof(int64_t);
    PyObject *result = NULL, *parts = PyList_New(0), *line = PyUnicode_FromString("\n");
    PyObject *nothing = PyUnicode_FromStringAndSize(NULL, 0);
    if (parts != NULL && line != NULL && nothing != NULL && texts_fit(choice.texts) == 0 &&
        /* Codes and last rows are compared, and lead nowhere. */
        array_fits(array, choice.size, sizeof(int64_t)) == 0 &&
        array_fits(array + 1, choice.size, sizeof(int64_t)) == 0 &&
        numbers_fit(array + 2, choice.blocks, choice.size) == 0 &&
        numbers_fit(array + 3, choice.pieces, choice.size) == 0 &&
        numbers_fit(array + 4, choice.pieces, choice.blocks) == 0 &&
        numbers_fit(array + 5, choice.shown, choice.size) == 0 &&
        array_fits(array + 6, choice.blocks, 1) == 0 && gather(&choice, line, parts) == 0) {
        result = PyUnicode_Join(nothing, parts);
    }
    Py_XDECREF(parts);
    Py_XDECREF(nothing);
    Py_XDECREF(line);
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return result;
}

/* The choice with the blocks of the headline, which stands from one row to another; None where it
 * stays as it is. */
PyObject *native_with_headline(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer chosen, first;
    Py_ssize_t from, to;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*nn", &chosen, &first, &from, &to)) {
        return NULL;
    }
    Py_ssize_t blocks = chosen.len;
    if (numbers_fit(&first, blocks, MAX_ROWS) == 0) {
        const uint8_t *taken = chosen.buf;
        const int64_t *row = first.buf;
        Py_ssize_t inside = 0, start = 0;
        while (start < blocks && !taken[start]) {
            start++;
        }
        while (inside < blocks && (row[inside] < from || row[inside] > to)) {
            inside++;
        }
        int stays = start == blocks || (inside < blocks && inside > start);
        for (Py_ssize_t i = inside; i < blocks && !stays; i++) {
            stays = taken[i] && row[i] >= from && row[i] <= to;
        }
        result = stays || inside == blocks ? Py_NewRef(Py_None)
                                           : PyByteArray_FromStringAndSize(chosen.buf, blocks);
        for (Py_ssize_t i = inside; i < blocks && result != NULL && result != Py_None; i++) {
            PyByteArray_AS_STRING(result)[i] |= (char)(row[i] >= from && row[i] <= to);
        }
    }
    PyBuffer_Release(&chosen);
    PyBuffer_Release(&first);
    return result;
}
