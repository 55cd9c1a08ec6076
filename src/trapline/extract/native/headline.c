/* The choice of blocks with the headline above them: the twin of `with_headline` in selection.py. */
#include "native.h"

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
