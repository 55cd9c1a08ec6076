/* What type a page has: the twin of the small network in scorer.py that is told of the page alone. */
#include "network.h"
#include <string.h>

enum { MEAN, SCALE, HIDDEN, HIDDEN_BIAS, OUT, OUT_BIAS, ARRAYS };

typedef struct {
    Py_ssize_t size, hidden, types;
    float bound;
    float *array[ARRAYS];
} Types;

static const char *CAPSULE = "trapline.extract.types";

static void capsule_close(PyObject *capsule) {
    Types *types = PyCapsule_GetPointer(capsule, CAPSULE);
    if (types != NULL) {
        PyMem_Free(types->array[MEAN]);
        PyMem_Free(types);
    }
}

/* How wide the layers are is told by their biases. One piece of memory holds them all. */
static int types_fill(Types *types, const Py_buffer *array) {
    Py_ssize_t item = sizeof(float), all = 0;
    types->size = array[MEAN].len / item;
    types->hidden = array[HIDDEN_BIAS].len / item;
    types->types = array[OUT_BIAS].len / item;
    if (width_fits(types->size) < 0 || width_fits(types->hidden) < 0 || width_fits(types->types) < 0) {
        return -1;
    }
    const Py_ssize_t wanted[ARRAYS] = {types->size,   types->size,
                                       types->size * types->hidden, types->hidden,
                                       types->hidden * types->types, types->types};
    for (int i = 0; i < ARRAYS; i++) {
        if (array_fits(array + i, wanted[i], item) < 0) {
            return -1;
        }
        all += wanted[i];
    }
    float *memory = PyMem_Malloc(all * sizeof(float));
    if (memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < ARRAYS; memory += wanted[i++]) {
        types->array[i] = memcpy(memory, array[i].buf, array[i].len);
    }
    return 0;
}

PyObject *native_types(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer array[ARRAYS];
    float bound;
    if (!PyArg_ParseTuple(args, "fy*y*y*y*y*y*", &bound, array, array + 1, array + 2, array + 3,
                          array + 4, array + 5)) {
        return NULL;
    }
    PyObject *capsule = NULL;
    Types *types = PyMem_Calloc(1, sizeof(Types));
    if (types == NULL) {
        PyErr_NoMemory();
    } else if (types_fill(types, array) == 0) {
        types->bound = bound;
        capsule = PyCapsule_New(types, CAPSULE, capsule_close);
    }
    if (capsule == NULL && types != NULL) {
        PyMem_Free(types->array[MEAN]);
        PyMem_Free(types);
    }
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return capsule;
}

/* What the hidden layer makes of a page. */
static void look(const Types *types, const float *page, float *inner) {
    const float *weights = types->array[HIDDEN];
    memcpy(inner, types->array[HIDDEN_BIAS], types->hidden * sizeof(float));
    for (Py_ssize_t i = 0; i < types->size; i++, weights += types->hidden) {
        float said = standard(page[i], types->array[MEAN][i], types->array[SCALE][i], types->bound);
        for (Py_ssize_t j = 0; j < types->hidden; j++) {
            inner[j] += said * weights[j];
        }
    }
    for (Py_ssize_t j = 0; j < types->hidden; j++) {
        inner[j] = inner[j] > 0 ? inner[j] : 0;
    }
}

static PyObject *odds_of(const Types *types, const float *inner) {
    PyObject *odds = PyList_New(types->types);
    for (Py_ssize_t type = 0; odds != NULL && type < types->types; type++) {
        float sum = types->array[OUT_BIAS][type];
        for (Py_ssize_t j = 0; j < types->hidden; j++) {
            sum += inner[j] * types->array[OUT][j * types->types + type];
        }
        PyObject *value = PyFloat_FromDouble(sum);
        if (value == NULL) {
            Py_CLEAR(odds);
        } else {
            PyList_SET_ITEM(odds, type, value);
        }
    }
    return odds;
}

/* What speaks for each type of page. */
PyObject *native_odds(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *odds = NULL;
    Py_buffer page;
    if (!PyArg_ParseTuple(args, "Oy*", &capsule, &page)) {
        return NULL;
    }
    const Types *types = PyCapsule_GetPointer(capsule, CAPSULE);
    float inner[MAX_WIDTH];
    if (types != NULL && array_fits(&page, types->size, sizeof(float)) == 0) {
        look(types, page.buf, inner);
        odds = odds_of(types, inner);
    }
    PyBuffer_Release(&page);
    return odds;
}
