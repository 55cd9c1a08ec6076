/* Tables that whoever writes pages cannot slow down: words with scores, and keys with numbers. */
#include "vocabulary.h"
#include <string.h>

enum { SMALLEST = 64 };

static size_t size_for(Py_ssize_t items) {
    size_t size = SMALLEST;
    while (size < (size_t)items * 3 / 2) {
        size *= 2;
    }
    return size;
}

/* Words, classes and ids are the page's own: whoever knew where they go in a table could make a page
 * whose words all go to the same place, and be looked for one by one. Python's own secret is used,
 * which is another one in each process. */
uint64_t hash_secret[2];

int hashes_open(void) {
    PyObject *names[2] = {name_class, name_decompose};
    for (int i = 0; i < 2; i++) {
        Py_hash_t hash = PyObject_Hash(names[i]);
        if (hash == -1) {
            return -1;
        }
        hash_secret[i] = (uint64_t)hash | (uint64_t)i;
    }
    return 0;
}

int lexicon_open(Lexicon *lexicon, Py_ssize_t words) {
    memset(lexicon, 0, sizeof(*lexicon));
    /* Three places a word or more: most are told by the first that is looked at. */
    size_t size = size_for(2 * words);
    lexicon->slots = PyMem_Calloc(size, sizeof(uint64_t));
    lexicon->stamps = PyMem_Malloc(size * sizeof(int64_t));
    lexicon->mask = size - 1;
    if (lexicon->slots == NULL || lexicon->stamps == NULL) {
        lexicon_close(lexicon);
        PyErr_NoMemory();
        return -1;
    }
    memset(lexicon->stamps, 0xff, size * sizeof(int64_t));
    return 0;
}

void lexicon_close(Lexicon *lexicon) {
    PyMem_Free(lexicon->slots);
    PyMem_Free(lexicon->stamps);
    PyMem_Free(lexicon->scores);
    PyMem_Free(lexicon->remembered);
    memset(lexicon, 0, sizeof(*lexicon));
}

/* The number of a score among the different ones, of which there are few: a model's are in steps. */
static Py_ssize_t number_of_score(Lexicon *lexicon, Numbers *known, double score) {
    int64_t bits;
    memcpy(&bits, &score, sizeof(bits));
    Py_ssize_t count = known->count, number = number_of(known, bits);
    if (number < count) {
        return number;
    }
    if (number + 2 >= (Py_ssize_t)LEXICON_SCORE) {
        PyErr_SetString(PyExc_ValueError, "more different scores than there is room for");
        return -1;
    }
    Py_ssize_t place = number + 2;
    if (place % SMALLEST == 0) {
        Score *scores = PyMem_Realloc(lexicon->scores, ((size_t)place + SMALLEST) * sizeof(Score));
        if (scores == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        lexicon->scores = scores;
    }
    lexicon->scores[place] = (Score){score, score, score, 1};
    return number;
}

/* `lexicon_open` made room for all words: there is always a free place. */
static int lexicon_put(Lexicon *lexicon, PyObject *word, Py_ssize_t number, Lowered *room) {
    if (written_out(word, room) < 0) {
        return -1;
    }
    if (number >= 0 && room->size >= LONGEST) {
        PyErr_SetString(PyExc_ValueError, "a word is longer than any");
        return -1;
    }
    uint64_t hash = hash_of(room->bytes, room->size);
    size_t place = lexicon_place(lexicon, hash);
    if (lexicon->slots[place] == 0) {
        lexicon->slots[place] = (hash & ~LEXICON_SCORE) | (uint64_t)(number + 2);
    }
    return 0;
}

int lexicon_add(Lexicon *lexicon, PyObject *word, Lowered *room) {
    return lexicon_put(lexicon, word, -1, room);
}

static const char *CAPSULE = "trapline.extract.lexicon";

static void capsule_close(PyObject *capsule) {
    Lexicon *lexicon = PyCapsule_GetPointer(capsule, CAPSULE);
    if (lexicon != NULL) {
        lexicon_close(lexicon);
        PyMem_Free(lexicon);
    }
}

static int lexicon_fill(Lexicon *lexicon, PyObject *scores) {
    Numbers known = {0};
    Lowered room = {0};
    Py_ssize_t place = 0;
    PyObject *word, *value;
    lexicon->scores = PyMem_Malloc(SMALLEST * sizeof(Score));
    if (lexicon->scores == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    lexicon->scores[0] = lexicon->scores[1] = NO_SCORE;
    int failed = numbers_open(&known, PyDict_GET_SIZE(scores) + 1) < 0;
    while (!failed && PyDict_Next(scores, &place, &word, &value)) {
        double score = PyFloat_AsDouble(value);
        if (!PyErr_Occurred() && !PyUnicode_Check(word)) {
            PyErr_SetString(PyExc_TypeError, "words are strings");
        }
        failed = PyErr_Occurred() != NULL;
        /* A score of nothing says nothing. */
        if (!failed && score != 0.0) {
            Py_ssize_t number = number_of_score(lexicon, &known, score);
            failed = number < 0 || lexicon_put(lexicon, word, number, &room) < 0;
        }
    }
    numbers_close(&known);
    lowered_close(&room);
    return failed ? -1 : 0;
}

PyObject *lexicon_new(PyObject *module, PyObject *scores) {
    (void)module;
    if (!PyDict_CheckExact(scores)) {
        PyErr_SetString(PyExc_TypeError, "scores are a dict from words to numbers");
        return NULL;
    }
    Lexicon *lexicon = PyMem_Calloc(1, sizeof(Lexicon));
    if (lexicon == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = NULL;
    if (lexicon_open(lexicon, PyDict_GET_SIZE(scores)) == 0 && lexicon_fill(lexicon, scores) == 0) {
        capsule = PyCapsule_New(lexicon, CAPSULE, capsule_close);
    }
    if (capsule == NULL) {
        lexicon_close(lexicon);
        PyMem_Free(lexicon);
    }
    return capsule;
}

Lexicon *lexicon_of(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

int numbers_open(Numbers *numbers, Py_ssize_t expected) {
    size_t size = size_for(expected);
    numbers->keys = PyMem_Malloc(size * sizeof(int64_t));
    numbers->places = PyMem_Malloc(size * sizeof(int32_t));
    numbers->mask = size - 1;
    numbers->count = 0;
    if (numbers->keys == NULL || numbers->places == NULL) {
        numbers_close(numbers);
        PyErr_NoMemory();
        return -1;
    }
    memset(numbers->places, 0xff, size * sizeof(int32_t));
    return 0;
}

void numbers_close(Numbers *numbers) {
    PyMem_Free(numbers->keys);
    PyMem_Free(numbers->places);
    memset(numbers, 0, sizeof(*numbers));
}

/* Where a key stands, or the free place where it would. */
static size_t key_place(const Numbers *numbers, int64_t key) {
    size_t place = mixed((uint64_t)key ^ hash_secret[0], hash_secret[1]) & numbers->mask;
    while (numbers->places[place] >= 0 && numbers->keys[place] != key) {
        place = (place + 1) & numbers->mask;
    }
    return place;
}

/* At most as many different keys as were expected may be asked for. */
int32_t number_of(Numbers *numbers, int64_t key) {
    size_t place = key_place(numbers, key);
    if (numbers->places[place] < 0) {
        numbers->keys[place] = key;
        numbers->places[place] = numbers->count++;
    }
    return numbers->places[place];
}

int is_numbered(const Numbers *numbers, int64_t key) {
    return numbers->places[key_place(numbers, key)] >= 0;
}
