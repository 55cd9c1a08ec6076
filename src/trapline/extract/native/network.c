/* How likely each block is main content: the twin of the network in scorer.py.
 *
 * Weights are kept in panels of PANEL columns, filled up with zeros, so that one product serves all
 * layers. Sums are made in another order than numpy's: scores differ in their last bits. */
#include "network.h"
#include <math.h>
#include <string.h>

enum { PANEL = 16, TILE = 24 };

/* A matrix of `rows` by `depth` numbers times one of `depth` by `columns`, each column from a start
 * of its own; steps are from a row to the next. */
typedef struct {
    const float *from, *weights, *start;
    float *to;
    Py_ssize_t rows, depth, columns, from_step, to_step;
} Product;

/* What columns are shifted, multiplied and bounded by. */
typedef struct {
    const float *mean, *scale;
    float bound;
    Py_ssize_t size;
} Scale;

#define GLUED(one, other) one##other
#define JOINED(one, other) GLUED(one, other)

#define PRODUCT plain_product
#define LANES 4
#define TARGET
#include "product.h"
#undef PRODUCT
#undef LANES
#undef TARGET

#if defined(__x86_64__)
#define PRODUCT wide_product
#define LANES 8
#define TARGET __attribute__((target("avx2,fma")))
#include "product.h"

static int has_wide(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define wide_product plain_product
#define wide_product_standardise plain_product_standardise

static int has_wide(void) {
    return 0;
}
#endif

/* Widths are of what the layers give: `alone`, what is `shared` of it, and `together`. */
typedef struct {
    void (*multiply)(const Product *product);
    void (*standardise)(const Scale *by, const float *from, Py_ssize_t rows, float *to);
    Py_ssize_t own, page, alone, shared, together;
    float bound;
    float *mean, *scale, *alone_panels, *page_weights, *alone_bias;
    float *shared_panels, *nothing, *together_panels, *together_bias, *out_panel, *out_start;
} Network;

static Py_ssize_t whole(Py_ssize_t columns) {
    return (columns + PANEL - 1) / PANEL * PANEL;
}

static void network_close(Network *network) {
    PyMem_Free(network->mean);
    PyMem_Free(network);
}

static const char *CAPSULE = "trapline.extract.network";

static void capsule_close(PyObject *capsule) {
    Network *network = PyCapsule_GetPointer(capsule, CAPSULE);
    if (network != NULL) {
        network_close(network);
    }
}

/* Rows of a matrix as rows of panels, from one of their rows on. */
static void arrange(const float *from, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t depth,
                    Py_ssize_t first, float *panels) {
    for (Py_ssize_t row = 0; row < rows; row++) {
        for (Py_ssize_t i = 0; i < columns; i++) {
            Py_ssize_t panel = i / PANEL;
            panels[(panel * depth + first + row) * PANEL + i % PANEL] = from[row * columns + i];
        }
    }
}

enum { MEAN, SCALE, ALONE, ALONE_BIAS, SHARED, TOGETHER, TOGETHER_BIAS, OUT, OUT_BIAS, ARRAYS };

static Py_ssize_t numbers_in(const Py_buffer *array) {
    return array->len / (Py_ssize_t)sizeof(float);
}

/* How wide the layers are is told by their biases. */
static int measure(Network *network, const Py_buffer *array, Py_ssize_t page) {
    network->page = page;
    network->own = numbers_in(array + MEAN) - page;
    network->alone = numbers_in(array + ALONE_BIAS);
    network->together = numbers_in(array + TOGETHER_BIAS);
    if (width_fits(page) < 0 || width_fits(network->own) < 0 || width_fits(network->alone) < 0 ||
        width_fits(network->together) < 0) {
        return -1;
    }
    network->shared = numbers_in(array + SHARED) / network->alone;
    Py_ssize_t item = sizeof(float), all = network->own + page;
    Py_ssize_t depth = network->alone + CONTEXTS * network->shared;
    const Py_ssize_t wanted[ARRAYS] = {
        all, all, all * network->alone, network->alone, network->alone * network->shared,
        depth * network->together, network->together, network->together, 1};
    for (int i = 0; i < ARRAYS; i++) {
        if (array_fits(array + i, wanted[i], item) < 0) {
            return -1;
        }
    }
    return width_fits(network->shared);
}

/* One piece of memory, which begins with `mean`. */
static int network_fill(Network *network, const Py_buffer *array) {
    Py_ssize_t all = network->own + network->page, alone = whole(network->alone);
    Py_ssize_t shared = whole(network->shared), together = whole(network->together);
    Py_ssize_t depth = alone + CONTEXTS * network->shared;
    struct {
        float **place;
        Py_ssize_t size;
    } parts[] = {{&network->mean, all},
                 {&network->scale, all},
                 {&network->alone_panels, network->own * alone},
                 {&network->page_weights, network->page * network->alone},
                 {&network->alone_bias, alone},
                 {&network->shared_panels, alone * shared},
                 {&network->nothing, shared},
                 {&network->together_panels, depth * together},
                 {&network->together_bias, together},
                 {&network->out_panel, together * PANEL},
                 {&network->out_start, PANEL}};
    Py_ssize_t size = 0, count = sizeof(parts) / sizeof(parts[0]);
    for (Py_ssize_t i = 0; i < count; i++) {
        size += parts[i].size;
    }
    float *memory = PyMem_Calloc(size, sizeof(float));
    if (memory == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; memory += parts[i++].size) {
        *parts[i].place = memory;
    }
    const float *weights = array[ALONE].buf, *context = array[TOGETHER].buf;
    memcpy(network->mean, array[MEAN].buf, array[MEAN].len);
    memcpy(network->scale, array[SCALE].buf, array[SCALE].len);
    arrange(weights, network->own, network->alone, network->own, 0, network->alone_panels);
    memcpy(network->page_weights, weights + network->own * network->alone,
           network->page * network->alone * sizeof(float));
    memcpy(network->alone_bias, array[ALONE_BIAS].buf, array[ALONE_BIAS].len);
    arrange(array[SHARED].buf, network->alone, network->shared, alone, 0, network->shared_panels);
    arrange(context, network->alone, network->together, depth, 0, network->together_panels);
    arrange(context + network->alone * network->together, CONTEXTS * network->shared,
            network->together, depth, alone, network->together_panels);
    memcpy(network->together_bias, array[TOGETHER_BIAS].buf, array[TOGETHER_BIAS].len);
    arrange(array[OUT].buf, network->together, 1, together, 0, network->out_panel);
    memcpy(network->out_start, array[OUT_BIAS].buf, array[OUT_BIAS].len);
    return 0;
}

PyObject *native_network(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer array[ARRAYS];
    Py_ssize_t page;
    float bound;
    int wide;
    if (!PyArg_ParseTuple(args, "nfpy*y*y*y*y*y*y*y*y*", &page, &bound, &wide, array, array + 1, array + 2,
                          array + 3, array + 4, array + 5, array + 6, array + 7, array + 8)) {
        return NULL;
    }
    PyObject *capsule = NULL;
    Network *network = PyMem_Calloc(1, sizeof(Network));
    if (network == NULL) {
        PyErr_NoMemory();
    } else if (measure(network, array, page) == 0 && network_fill(network, array) == 0) {
        network->bound = bound;
        wide = wide && has_wide();
        network->multiply = wide ? wide_product : plain_product;
        network->standardise = wide ? wide_product_standardise : plain_product_standardise;
        capsule = PyCapsule_New(network, CAPSULE, capsule_close);
    }
    if (capsule == NULL && network != NULL) {
        network_close(network);
    }
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return capsule;
}

static void keep_positive(float *values, Py_ssize_t size) {
    for (Py_ssize_t i = 0; i < size; i++) {
        values[i] = values[i] > 0 ? values[i] : 0;
    }
}

/* What is the same for all blocks: the biases, and a share of what the page says. */
static void begin(const Network *network, const float *page, float share, float *room, float *start) {
    const float *mean = network->mean + network->own, *scale = network->scale + network->own;
    for (Py_ssize_t i = 0; i < network->page; i++) {
        room[i] = mean[i] + share * (page[i] - mean[i]);
    }
    Scale by = {mean, scale, network->bound, network->page};
    network->standardise(&by, room, 1, room);
    memcpy(start, network->alone_bias, whole(network->alone) * sizeof(float));
    for (Py_ssize_t i = 0; i < network->page; i++) {
        const float *weights = network->page_weights + i * network->alone;
        for (Py_ssize_t j = 0; j < network->alone; j++) {
            start[j] += room[i] * weights[j];
        }
    }
}

/* What is asked of a network. */
typedef struct {
    const float *matrix, *page;
    const int64_t *keys;
    Py_ssize_t blocks;
    float share, *weights, *logits;
} Question;

/* The first layer, a tile of rows after the other: what is standardised stays near. */
static void look_alone(const Network *network, const Question *asked, const float *start, float *room,
                       float *both, Py_ssize_t step) {
    Scale by = {network->mean, network->scale, network->bound, network->own};
    for (Py_ssize_t row = 0; row < asked->blocks; row += TILE) {
        Py_ssize_t left = asked->blocks - row, rows = left < TILE ? left : TILE;
        network->standardise(&by, asked->matrix + row * network->own, rows, room);
        network->multiply(&(Product){room, network->alone_panels, start, both + row * step, rows,
                            network->own, whole(network->alone), network->own, step});
        for (Py_ssize_t i = 0; i < rows; i++) {
            keep_positive(both + (row + i) * step, whole(network->alone));
        }
    }
}

/* The second layer, and what comes out. */
static void look_together(const Network *network, const Question *asked, const float *both,
                          Py_ssize_t step, float *room) {
    Py_ssize_t width = whole(network->together);
    for (Py_ssize_t row = 0; row < asked->blocks; row += TILE) {
        Py_ssize_t left = asked->blocks - row, rows = left < TILE ? left : TILE;
        network->multiply(&(Product){both + row * step, network->together_panels, network->together_bias, room,
                            rows, step, width, step, width});
        keep_positive(room, rows * width);
        float *answers = room + rows * width;
        network->multiply(&(Product){room, network->out_panel, network->out_start, answers, rows,
                                     width, PANEL, width, PANEL});
        for (Py_ssize_t i = 0; i < rows; i++) {
            asked->logits[row + i] += answers[i * PANEL];
        }
    }
}

/* Adds a network's answers to those that are there. */
static int answer(const Network *network, const Question *asked) {
    Py_ssize_t alone = whole(network->alone), shared = whole(network->shared);
    Py_ssize_t step = alone + CONTEXTS * network->shared, blocks = asked->blocks;
    Py_ssize_t widest = network->own + network->page + whole(network->together) + PANEL;
    Py_ssize_t rows = (blocks + 1) * (step + shared + network->shared + 1);
    Room taken;
    if (room_take(&taken, (rows + TILE * widest + alone) * sizeof(float)) < 0) {
        return -1;
    }
    float *both = taken.memory, *passed = both + (blocks + 1) * step;
    float *sums = passed + (blocks + 1) * shared;
    float *room = sums + (blocks + 1) * (network->shared + 1), *start = room + TILE * widest;
    begin(network, asked->page, asked->share, room, start);
    look_alone(network, asked, start, room, both, step);
    network->multiply(&(Product){both, network->shared_panels, network->nothing, passed, blocks, alone, shared,
                        step, shared});
    Contexts contexts = {blocks, network->shared, shared, step,
                         passed, asked->weights,  asked->keys, both + alone};
    int failed = put_contexts(&contexts, sums);
    if (!failed) {
        look_together(network, asked, both, step, room);
    }
    room_give(&taken);
    return failed;
}

static int ask_all(PyObject *networks, const Question *asked, const Py_buffer array[4]) {
    Py_ssize_t count = PyTuple_GET_SIZE(networks), item = sizeof(float);
    for (Py_ssize_t i = 0; i < count; i++) {
        Network *network = PyCapsule_GetPointer(PyTuple_GET_ITEM(networks, i), CAPSULE);
        if (network == NULL || array_fits(array, asked->blocks * network->own, item) < 0 ||
            array_fits(array + 1, network->page, item) < 0 || answer(network, asked) < 0) {
            return -1;
        }
    }
    for (Py_ssize_t block = 0; block < asked->blocks; block++) {
        asked->logits[block] /= (float)count;
    }
    return 0;
}

/* From log odds to chances, in single precision as numpy has it: what is sure is a tie. */
static void into_chances(float *values, Py_ssize_t size, float factor) {
    for (Py_ssize_t i = 0; i < size; i++) {
        float value = values[i] * factor;
        value = value < -30 ? -30 : value > 30 ? 30 : value;
        values[i] = 1 / (1 + expf(-value));
    }
}

PyObject *native_scores(PyObject *module, PyObject *args) {
    (void)module;
    enum { GIVEN = 4 };
    Py_buffer array[GIVEN];
    PyObject *networks, *result = NULL;
    float share, factor;
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*ff", &PyTuple_Type, &networks, array, array + 1, array + 2,
                          array + 3, &share, &factor)) {
        return NULL;
    }
    Py_ssize_t blocks = array[3].len / (Py_ssize_t)sizeof(int64_t);
    const int64_t *words = array[3].buf;
    float *weights = NULL;
    if (numbers_fit(array + 3, blocks, INT64_MAX) == 0 &&
        array_fits(array + 2, GROUPS * blocks, sizeof(int64_t)) == 0) {
        weights = PyMem_Malloc((blocks + 1) * sizeof(float));
        result = PyByteArray_FromStringAndSize(NULL, blocks * (Py_ssize_t)sizeof(float));
    }
    if (result != NULL && weights == NULL) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    if (result != NULL) {
        for (Py_ssize_t block = 0; block < blocks; block++) {
            weights[block] = (float)sqrt((double)words[block]);
        }
        float *logits = (float *)PyByteArray_AS_STRING(result);
        memset(logits, 0, blocks * sizeof(float));
        Question asked = {array[0].buf, array[1].buf, array[2].buf, blocks, share, weights, logits};
        if (ask_all(networks, &asked, array) < 0) {
            Py_CLEAR(result);
        } else {
            into_chances(logits, blocks, factor);
        }
    }
    PyMem_Free(weights);
    for (int i = 0; i < GIVEN; i++) {
        PyBuffer_Release(array + i);
    }
    return result;
}

/* What speaks for each type of page. */
static PyObject *odds_of(const Py_buffer *array, float bound) {
    Py_ssize_t size = numbers_in(array), hidden = numbers_in(array + 4), item = sizeof(float);
    Py_ssize_t types = numbers_in(array + 6);
    const Py_ssize_t wanted[] = {size, size, size, size * hidden, hidden, hidden * types, types};
    for (int i = 0; i < 7; i++) {
        if (array_fits(array + i, wanted[i], item) < 0) {
            return NULL;
        }
    }
    float *page = PyMem_Malloc((size + hidden + 1) * sizeof(float)), *inner = page + size;
    PyObject *odds = PyList_New(types);
    if (page == NULL || odds == NULL) {
        PyMem_Free(page);
        Py_XDECREF(odds);
        return PyErr_NoMemory();
    }
    Scale by = {array[1].buf, array[2].buf, bound, size};
    plain_product_standardise(&by, array[0].buf, 1, page);
    const float *first = array[3].buf, *second = array[5].buf, *bias = array[6].buf;
    memcpy(inner, array[4].buf, array[4].len);
    for (Py_ssize_t i = 0; i < size; i++) {
        for (Py_ssize_t j = 0; j < hidden; j++) {
            inner[j] += page[i] * first[i * hidden + j];
        }
    }
    keep_positive(inner, hidden);
    for (Py_ssize_t type = 0; type < types; type++) {
        float sum = bias[type];
        for (Py_ssize_t j = 0; j < hidden; j++) {
            sum += inner[j] * second[j * types + type];
        }
        PyObject *value = PyFloat_FromDouble(sum);
        if (value == NULL) {
            Py_CLEAR(odds);
            break;
        }
        PyList_SET_ITEM(odds, type, value);
    }
    PyMem_Free(page);
    return odds;
}

PyObject *native_odds(PyObject *module, PyObject *args) {
    (void)module;
    enum { GIVEN = 7 };
    Py_buffer array[GIVEN];
    float bound;
    if (!PyArg_ParseTuple(args, "fy*y*y*y*y*y*y*", &bound, array, array + 1, array + 2, array + 3,
                          array + 4, array + 5, array + 6)) {
        return NULL;
    }
    PyObject *odds = odds_of(array, bound);
    for (int i = 0; i < GIVEN; i++) {
        PyBuffer_Release(array + i);
    }
    return odds;
}
