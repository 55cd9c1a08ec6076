/* References of a page, for the reader and the writer of links. */
#ifndef TRAPLINE_URL_RESOLUTION_H
#define TRAPLINE_URL_RESOLUTION_H

#include "native.h"
#include <string.h>

typedef struct {
    PyObject_HEAD
    PyObject *origin, *above, *parse, *seen;
} References;

extern PyTypeObject ReferencesType, LinkWriterType;

/* A new reference to a string or to None; NULL for an error. */
PyObject *absolute_url(References *self, PyObject *reference);

PyObject *native_links(PyObject *module, PyObject *args);

#endif
