/* The blocks of a page, which are made while its nodes are walked through: no text is kept for itself. */
#ifndef TRAPLINE_BLOCKS_H
#define TRAPLINE_BLOCKS_H

#include "native.h"

/* An element that is open at a place of the page. */
typedef struct {
    PyObject *node;
    /* Its own row, and that of the block-level element that it is or stands in. */
    int32_t row, owner;
    /* Whether it is, or stands in, what is never shown and what shows code. */
    uint8_t is_hidden, is_code;
} OpenElement;

typedef struct BlockBuilder BlockBuilder;

static inline int is_block_level(int code) {
    return config.block[code] || code == OTHER_NODE;
}

/* Texts are shown, but for some that nobody asks for. */
static inline int is_asked_for(const OpenElement *parent) {
    return !parent->is_hidden || parent->is_code;
}

BlockBuilder *blocks_open(void);
void blocks_close(BlockBuilder *found);
int pass_element(BlockBuilder *found, int code);
int pass_text(BlockBuilder *found, Py_ssize_t row, const OpenElement *parent, PyObject *text);
/* The fields of `Blocks`, once all nodes are passed. */
PyObject *blocks_made(BlockBuilder *found);

#endif
