/* What a block's groups, its neighbours and the whole page say on average: the twin of scorer.py. */
#include "network.h"
#include <string.h>

enum { WINDOW = 2 };

static float *cell(const Contexts *work, Py_ssize_t block, int place) {
    return work->out + block * work->out_step + place * work->width;
}

static void page_means(const Contexts *work, float *sums) {
    float weight = 0;
    memset(sums, 0, work->width * sizeof(float));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        weight += work->weights[block];
        for (Py_ssize_t i = 0; i < work->width; i++) {
            sums[i] += work->shared[block * work->step + i] * work->weights[block];
        }
    }
    for (Py_ssize_t i = 0; i < work->width; i++) {
        sums[i] /= weight;
    }
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        memcpy(cell(work, block, 0), sums, work->width * sizeof(float));
    }
}

static int group_means(const Contexts *work, int group, float *sums, int32_t *numbers) {
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
            sum[i] += work->shared[block * work->step + i] * weight;
        }
        sum[width] += weight;
    }
    for (int32_t number = 0; number < found.count; number++) {
        float *sum = sums + number * step;
        for (Py_ssize_t i = 0; i < width; i++) {
            sum[i] /= sum[width];
        }
    }
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        memcpy(cell(work, block, 1 + group), sums + numbers[block] * step, width * sizeof(float));
    }
    numbers_close(&found);
    return 0;
}

/* Sums run over the whole page in single precision, as the model was trained. */
static void neighbour_means(const Contexts *work, float *running) {
    Py_ssize_t width = work->width;
    memset(running, 0, width * sizeof(float));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        for (Py_ssize_t i = 0; i < width; i++) {
            running[(block + 1) * width + i] =
                running[block * width + i] + work->shared[block * work->step + i];
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

static void running_means(const Contexts *work, double *sums) {
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
                float value = work->shared[block * work->step + i] * weight;
                sum[i] += value;
                if (pass) {
                    before[i] = (float)(sum[i] / sum[width]);
                    after[i] = (float)((all[i] - sum[i] + value) / ahead);
                }
            }
        }
    }
}

int put_contexts(const Contexts *work, float *room) {
    Py_ssize_t width = work->width;
    int32_t *numbers = PyMem_Malloc((work->blocks + 1) * sizeof(int32_t));
    double *sums = PyMem_Malloc(2 * (width + 1) * sizeof(double));
    int failed = numbers == NULL || sums == NULL;
    if (failed) {
        PyErr_NoMemory();
    } else {
        page_means(work, room);
        neighbour_means(work, room);
        running_means(work, sums);
    }
    for (int group = 0; group < GROUPS && !failed; group++) {
        failed = group_means(work, group, room, numbers) < 0;
    }
    PyMem_Free(numbers);
    PyMem_Free(sums);
    return failed ? -1 : 0;
}
