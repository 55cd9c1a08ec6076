/* The network that judges blocks: its layers (network.c), and what goes between them (contexts.c). */
#ifndef TRAPLINE_NETWORK_H
#define TRAPLINE_NETWORK_H

#include "native.h"

/* Ways in which blocks belong together, and all that a block is told of others: its page, its groups,
 * its neighbours, those before and those after. */
enum { GROUPS = 6, CONTEXTS = GROUPS + 4 };

/* Rows of `shared` are `step` numbers apart, those of `out` `out_step`. */
typedef struct {
    Py_ssize_t blocks, width, step, out_step;
    const float *shared, *weights;
    const int64_t *keys;
    float *out;
} Contexts;

/* `room` has a row more than there are blocks, each of one number more than `width`. */
int put_contexts(const Contexts *work, float *room);

#endif
