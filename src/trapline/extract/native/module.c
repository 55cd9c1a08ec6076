/* The compiled reader of pages: where Python meets it. */
#include "native.h"
#include "references.h"
#include <string.h>

Design design;
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
    if (element_attr != NULL && Py_TYPE(element) == design.element) {
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

static int take_table(PyObject *value, uint8_t table[MAX_CODES]) {
    if (value == NULL || !PyBytes_Check(value) || PyBytes_GET_SIZE(value) > MAX_CODES) {
        PyErr_SetString(PyExc_ValueError, "a table has a byte for each tag");
        return -1;
    }
    memset(table, 0, MAX_CODES);
    memcpy(table, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    return 0;
}

static int take_codes(PyObject *value, Codes *codes, Py_ssize_t most) {
    if (value == NULL || !PyBytes_Check(value) || PyBytes_GET_SIZE(value) > most) {
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

static int are_classes(PyObject *table) {
    Py_ssize_t size = PyBytes_GET_SIZE(table);
    for (Py_ssize_t i = 0; i < size; i++) {
        if ((uint8_t)PyBytes_AS_STRING(table)[i] >= CLASSES) {
            return 0;
        }
    }
    return size > 0;
}

static PyObject *configure(PyObject *module, PyObject *given) {
    (void)module;
    PyObject *element = PyDict_GetItemString(given, "element");
    PyObject *text = PyDict_GetItemString(given, "text");
    PyObject *codes = PyDict_GetItemString(given, "codes");
    PyObject *shared = PyDict_GetItemString(given, "shared");
    PyObject *common = PyDict_GetItemString(given, "common");
    PyObject *character = PyDict_GetItemString(given, "character");
    PyObject *single = PyDict_GetItemString(given, "single");
    if (element == NULL || text == NULL || codes == NULL || shared == NULL || common == NULL || character == NULL ||
        single == NULL || !PyType_Check(element) || !PyType_Check(text) ||
        !PyTuple_Check(shared) || PyTuple_GET_SIZE(shared) > MAX_LISTED ||
        !PyTuple_Check(common) || PyTuple_GET_SIZE(common) > MAX_COMMON ||
        !PyBytes_Check(character) ||
        !PyArg_ParseTuple(single, "bbbbbbiii", &design.a, &design.br, &design.img, &design.p,
                          &design.h1, &design.pre, &design.tags, &design.short_text, &design.prose)) {
        PyErr_SetString(PyExc_ValueError, "something is not said");
        return NULL;
    }
    if (design.short_text < 0 || design.short_text > MAX_SHORT || design.prose < 0 ||
        design.prose >= 2 * MAX_PROSE) {
        PyErr_SetString(PyExc_ValueError, "longer texts than there is room for");
        return NULL;
    }
    if (design.tags <= OTHER_TAG || design.tags > MAX_CODES || !are_classes(character)) {
        PyErr_SetString(PyExc_ValueError, "more tags or kinds of characters than there is room for");
        return NULL;
    }
    struct {
        const char *name;
        uint8_t *table;
    } tables[] = {{"block", design.block},       {"hidden", design.hidden},
                  {"named", design.named},       {"heading", design.heading},
                  {"control", design.control},   {"landmark", design.landmark},
                  {"listed", design.listed},     {"media", design.media},
                  {"kept_empty", design.kept_empty}, {"frame", design.frame}};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (take_table(PyDict_GetItemString(given, tables[i].name), tables[i].table) < 0) {
            return NULL;
        }
    }
    if (take_codes(PyDict_GetItemString(given, "own"), &design.own, MAX_LISTED) < 0 ||
        take_codes(PyDict_GetItemString(given, "within"), &design.within, MAX_WITHIN) < 0 ||
        take_codes(PyDict_GetItemString(given, "inline"), &design.inlined, MAX_INLINED) < 0 ||
        take_codes(PyDict_GetItemString(given, "counted"), &design.counted, MAX_LISTED) < 0) {
        return NULL;
    }
    design.element = (PyTypeObject *)Py_NewRef(element);
    design.text = (PyTypeObject *)Py_NewRef(text);
    if (!PyDict_Check(codes) || tags_open(codes) < 0 ||
        take_property(design.element, name_tag, &element_tag) < 0 ||
        take_property(design.element, name_attrs, &element_attrs) < 0 ||
        take_attr(design.element) < 0 ||
        take_property(design.element, name_parent, &element_parent) < 0 ||
        take_property(design.element, name_text, &element_text) < 0 ||
        take_property(design.text, name_parent, &text_parent) < 0 ||
        take_property(design.text, name_data, &text_data) < 0) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(common); i++) {
        if (code_of_tag(PyTuple_GET_ITEM(common, i)) < 0) {
            PyErr_SetString(PyExc_ValueError, "a common tag has no code");
            return NULL;
        }
    }
    design.codes = Py_NewRef(codes);
    design.shared = Py_NewRef(shared);
    design.common = Py_NewRef(common);
    design.character = (uint8_t *)PyBytes_AS_STRING(Py_NewRef(character));
    design.characters = PyBytes_GET_SIZE(character);
    for (int i = 0; i < 256; i++) {
        int kind = design.character[i < design.characters - 1 ? i : design.characters - 1];
        design.counting[i] = kind == LETTER || kind == SPACE ? 0 : (uint64_t)1 << counting_shift(kind);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_O, "Say what the words of the design are; once."},
    {"lexicon", lexicon_new, METH_O, "Make a table of words and their scores."},
    {"outline", native_outline, METH_VARARGS, "Read a tree into arrays."},
    {"rows", native_rows, METH_VARARGS, "Find the rows of some nodes."},
    {"reading", native_reading, METH_VARARGS, "Make the matrix of a page."},
    {"choose", native_choose, METH_VARARGS, "Choose blocks by their scores."},
    {"prune", native_prune, METH_VARARGS, "Remove from a tree all but the chosen blocks."},
    {"links", native_links, METH_VARARGS, "Read the links of a page."},
    {"network", native_network, METH_VARARGS, "Arrange the weights of a network."},
    {"scores", native_scores, METH_VARARGS, "Judge the blocks of a page."},
    {"types", native_types, METH_VARARGS, "Arrange the weights that tell types of pages."},
    {"odds", native_odds, METH_VARARGS, "Say what speaks for each type of page."},
    {"common_words", native_common_words, METH_VARARGS, "Count words, and the common ones."},
    {"seeker", native_seeker, METH_O, "Prepare a look for attributes."},
    {"seek", native_seek, METH_VARARGS, "Look which attributes a source can hold."},
    {"utf8", native_utf8, METH_O, "Give the text of bytes in UTF-8."},
    {"may_tell", native_may_tell, METH_O, "Tell whether texts may have a name or a date."},
    {"with_headline", native_with_headline, METH_VARARGS, "Add the headline to the chosen blocks."},
    {"languages", native_languages, METH_VARARGS, "Find the languages of blocks of code."},
    {"verdicts", native_verdicts, METH_VARARGS, "Tell tables for layout from others."},
    {"tidy", native_tidy, METH_O, "Mend what the renderer has written."},
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
    PyObject *module = hashes_open() < 0 ? NULL : PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddType(module, &ReferencesType) < 0 ||
                           PyModule_AddType(module, &LinkWriterType) < 0)) {
        Py_CLEAR(module);
    }
    return module;
}
