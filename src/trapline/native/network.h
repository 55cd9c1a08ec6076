/* The network that judges blocks: its layers (network.c), and what goes between them (contexts.c). */
#ifndef TRAPLINE_NETWORK_H
#define TRAPLINE_NETWORK_H

#include "native.h"

/* What a column is shifted, multiplied and bounded by. */
static inline float standard(float value, float mean, float scale, float bound) {
    value = (value - mean) * scale;
    value = value < -bound ? -bound : value;
    return value > bound ? bound : value;
}

/* Ways in which blocks belong together, their page being the first; and what else a block is told of
 * others: its neighbours, those before and those after. */
enum { GROUPS = 7, NEAR_CONTEXTS = 3, CONTEXTS = GROUPS + NEAR_CONTEXTS };

/* Rows of `shared` are `step` numbers apart, those of `out` `out_step`. */
typedef struct {
    Py_ssize_t blocks, width, step, out_step;
    const float *shared, *weights;
    const int64_t *keys;
    float *out;
} Contexts;

/* The weighted means of the groups of one kind, a row of one number more than `width` each, and the
 * group of each block. How many groups there are; -1 where memory is short. */
Py_ssize_t group_means(const Contexts *work, int group, float *means, int32_t *numbers);
/* Of each block's neighbours; `room` has a row of `width` numbers more than there are blocks. */
void neighbour_means(const Contexts *work, float *room);
/* Of those before and of those after, each with the block; `room` has two rows of a number more than `width`. */
void running_means(const Contexts *work, double *room);

#endif
