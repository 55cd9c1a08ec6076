/* How likely each block is main content: the counterpart of the network in scorer.py.
 *
 * Weights are kept in panels of PANEL columns, filled up with zeros, so that one product serves all
 * layers. Most of what a layer is given is zero, or the same for all blocks of a group, and is looked at
 * once. Sums are made in another order than numpy's: scores differ in their last bits. */
#include "network.h"
#include <math.h>
#include <string.h>

/* So many rows are multiplied together: fewer are filled up. */
enum { PANEL = 16, TOGETHER_ROWS = 6, TILE = 24 };

/* A matrix of `rows` by `depth` numbers times one of `depth` by `columns`, each row from a start of its
 * own; steps are from a row to the next. `places` is room for TILE times `depth` numbers. */
typedef struct {
    const float *from, *weights, *start;
    float *to;
    int32_t *places;
    Py_ssize_t rows, depth, columns, from_step, to_step, start_step;
    int positive;
} Product;

/* What columns are shifted, multiplied and bounded by, and what becomes of zeros. */
typedef struct {
    const float *mean, *scale, *nothing;
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
#define wide_product_add plain_product_add
#define wide_product_answer plain_product_answer

static int has_wide(void) {
    return 0;
}
#endif

/* Widths are of what the layers give: `alone`, what is `shared` of it, and `together`. */
typedef struct {
    void (*multiply)(const Product *product);
    void (*standardise)(const Scale *by, const float *from, Py_ssize_t rows, float *to);
    void (*add)(const float *others, const int32_t *numbers, Py_ssize_t rows, Py_ssize_t width, float *to);
    void (*answer)(const float *from, Py_ssize_t rows, Py_ssize_t width, const float *weights,
                   float *answers);
    Py_ssize_t own, page, alone, shared, together;
    float bound, out_bias;
    float *mean, *scale, *nothing, *alone_panels, *page_weights, *alone_bias;
    float *shared_panels, *zeros, *group_panels, *together_panels, *together_bias, *out;
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

/* The second layer's weights: of a block itself, of its groups, and of what else it is told. */
static void arrange_together(Network *network, const float *weights) {
    Py_ssize_t alone = whole(network->alone), together = whole(network->together);
    Py_ssize_t shared = network->shared, depth = alone + NEAR_CONTEXTS * shared;
    arrange(weights, network->alone, network->together, depth, 0, network->together_panels);
    weights += network->alone * network->together;
    for (int group = 0; group < GROUPS; group++, weights += shared * network->together) {
        arrange(weights, shared, network->together, shared, 0,
                network->group_panels + group * shared * together);
    }
    arrange(weights, NEAR_CONTEXTS * shared, network->together, depth, alone, network->together_panels);
}

/* What the first layer makes of nothing goes to its biases: it is given what differs from that. */
static void expect_nothing(Network *network, const float *weights) {
    for (Py_ssize_t i = 0; i < network->own; i++) {
        network->nothing[i] = standard(0, network->mean[i], network->scale[i], network->bound);
    }
    for (Py_ssize_t j = 0; j < network->alone; j++) {
        double sum = network->alone_bias[j];
        for (Py_ssize_t i = 0; i < network->own; i++) {
            sum += (double)network->nothing[i] * weights[i * network->alone + j];
        }
        network->alone_bias[j] = (float)sum;
    }
}

/* One piece of memory, which begins with `mean`. */
static int network_fill(Network *network, const Py_buffer *array) {
    Py_ssize_t all = network->own + network->page, alone = whole(network->alone);
    Py_ssize_t shared = whole(network->shared), together = whole(network->together);
    Py_ssize_t depth = alone + NEAR_CONTEXTS * network->shared;
    struct {
        float **place;
        Py_ssize_t size;
    } parts[] = {{&network->mean, all},
                 {&network->scale, all},
                 {&network->nothing, network->own},
                 {&network->alone_panels, network->own * alone},
                 {&network->page_weights, network->page * network->alone},
                 {&network->alone_bias, alone},
                 {&network->shared_panels, alone * shared},
                 {&network->zeros, shared > together ? shared : together},
                 {&network->group_panels, GROUPS * network->shared * together},
                 {&network->together_panels, depth * together},
                 {&network->together_bias, together},
                 {&network->out, together}};
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
    const float *weights = array[ALONE].buf;
    memcpy(network->mean, array[MEAN].buf, array[MEAN].len);
    memcpy(network->scale, array[SCALE].buf, array[SCALE].len);
    arrange(weights, network->own, network->alone, network->own, 0, network->alone_panels);
    memcpy(network->page_weights, weights + network->own * network->alone,
           network->page * network->alone * sizeof(float));
    memcpy(network->alone_bias, array[ALONE_BIAS].buf, array[ALONE_BIAS].len);
    arrange(array[SHARED].buf, network->alone, network->shared, alone, 0, network->shared_panels);
    memcpy(network->together_bias, array[TOGETHER_BIAS].buf, array[TOGETHER_BIAS].len);
    memcpy(network->out, array[OUT].buf, array[OUT].len);
    memcpy(&network->out_bias, array[OUT_BIAS].buf, sizeof(float));
    arrange_together(network, array[TOGETHER].buf);
    expect_nothing(network, weights);
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
        goto done;
    }
    network->bound = bound;
    if (measure(network, array, page) == 0 && network_fill(network, array) == 0) {
        wide = wide && has_wide();
        network->multiply = wide ? wide_product : plain_product;
        network->standardise = wide ? wide_product_standardise : plain_product_standardise;
        network->add = wide ? wide_product_add : plain_product_add;
        network->answer = wide ? wide_product_answer : plain_product_answer;
        capsule = PyCapsule_New(network, CAPSULE, capsule_close);
    }
    if (capsule == NULL) {
        network_close(network);
    }
done:
    for (int i = 0; i < ARRAYS; i++) {
        PyBuffer_Release(array + i);
    }
    return capsule;
}

/* What is the same for all blocks: the biases, and a share of what the page says. */
static void begin(const Network *network, const float *page, float share, float *start) {
    const float *mean = network->mean + network->own, *scale = network->scale + network->own;
    memcpy(start, network->alone_bias, whole(network->alone) * sizeof(float));
    for (Py_ssize_t i = 0; i < network->page; i++) {
        float said = mean[i] + share * (page[i] - mean[i]);
        const float *weights = network->page_weights + i * network->alone;
        said = standard(said, mean[i], scale[i], network->bound);
        for (Py_ssize_t j = 0; j < network->alone; j++) {
            start[j] += said * weights[j];
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

/* What a network works with: what the first layer gives and what is shared of it, `step` and
 * `shared_step` numbers a block, where the second layer starts from, and room for what passes. */
typedef struct {
    Py_ssize_t rows, step, shared_step, start_step;
    float *start, *both, *shared, *starts, *room;
    int32_t *places, *numbers;
    double *sums;
} Work;

static Py_ssize_t filled_up(Py_ssize_t rows) {
    return (rows + TOGETHER_ROWS - 1) / TOGETHER_ROWS * TOGETHER_ROWS;
}

static int work_open(const Network *network, Py_ssize_t blocks, Work *work, Arena *taken) {
    Py_ssize_t alone = whole(network->alone), together = whole(network->together);
    Py_ssize_t rows = work->rows = filled_up(blocks + 1), width = network->shared + 1;
    Py_ssize_t deepest = network->own > alone ? network->own : alone;
    work->step = alone + NEAR_CONTEXTS * network->shared;
    work->shared_step = whole(network->shared);
    work->start_step = together;
    deepest = deepest > work->step ? deepest : work->step;
    Py_ssize_t standing = TILE * network->own, passing = rows * (width + together);
    Py_ssize_t room = standing > passing ? standing : passing;
    struct {
        void *place;
        Py_ssize_t bytes;
    } parts[] = {{&work->sums, 2 * width * (Py_ssize_t)sizeof(double)},
                 {&work->start, alone * (Py_ssize_t)sizeof(float)},
                 {&work->both, rows * work->step * (Py_ssize_t)sizeof(float)},
                 {&work->shared, rows * work->shared_step * (Py_ssize_t)sizeof(float)},
                 {&work->starts, rows * together * (Py_ssize_t)sizeof(float)},
                 {&work->room, room * (Py_ssize_t)sizeof(float)},
                 {&work->places, TILE * deepest * (Py_ssize_t)sizeof(int32_t)},
                 {&work->numbers, rows * (Py_ssize_t)sizeof(int32_t)}};
    Py_ssize_t bytes = 0, count = sizeof(parts) / sizeof(parts[0]);
    for (Py_ssize_t i = 0; i < count; i++) {
        bytes += (parts[i].bytes + 63) / 64 * 64;
    }
    if (arena_acquire(taken, (size_t)bytes) < 0) {
        return -1;
    }
    char *at = taken->memory;
    for (Py_ssize_t i = 0; i < count; at += (parts[i++].bytes + 63) / 64 * 64) {
        memcpy(parts[i].place, &at, sizeof(at));
    }
    return 0;
}

/* The first layer, and what is shared of it, a tile of rows after the other: what is standardised stays
 * near. */
static void look_alone(const Network *network, const Question *asked, const Work *work) {
    Scale by = {network->mean, network->scale, network->nothing, network->bound, network->own};
    Py_ssize_t alone = whole(network->alone);
    for (Py_ssize_t row = 0; row < asked->blocks; row += TILE) {
        Py_ssize_t left = asked->blocks - row, given = left < TILE ? left : TILE;
        Py_ssize_t rows = filled_up(given);
        float *both = work->both + row * work->step;
        network->standardise(&by, asked->matrix + row * network->own, given, work->room);
        memset(work->room + given * network->own, 0, (rows - given) * network->own * sizeof(float));
        network->multiply(&(Product){work->room, network->alone_panels, work->start, both, work->places,
                                     rows, network->own, alone, network->own, work->step, 0, 1});
        network->multiply(&(Product){both, network->shared_panels, network->zeros,
                                     work->shared + row * work->shared_step, work->places, rows, alone,
                                     work->shared_step, work->step, work->shared_step, 0, 0});
    }
}

/* The second layer starts with its biases and what the page says, the group of all blocks. */
static void start_together(const Network *network, const float *said, const Work *work) {
    Py_ssize_t step = work->start_step;
    for (Py_ssize_t i = 0; i < step; i++) {
        work->starts[i] = network->together_bias[i] + said[i];
    }
    for (Py_ssize_t row = 1; row < work->rows; row++) {
        memcpy(work->starts + row * step, work->starts, step * sizeof(float));
    }
}

/* What a block's groups say goes to where the second layer starts: once for all blocks of a group. */
static int hear_groups(const Network *network, const Contexts *contexts, const Work *work) {
    Py_ssize_t width = network->shared + 1, step = work->start_step;
    float *means = work->room, *said = means + work->rows * width;
    for (int group = 0; group < GROUPS; group++) {
        Py_ssize_t count = group_means(contexts, group, means, work->numbers);
        if (count < 0) {
            return -1;
        }
        Py_ssize_t rows = filled_up(count);
        memset(means + count * width, 0, (rows - count) * width * sizeof(float));
        network->multiply(&(Product){means, network->group_panels + group * network->shared * step,
                                     network->zeros, said, work->places, rows, network->shared, step,
                                     width, step, 0, 0});
        if (group == 0) {
            start_together(network, said, work);
        } else {
            network->add(said, work->numbers, contexts->blocks, step, work->starts);
        }
    }
    return 0;
}

/* The second layer, and what comes out. */
static void look_together(const Network *network, const Question *asked, const Work *work) {
    Py_ssize_t step = work->start_step;
    for (Py_ssize_t row = 0; row < asked->blocks; row += TILE) {
        Py_ssize_t left = asked->blocks - row, given = left < TILE ? left : TILE;
        network->multiply(&(Product){work->both + row * work->step, network->together_panels,
                                     work->starts + row * step, work->room, work->places,
                                     filled_up(given), work->step, step, work->step, step, step, 1});
        for (Py_ssize_t i = 0; i < given; i++) {
            asked->logits[row + i] += network->out_bias;
        }
        network->answer(work->room, given, step, network->out, asked->logits + row);
    }
}

/* Adds a network's answers to those that are there. */
static int answer(const Network *network, const Question *asked) {
    Work work;
    Arena taken;
    if (work_open(network, asked->blocks, &work, &taken) < 0) {
        return -1;
    }
    Py_ssize_t blocks = asked->blocks, alone = whole(network->alone);
    begin(network, asked->page, asked->share, work.start);
    look_alone(network, asked, &work);
    Contexts contexts = {blocks,      network->shared, work.shared_step,  work.step,
                         work.shared, asked->weights,  asked->keys, work.both + alone};
    neighbour_means(&contexts, work.room);
    running_means(&contexts, work.sums);
    for (Py_ssize_t row = blocks; row < work.rows; row++) {
        memset(work.both + row * work.step, 0, work.step * sizeof(float));
    }
    int failed = hear_groups(network, &contexts, &work);
    if (!failed) {
        look_together(network, asked, &work);
    }
    arena_release(&taken);
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
        array_fits(array + 2, (GROUPS - 1) * blocks, sizeof(int64_t)) == 0) {
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
