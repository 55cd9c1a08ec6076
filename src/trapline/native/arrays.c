/* Whether what Python hands over can be read as what it is said to be.
 *
 * Everything after these checks follows rows and parents without looking: a wrong array must be
 * refused here, for further on it would be read past its end.
 */
#include "native.h"
#include <string.h>

static int refused(void) {
    PyErr_SetString(PyExc_ValueError, "arrays of different pages");
    return -1;
}

int array_fits(const Py_buffer *array, Py_ssize_t items, Py_ssize_t item) {
    int whole = array->len == items * item && (uintptr_t)array->buf % (uintptr_t)item == 0;
    return whole ? 0 : refused();
}

/* Its sign is set for a number that is not between two others, which are no negative ones. Without
 * a branch for each, arrays are looked through several times as fast. */
static const uint64_t SIGN = (uint64_t)1 << 63;

static inline uint64_t outside(int64_t number, int64_t least, int64_t most) {
    return (uint64_t)number | ((uint64_t)number - (uint64_t)least) | ((uint64_t)most - (uint64_t)number);
}

/* The tree that was checked last: several functions get the arrays of one page. They cannot change, and
 * a reference keeps others from taking their place in memory. */
static PyObject *fitting[TREE];

/* Whether an array shows the memory of bytes, which never change. */
static int is_constant(PyObject *array) {
    PyObject *base = array == NULL ? NULL : PyObject_GetAttrString(array, "base");
    int constant = base != NULL && PyBytes_CheckExact(base);
    Py_XDECREF(base);
    PyErr_Clear();
    return constant;
}

static void keep_fitting(PyObject *const tree[TREE]) {
    if (is_constant(tree[0]) && is_constant(tree[1]) && is_constant(tree[2])) {
        for (int i = 0; i < TREE; i++) {
            Py_XSETREF(fitting[i], Py_NewRef(tree[i]));
        }
    }
}

/* Parents and last descendants are rows of the page, and only what is no text holds others. */
int tree_fits(Py_ssize_t size, const Py_buffer *codes, const Py_buffer *parents,
              const Py_buffer *lasts) {
    Py_ssize_t item = sizeof(int64_t);
    if (array_fits(codes, size, item) < 0 || array_fits(parents, size, item) < 0 ||
        array_fits(lasts, size, item) < 0) {
        return -1;
    }
    if (codes->obj != NULL && codes->obj == fitting[0] && parents->obj == fitting[1] &&
        lasts->obj == fitting[2]) {
        return 0;
    }
    const int64_t *code = codes->buf, *parent = parents->buf, *last = lasts->buf;
    if (size < 1 || size > MAX_ROWS || code[0] != OTHER_NODE || parent[0] != 0 || last[0] >= size) {
        return refused();
    }
    uint64_t all = 0;
    for (Py_ssize_t row = 0; row < size; row++) {
        all |= outside(code[row], 0, config.tags - 1) | outside(parent[row], 0, row - (row > 0)) |
               outside(last[row], row, size - 1);
    }
    int in_text = 0;
    for (Py_ssize_t row = 0; !(all & SIGN) && row < size; row++) {
        in_text |= code[parent[row]] == TEXT_NODE;
    }
    if (all & SIGN || in_text) {
        return refused();
    }
    keep_fitting((PyObject *const[TREE]){codes->obj, parents->obj, lasts->obj});
    return 0;
}

/* An array of numbers from 0 up to below a bound. */
int numbers_fit(const Py_buffer *array, Py_ssize_t items, int64_t bound) {
    if (array_fits(array, items, sizeof(int64_t)) < 0) {
        return -1;
    }
    const int64_t *numbers = array->buf;
    uint64_t all = 0;
    for (Py_ssize_t i = 0; i < items; i++) {
        all |= outside(numbers[i], 0, bound - 1);
    }
    return all & SIGN ? refused() : 0;
}

/* How many columns a matrix has; none has as many as would make its size overflow. */
int width_fits(Py_ssize_t width) {
    if (width < 1 || width > MAX_WIDTH) {
        PyErr_SetString(PyExc_ValueError, "a matrix of another model");
        return -1;
    }
    return 0;
}

int texts_fit(PyObject *texts) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(texts); i++) {
        if (!PyUnicode_Check(PyList_GET_ITEM(texts, i))) {
            PyErr_SetString(PyExc_TypeError, "texts are strings");
            return -1;
        }
    }
    return 0;
}
