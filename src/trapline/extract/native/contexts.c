/* What a block's groups, its neighbours and the whole page say on average: the twin of scorer.py. */
#include "native.h"
#include <string.h>

enum { GROUPS = 6, WINDOW = 2 };

typedef struct {
    Py_ssize_t blocks, width, columns;
    const float *shared, *weights;
    const int64_t *keys;
    float *out;
} Work;

static float *cell(const Work *work, Py_ssize_t block, int place) {
    return work->out + block * work->columns + place * work->width;
}

static void page_means(const Work *work, float *sums) {
    float weight = 0;
    memset(sums, 0, work->width * sizeof(float));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        weight += work->weights[block];
        for (Py_ssize_t i = 0; i < work->width; i++) {
            sums[i] += work->shared[block * work->width + i] * work->weights[block];
        }
    }
    for (Py_ssize_t i = 0; i < work->width; i++) {
        sums[i] /= weight;
    }
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        memcpy(cell(work, block, 0), sums, work->width * sizeof(float));
    }
}

static int group_means(const Work *work, int group, float *sums, int32_t *numbers) {
    Numbers found;
    Py_ssize_t width = work->width, step = width + 1;
    if (numbers_open(&found, work->blocks + 1) < 0) {
        return -1;
    }
    memset(sums, 0, work->blocks * step * sizeof(float));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        numbers[block] = number_of(&found, work->keys[group * work->blocks + block]);
        float *sum = sums + numbers[block] * step, weight = work->weights[block];
        for (Py_ssize_t i = 0; i < width; i++) {
            sum[i] += work->shared[block * width + i] * weight;
        }
        sum[width] += weight;
    }
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        float *sum = sums + numbers[block] * step, *out = cell(work, block, 1 + group);
        for (Py_ssize_t i = 0; i < width; i++) {
            out[i] = sum[i] / sum[width];
        }
    }
    numbers_close(&found);
    return 0;
}

/* Sums run over the whole page in single precision, as the model was trained. */
static void neighbour_means(const Work *work, float *running) {
    Py_ssize_t width = work->width;
    memset(running, 0, width * sizeof(float));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        for (Py_ssize_t i = 0; i < width; i++) {
            running[(block + 1) * width + i] =
                running[block * width + i] + work->shared[block * width + i];
        }
    }
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        Py_ssize_t to = block + WINDOW + 1, from = block > WINDOW ? block - WINDOW : 0;
        to = to < work->blocks ? to : work->blocks;
        float *out = cell(work, block, 1 + GROUPS);
        for (Py_ssize_t i = 0; i < width; i++) {
            float sum = running[to * width + i] - running[from * width + i];
            out[i] = (float)(sum / (double)(to - from));
        }
    }
}

static void running_means(const Work *work, double *sums) {
    Py_ssize_t width = work->width, step = width + 1;
    double *all = sums + step;
    memset(sums, 0, 2 * step * sizeof(double));
    for (int pass = 0; pass < 2; pass++) {
        double *sum = pass ? sums : all;
        for (Py_ssize_t block = 0; block < work->blocks; block++) {
            float weight = work->weights[block];
            float *before = cell(work, block, 2 + GROUPS), *after = before + width;
            double ahead = all[width] - (sum[width] += weight) + weight;
            for (Py_ssize_t i = 0; i < width; i++) {
                float value = work->shared[block * width + i] * weight;
                sum[i] += value;
                if (pass) {
                    before[i] = (float)(sum[i] / sum[width]);
                    after[i] = (float)((all[i] - sum[i] + value) / ahead);
                }
            }
        }
    }
}

PyObject *native_contexts(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer shared, weights, keys;
    Py_ssize_t width;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*n", &shared, &weights, &keys, &width)) {
        return NULL;
    }
    float *room = NULL;
    int32_t *numbers = NULL;
    double *sums = NULL;
    Py_ssize_t blocks = weights.len / (Py_ssize_t)sizeof(float);
    if (width_fits(width) < 0 || array_fits(&weights, blocks, sizeof(float)) < 0 ||
        array_fits(&shared, blocks * width, sizeof(float)) < 0 ||
        array_fits(&keys, GROUPS * blocks, sizeof(int64_t)) < 0) {
        goto done;
    }
    Py_ssize_t columns = (GROUPS + 4) * width, bytes = blocks * columns * (Py_ssize_t)sizeof(float);
    room = PyMem_Malloc((blocks + 1) * (width + 1) * sizeof(float));
    numbers = PyMem_Malloc((blocks + 1) * sizeof(int32_t));
    sums = PyMem_Malloc(2 * (width + 1) * sizeof(double));
    if (room == NULL || numbers == NULL || sums == NULL) {
        PyErr_NoMemory();
    } else {
        result = PyByteArray_FromStringAndSize(NULL, bytes);
    }
    if (result != NULL) {
        Work work = {blocks,      width,    columns, shared.buf,
                     weights.buf, keys.buf, (float *)PyByteArray_AS_STRING(result)};
        page_means(&work, room);
        for (int group = 0; group < GROUPS; group++) {
            if (group_means(&work, group, room, numbers) < 0) {
                Py_CLEAR(result);
                break;
            }
        }
        if (result != NULL) {
            neighbour_means(&work, room);
            running_means(&work, sums);
        }
    }
done:
    PyMem_Free(room);
    PyMem_Free(numbers);
    PyMem_Free(sums);
    PyBuffer_Release(&shared);
    PyBuffer_Release(&weights);
    PyBuffer_Release(&keys);
    return result;
}

PyObject *native_standardise(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer matrix, mean, scale;
    float bound;
    if (!PyArg_ParseTuple(args, "w*y*y*f", &matrix, &mean, &scale, &bound)) {
        return NULL;
    }
    Py_ssize_t width = mean.len / (Py_ssize_t)sizeof(float);
    Py_ssize_t cells = matrix.len / (Py_ssize_t)sizeof(float);
    const float *middle = mean.buf, *factor = scale.buf;
    int fits = width > 0 && cells % width == 0 && array_fits(&mean, width, sizeof(float)) == 0 &&
               array_fits(&scale, width, sizeof(float)) == 0 &&
               array_fits(&matrix, cells, sizeof(float)) == 0;
    for (float *row = matrix.buf, *end = row + cells; fits && row < end; row += width) {
        for (Py_ssize_t i = 0; i < width; i++) {
            float value = (row[i] - middle[i]) * factor[i];
            value = value < -bound ? -bound : value;
            row[i] = value > bound ? bound : value;
        }
    }
    PyBuffer_Release(&matrix);
    PyBuffer_Release(&mean);
    PyBuffer_Release(&scale);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "a matrix of another model");
        return NULL;
    }
    Py_RETURN_NONE;
}
