/* The languages of blocks of code: the twin of `languages` in code.py. */
#include "native.h"

typedef struct {
    PyObject *nodes, *given, *classed;
    const int64_t *code, *parent, *last, *blocks, *inner;
    Py_ssize_t size, count, inners;
} CodeBlocks;

enum { STEPS_UP = 3 };
static PyObject *name_data_lang, *name_data_language;

static int names_open(void) {
    if (name_data_lang == NULL) {
        name_data_lang = PyUnicode_InternFromString("data-lang");
        name_data_language = PyUnicode_InternFromString("data-language");
    }
    return name_data_lang == NULL || name_data_language == NULL ? -1 : 0;
}

/* What an attribute says of the language, or None; NULL, also without an error, if it is not there. */
static PyObject *told(PyObject *element, PyObject *name, PyObject *reader) {
    PyObject *value = attribute_value(element, name), *language = NULL;
    if (value != NULL && PyUnicode_Check(value) && PyUnicode_GET_LENGTH(value) > 0) {
        language = PyObject_CallOneArg(reader, value);
    }
    Py_XDECREF(value);
    return language;
}

static PyObject *language_of(const CodeBlocks *page, int64_t row) {
    PyObject *element = PyList_GET_ITEM(page->nodes, row);
    PyObject *language = told(element, name_data_lang, page->given);
    if (language == NULL && !PyErr_Occurred()) {
        language = told(element, name_data_language, page->given);
    }
    if (language == NULL && !PyErr_Occurred()) {
        language = told(element, name_class, page->classed);
    }
    return language == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : language;
}

/* The language that the code in a block, the block itself or what is around it names. */
static PyObject *language_around(const CodeBlocks *page, int64_t block, int64_t inner) {
    PyObject *language = inner > 0 ? language_of(page, inner) : Py_NewRef(Py_None);
    for (int step = 0; step <= STEPS_UP && language == Py_None && page->code[block] >= OTHER_TAG;
         step++, block = page->parent[block]) {
        Py_DECREF(language);
        language = language_of(page, block);
    }
    return language;
}

/* 1 where a block stands in another, whose mark it would read; -1 for an error. */
static int gather(const CodeBlocks *page, PyObject *found) {
    Py_ssize_t next = 0;
    for (Py_ssize_t i = 0; i < page->count; i++) {
        int64_t block = page->blocks[i];
        if (i > 0 && block <= page->last[page->blocks[i - 1]]) {
            return 1;
        }
        while (next < page->inners && page->inner[next] <= block) {
            next++;
        }
        int64_t inner = next < page->inners && page->inner[next] <= page->last[block] ? page->inner[next] : 0;
        PyObject *language = language_around(page, block, inner), *pair = NULL;
        if (language != NULL && language != Py_None) {
            pair = PyTuple_Pack(2, PyList_GET_ITEM(page->nodes, inner ? inner : block), language);
        }
        int failed = language == NULL || (language != Py_None && pair == NULL) ||
                     (pair != NULL && PyList_Append(found, pair) < 0);
        Py_XDECREF(language);
        Py_XDECREF(pair);
        if (failed) {
            return -1;
        }
    }
    return 0;
}

PyObject *native_languages(PyObject *module, PyObject *args) {
    (void)module;
    enum { ARRAYS = 5 };
    Py_buffer array[ARRAYS];
    CodeBlocks page = {0};
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*y*OO", &PyList_Type, &page.nodes, array, array + 1, array + 2,
                          array + 3, array + 4, &page.given, &page.classed)) {
        return NULL;
    }
    const int64_t **places[ARRAYS] = {&page.code, &page.parent, &page.last, &page.blocks, &page.inner};
    for (int i = 0; i < ARRAYS; i++) {
        *places[i] = array[i].buf;
    }
    page.size = PyList_GET_SIZE(page.nodes);
    page.count = array[3].len / (Py_ssize_t)sizeof(int64_t);
    page.inners = array[4].len / (Py_ssize_t)sizeof(int64_t);
    PyObject *found = NULL;
    if (names_open() == 0 && tree_fits(page.size, array, array + 1, array + 2) == 0 &&
        numbers_fit(array + 3, page.count, page.size) == 0 &&
        numbers_fit(array + 4, page.inners, page.size) == 0) {
        found = PyList_New(0);
    }
    int nested = found != NULL ? gather(&page, found) : 0;
    if (nested) {
        Py_CLEAR(found);
        found = nested > 0 ? Py_NewRef(Py_None) : NULL;
    }
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return found;
}
