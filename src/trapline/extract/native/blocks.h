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
} Holding;

typedef struct Found Found;

static inline int is_block_level(int code) {
    return design.block[code] || code == OTHER_NODE;
}

/* Texts are shown, but for some that nobody asks for. */
static inline int is_asked_for(const Holding *parent) {
    return !parent->is_hidden || parent->is_code;
}

Found *blocks_open(void);
void blocks_close(Found *found);
int pass_element(Found *found, int code);
int pass_text(Found *found, Py_ssize_t row, const Holding *parent, PyObject *text);
/* The fields of `Blocks`, once all nodes are passed. */
PyObject *blocks_made(Found *found);

#endif
