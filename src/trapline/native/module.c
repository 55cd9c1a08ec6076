/* The module: what Python calls, and the constants that it configures. */
#include "native.h"
#include "url_resolution.h"
#include <string.h>

Config config;
PyObject *name_tag, *name_parent, *name_descendants, *name_data, *name_attr, *name_attrs, *name_lower;
PyObject *name_class, *name_id, *name_decompose, *name_text, *name_hidden, *name_rel, *name_href, *name_find_all;

Property element_tag, element_attrs, element_parent, element_text, text_parent, text_data;

/* How `attr` of elements is called without looking for it in their type each time, and without making
 * a tuple of what it is given: names are few, and each has its own. */
enum { MOST_NAMES = 16 };
static PyCFunctionWithKeywords element_attr;
static PyObject *given_names[MOST_NAMES];

static int take_attr(PyTypeObject *type) {
    PyObject *found = PyObject_GetAttr((PyObject *)type, name_attr);
    if (found == NULL) {
        return -1;
    }
    element_attr = NULL;
    if (Py_IS_TYPE(found, &PyMethodDescr_Type)) {
        const PyMethodDef *given = ((PyMethodDescrObject *)found)->d_method;
        if (given->ml_flags == (METH_VARARGS | METH_KEYWORDS)) {
            element_attr = (PyCFunctionWithKeywords)(void (*)(void))given->ml_meth;
        }
    }
    Py_DECREF(found);
    return 0;
}

/* A tuple of a name, which is kept for good; NULL without an error where there are too many. */
static PyObject *tuple_of(PyObject *name) {
    for (int i = 0; i < MOST_NAMES; i++) {
        if (given_names[i] == NULL) {
            return given_names[i] = PyTuple_Pack(1, name);
        }
        if (PyTuple_GET_ITEM(given_names[i], 0) == name) {
            return given_names[i];
        }
    }
    return NULL;
}

PyObject *attribute_value(PyObject *element, PyObject *name) {
    if (element_attr != NULL && Py_TYPE(element) == config.element) {
        PyObject *given = tuple_of(name);
        if (given != NULL || PyErr_Occurred()) {
            return given != NULL ? element_attr(element, given, NULL) : NULL;
        }
    }
    return PyObject_CallMethodOneArg(element, name_attr, name);
}

Py_ssize_t attribute_count(PyObject *element) {
    PyObject *attributes = property(element, &element_attrs);
    Py_ssize_t count = attributes == NULL ? -1 : PyObject_Size(attributes);
    Py_XDECREF(attributes);
    return count;
}

/* Where it is none of the properties that C gives to types, Python is asked for it every time. */
static int take_property(PyTypeObject *type, PyObject *name, Property *place) {
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    if (found == NULL) {
        return -1;
    }
    *place = (Property){type, name, NULL, NULL};
    if (Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
        const PyGetSetDef *given = ((PyGetSetDescrObject *)found)->d_getset;
        place->get = given->get;
        place->closure = given->closure;
    }
    Py_DECREF(found);
    return 0;
}

/* Each of these takes a constant of Python under its name, if it is among those given. */
static int take_table(PyObject *given, const char *name, uint8_t table[MAX_CODES]) {
    PyObject *value = PyDict_GetItemString(given, name);
    if (value == NULL) {
        return 0;
    }
    if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) > MAX_CODES) {
        PyErr_SetString(PyExc_ValueError, "a table has a byte for each tag");
        return -1;
    }
    memset(table, 0, MAX_CODES);
    memcpy(table, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    return 0;
}

static int take_codes(PyObject *given, const char *name, Codes *codes, Py_ssize_t most) {
    PyObject *value = PyDict_GetItemString(given, name);
    if (value == NULL) {
        return 0;
    }
    if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) > most) {
        PyErr_SetString(PyExc_ValueError, "a list of tags is short");
        return -1;
    }
    codes->size = (int)PyBytes_GET_SIZE(value);
    memcpy(codes->code, PyBytes_AS_STRING(value), codes->size);
    memset(codes->place, codes->size, MAX_CODES);
    for (int i = 0; i < codes->size; i++) {
        codes->place[codes->code[i]] = (uint8_t)i;
    }
    return 0;
}

static int take_number(PyObject *given, const char *name, int most, int *number) {
    PyObject *value = PyDict_GetItemString(given, name);
    long size = value == NULL ? *number : PyLong_AsLong(value);
    if (size < 0 || size > most) {
        PyErr_SetString(PyExc_ValueError, "longer texts than there is room for");
        return -1;
    }
    *number = (int)size;
    return 0;
}

static int take_tuple(PyObject *given, const char *name, Py_ssize_t most, PyObject **tuple) {
    PyObject *value = PyDict_GetItemString(given, name);
    if (value == NULL) {
        return 0;
    }
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) > most) {
        PyErr_SetString(PyExc_ValueError, "a short tuple is expected");
        return -1;
    }
    Py_XSETREF(*tuple, Py_NewRef(value));
    return 0;
}

static int take_characters(PyObject *given) {
    PyObject *value = PyDict_GetItemString(given, "character");
    if (value == NULL) {
        return 0;
    }
    int known = PyBytes_Check(value) && PyBytes_GET_SIZE(value) > 0;
    for (Py_ssize_t i = 0; known && i < PyBytes_GET_SIZE(value); i++) {
        known = (uint8_t)PyBytes_AS_STRING(value)[i] < CLASSES;
    }
    if (!known) {
        PyErr_SetString(PyExc_ValueError, "more classes of characters than there is room for");
        return -1;
    }
    config.character = (uint8_t *)PyBytes_AS_STRING(Py_NewRef(value));
    config.characters = PyBytes_GET_SIZE(value);
    for (int i = 0; i < 256; i++) {
        int kind = config.character[i < config.characters - 1 ? i : config.characters - 1];
        config.counting[i] = kind == LETTER || kind == SPACE ? 0 : (uint64_t)1 << counting_shift(kind);
    }
    return 0;
}

/* The types of nodes, and how their properties are read. */
static int take_types(PyObject *given) {
    PyObject *element = PyDict_GetItemString(given, "element"), *text = PyDict_GetItemString(given, "text");
    if (element == NULL && text == NULL) {
        return 0;
    }
    if (element == NULL || text == NULL || !PyType_Check(element) || !PyType_Check(text)) {
        PyErr_SetString(PyExc_ValueError, "the types of elements and of texts are expected");
        return -1;
    }
    config.element = (PyTypeObject *)Py_NewRef(element);
    config.text = (PyTypeObject *)Py_NewRef(text);
    return take_property(config.element, name_tag, &element_tag) < 0 ||
                   take_property(config.element, name_attrs, &element_attrs) < 0 ||
                   take_attr(config.element) < 0 ||
                   take_property(config.element, name_parent, &element_parent) < 0 ||
                   take_property(config.element, name_text, &element_text) < 0 ||
                   take_property(config.text, name_parent, &text_parent) < 0 ||
                   take_property(config.text, name_data, &text_data) < 0
               ? -1
               : 0;
}

/* The codes of all tags, and those of tags that are named here. */
static int take_tags(PyObject *given) {
    PyObject *codes = PyDict_GetItemString(given, "codes");
    if (codes == NULL) {
        return 0;
    }
    int tags = 0;
    if (!PyDict_Check(codes) || take_number(given, "tags", MAX_CODES, &tags) < 0 || tags <= OTHER_TAG) {
        PyErr_SetString(PyExc_ValueError, "more tags than there is room for");
        return -1;
    }
    config.tags = tags;
    if (tags_open(codes) < 0) {
        return -1;
    }
    struct {
        const char *name;
        uint8_t *code;
    } named[] = {{"a", &config.a}, {"br", &config.br}, {"img", &config.img},
                 {"p", &config.p}, {"h1", &config.h1}, {"pre", &config.pre}};
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        PyObject *code = PyDict_GetItemString(codes, named[i].name);
        *named[i].code = code == NULL ? OTHER_TAG : (uint8_t)PyLong_AsLong(code);
    }
    Py_XSETREF(config.codes, Py_NewRef(codes));
    return PyErr_Occurred() ? -1 : 0;
}

static int take_common_tags(PyObject *given) {
    if (take_tuple(given, "common", MAX_COMMON, &config.common) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; config.common != NULL && i < PyTuple_GET_SIZE(config.common); i++) {
        if (code_of_tag(PyTuple_GET_ITEM(config.common, i)) < 0) {
            PyErr_SetString(PyExc_ValueError, "a common tag has no code");
            return -1;
        }
    }
    return 0;
}

/* Called by each module for its own constants. */
static PyObject *configure(PyObject *module, PyObject *given) {
    (void)module;
    if (!PyDict_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "constants by their names are expected");
        return NULL;
    }
    struct {
        const char *name;
        uint8_t *table;
    } tables[] = {{"block", config.block},       {"hidden", config.hidden},
                  {"named", config.named},       {"heading", config.heading},
                  {"control", config.control},   {"landmark", config.landmark},
                  {"listed", config.listed},     {"media", config.media},
                  {"kept_empty", config.kept_empty}, {"frame", config.frame}};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (take_table(given, tables[i].name, tables[i].table) < 0) {
            return NULL;
        }
    }
    if (take_codes(given, "own", &config.own, MAX_LISTED) < 0 ||
        take_codes(given, "within", &config.within, MAX_WITHIN) < 0 ||
        take_codes(given, "inline", &config.inlined, MAX_INLINED) < 0 ||
        take_codes(given, "counted", &config.counted, MAX_LISTED) < 0 ||
        take_tuple(given, "shared", MAX_LISTED, &config.shared) < 0 ||
        take_number(given, "short", MAX_SHORT, &config.short_text) < 0 ||
        take_number(given, "prose", 2 * MAX_PROSE - 1, &config.prose) < 0 || take_characters(given) < 0 ||
        take_types(given) < 0 || take_tags(given) < 0 || take_common_tags(given) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_O, "Set the tables that Python defines; once."},
    {"lexicon", lexicon_new, METH_O, "Make a table of words and their scores."},
    {"outline", native_outline, METH_VARARGS, "Read a tree into arrays."},
    {"rows", native_rows, METH_VARARGS, "Find the rows of some nodes."},
    {"reading", native_reading, METH_VARARGS, "Make the matrix of a page."},
    {"choose", native_choose, METH_VARARGS, "Choose blocks by their scores."},
    {"prune", native_prune, METH_VARARGS, "Remove from a tree all but the chosen blocks."},
    {"links", native_links, METH_VARARGS, "Read the links of a page."},
    {"network", native_network, METH_VARARGS, "Arrange the weights of a network."},
    {"scores", native_scores, METH_VARARGS, "Judge the blocks of a page."},
    {"seeker", native_seeker, METH_O, "Prepare a look for attributes."},
    {"seek", native_seek, METH_VARARGS, "Look which attributes a source can hold."},
    {"tidy", native_tidy, METH_O, "Mend what the renderer has written."},
    {"text_words", similarity_words, METH_O, "The number of each word of a text."},
    {"text_features", similarity_features, METH_VARARGS, "The numbers of three words in a row, each once."},
    {"squeezed", content_hash_squeezed, METH_O, "A text's words with one space between; None if not composed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Reads pages into arrays.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    struct {
        PyObject **place;
        const char *name;
    } names[] = {{&name_tag, "tag"},     {&name_parent, "parent"}, {&name_descendants, "descendants"},
                 {&name_data, "data"},   {&name_attr, "attr"},     {&name_lower, "lower"},
                 {&name_class, "class"}, {&name_id, "id"},       {&name_decompose, "decompose"},
                 {&name_text, "text"},   {&name_hidden, "hidden"}, {&name_rel, "rel"},
                 {&name_href, "href"},   {&name_attrs, "attrs"},
                 {&name_find_all, "find_all"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].place = PyUnicode_InternFromString(names[i].name);
        if (*names[i].place == NULL) {
            return NULL;
        }
    }
    blanks_open();
    similarity_open();
    PyObject *module = hashes_open() < 0 ? NULL : PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddType(module, &ReferencesType) < 0 ||
                           PyModule_AddType(module, &LinkWriterType) < 0)) {
        Py_CLEAR(module);
    }
    return module;
}
