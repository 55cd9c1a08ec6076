/* What a block's groups, its neighbours and the whole page say on average: the counterpart of scorer.py. */
#include "network.h"
#include <string.h>

enum { WINDOW = 2 };

static float *cell(const Contexts *work, Py_ssize_t block, int place) {
    return work->out + block * work->out_step + place * work->width;
}

/* Numbers the groups of one kind in the order of their coming. The page is a group of all blocks. */
static Py_ssize_t number_groups(const Contexts *work, int group, int32_t *numbers) {
    if (group == 0) {
        memset(numbers, 0, work->blocks * sizeof(int32_t));
        return 1;
    }
    Numbers found;
    if (numbers_open(&found, work->blocks + 1) < 0) {
        return -1;
    }
    const int64_t *keys = work->keys + (group - 1) * work->blocks;
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        /* Groups are mostly runs of blocks. */
        int same = block > 0 && keys[block] == keys[block - 1];
        numbers[block] = same ? numbers[block - 1] : number_of(&found, keys[block]);
    }
    Py_ssize_t count = found.count;
    numbers_close(&found);
    return count;
}

Py_ssize_t group_means(const Contexts *work, int group, float *means, int32_t *numbers) {
    Py_ssize_t width = work->width, step = width + 1, count = number_groups(work, group, numbers);
    if (count < 0) {
        return -1;
    }
    memset(means, 0, count * step * sizeof(float));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        float *sum = means + numbers[block] * step, weight = work->weights[block];
        const float *shared = work->shared + block * work->step;
        for (Py_ssize_t i = 0; i < width; i++) {
            sum[i] += shared[i] * weight;
        }
        sum[width] += weight;
    }
    for (Py_ssize_t number = 0; number < count; number++) {
        float *sum = means + number * step;
        for (Py_ssize_t i = 0; i < width; i++) {
            sum[i] /= sum[width];
        }
    }
    return count;
}

/* Sums run over the whole page in single precision, as the model was trained. */
void neighbour_means(const Contexts *work, float *running) {
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
        float *out = cell(work, block, 0), count = (float)(to - from);
        for (Py_ssize_t i = 0; i < width; i++) {
            out[i] = (running[to * width + i] - running[from * width + i]) / count;
        }
    }
}

void running_means(const Contexts *work, double *room) {
    Py_ssize_t width = work->width, step = width + 1;
    double *sum = room, *all = room + step;
    memset(room, 0, 2 * step * sizeof(double));
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        const float *shared = work->shared + block * work->step;
        for (Py_ssize_t i = 0; i < width; i++) {
            all[i] += shared[i] * work->weights[block];
        }
        all[width] += work->weights[block];
    }
    for (Py_ssize_t block = 0; block < work->blocks; block++) {
        const float *shared = work->shared + block * work->step;
        float weight = work->weights[block], *before = cell(work, block, 1), *after = before + width;
        sum[width] += weight;
        double behind = 1 / sum[width], ahead = 1 / (all[width] - sum[width] + weight);
        for (Py_ssize_t i = 0; i < width; i++) {
            float value = shared[i] * weight;
            sum[i] += value;
            before[i] = (float)(sum[i] * behind);
            after[i] = (float)((all[i] - sum[i] + value) * ahead);
        }
    }
}
