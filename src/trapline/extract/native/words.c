/* Words and their scores: the twin of vocabulary.py. */
#include "native.h"
#include <string.h>

enum { SMALLEST = 64, LONGEST_NAME = 64, PHRASE = 3 };

int letters_grow(Letters *letters) {
    Py_ssize_t room = letters->room ? 2 * letters->room : 1024;
    Py_UCS4 *data = PyMem_Realloc(letters->data, room * sizeof(Py_UCS4));
    if (data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    letters->data = data;
    letters->room = room;
    return 0;
}

static size_t size_for(Py_ssize_t items) {
    size_t size = SMALLEST;
    while (size < (size_t)items * 2) {
        size *= 2;
    }
    return size;
}

/* Words, classes and ids are the page's own: whoever knew where they go in a table could make a page
 * whose words all go to the same place, and be looked for one by one. Python's own secret is used,
 * which is another one in each process. */
static uint64_t secret[2];

int hashes_open(void) {
    PyObject *names[2] = {name_class, name_decompose};
    for (int i = 0; i < 2; i++) {
        Py_hash_t hash = PyObject_Hash(names[i]);
        if (hash == -1) {
            return -1;
        }
        secret[i] = (uint64_t)hash | (uint64_t)i;
    }
    return 0;
}

static uint64_t mixed(uint64_t value) {
    unsigned __int128 product = (unsigned __int128)value * secret[1];
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash_of(const Py_UCS4 *word, Py_ssize_t size) {
    uint64_t hash = secret[0] ^ (uint64_t)size;
    Py_ssize_t i = 0;
    /* A letter has 21 bits: three go in at once. */
    for (; i + 2 < size; i += 3) {
        uint64_t letters = word[i] | (uint64_t)word[i + 1] << 21 | (uint64_t)word[i + 2] << 42;
        hash = mixed(hash ^ letters);
    }
    uint64_t rest = i < size ? word[i] : 0;
    rest |= i + 1 < size ? (uint64_t)word[i + 1] << 21 : 0;
    hash = mixed(hash ^ rest);
    uint32_t folded = (uint32_t)(hash ^ (hash >> 32));
    return folded ? folded : 1;
}

int lexicon_open(Lexicon *lexicon, Py_ssize_t words) {
    memset(lexicon, 0, sizeof(*lexicon));
    size_t size = size_for(words);
    lexicon->marks = PyMem_Calloc(size, sizeof(uint32_t));
    lexicon->entries = PyMem_Malloc(size * sizeof(Entry));
    lexicon->mask = size - 1;
    if (lexicon->marks == NULL || lexicon->entries == NULL) {
        lexicon_close(lexicon);
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void lexicon_close(Lexicon *lexicon) {
    PyMem_Free(lexicon->marks);
    PyMem_Free(lexicon->entries);
    PyMem_Free(lexicon->letters);
    memset(lexicon, 0, sizeof(*lexicon));
}

/* Where a word stands, or the free place where it would. */
static size_t place_of(Lexicon *lexicon, uint32_t hash, const Py_UCS4 *word, Py_ssize_t size) {
    size_t place = hash & lexicon->mask;
    for (; lexicon->marks[place] != 0; place = (place + 1) & lexicon->mask) {
        Entry *entry = lexicon->entries + place;
        if (lexicon->marks[place] == hash && entry->size == size &&
            memcmp(lexicon->letters + entry->start, word, size * sizeof(Py_UCS4)) == 0) {
            break;
        }
    }
    return place;
}

/* `lexicon_open` made room for all words: there is always a free place. */
int lexicon_add(Lexicon *lexicon, PyObject *word, double score) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(word);
    if (lexicon->used + size > lexicon->room) {
        Py_ssize_t room = 2 * lexicon->room + size + 1024;
        Py_UCS4 *letters = PyMem_Realloc(lexicon->letters, room * sizeof(Py_UCS4));
        if (letters == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        lexicon->letters = letters;
        lexicon->room = room;
    }
    Py_UCS4 *start = lexicon->letters + lexicon->used;
    for (Py_ssize_t i = 0; i < size; i++) {
        start[i] = PyUnicode_READ_CHAR(word, i);
    }
    uint32_t hash = hash_of(start, size);
    size_t place = place_of(lexicon, hash, start, size);
    if (lexicon->marks[place] == 0) {
        lexicon->marks[place] = hash;
        lexicon->entries[place] = (Entry){lexicon->used, size, score, -1};
        lexicon->used += size;
    }
    return 0;
}

Entry *lexicon_find(Lexicon *lexicon, const Py_UCS4 *word, Py_ssize_t size) {
    size_t place = place_of(lexicon, hash_of(word, size), word, size);
    return lexicon->marks[place] ? lexicon->entries + place : NULL;
}

static const char *CAPSULE = "trapline.extract.lexicon";

static void capsule_close(PyObject *capsule) {
    Lexicon *lexicon = PyCapsule_GetPointer(capsule, CAPSULE);
    if (lexicon != NULL) {
        lexicon_close(lexicon);
        PyMem_Free(lexicon);
    }
}

PyObject *lexicon_new(PyObject *module, PyObject *scores) {
    (void)module;
    if (!PyDict_CheckExact(scores)) {
        PyErr_SetString(PyExc_TypeError, "scores are a dict from words to numbers");
        return NULL;
    }
    Lexicon *lexicon = PyMem_Malloc(sizeof(Lexicon));
    if (lexicon == NULL || lexicon_open(lexicon, PyDict_GET_SIZE(scores)) < 0) {
        PyMem_Free(lexicon);
        return PyErr_NoMemory();
    }
    Py_ssize_t place = 0;
    PyObject *word, *value;
    while (PyDict_Next(scores, &place, &word, &value)) {
        double score = PyFloat_AsDouble(value);
        if (PyErr_Occurred() || !PyUnicode_Check(word)) {
            lexicon_close(lexicon);
            PyMem_Free(lexicon);
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "words are strings");
            }
            return NULL;
        }
        /* A score of nothing says nothing. */
        if (score != 0.0 && lexicon_add(lexicon, word, score) < 0) {
            lexicon_close(lexicon);
            PyMem_Free(lexicon);
            return NULL;
        }
    }
    PyObject *capsule = PyCapsule_New(lexicon, CAPSULE, capsule_close);
    if (capsule == NULL) {
        lexicon_close(lexicon);
        PyMem_Free(lexicon);
    }
    return capsule;
}

Lexicon *lexicon_of(PyObject *capsule) {
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

static int append_lowered(PyObject *text, Py_ssize_t limit, Letters *letters) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    size = size < limit ? size : limit;
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        if (letter < 128 && letter >= 'A' && letter <= 'Z') {
            letter += 'a' - 'A';
        }
        if (letters_add(letters, letter) < 0) {
            return -1;
        }
    }
    return 0;
}

int lowered(PyObject *text, Py_ssize_t limit, Letters *letters) {
    letters->size = 0;
    if (PyUnicode_IS_ASCII(text)) {
        return append_lowered(text, limit, letters);
    }
    /* Beyond ASCII a letter's lower case may be two letters, or depend on its neighbours. */
    PyObject *part = PyUnicode_Substring(text, 0, limit);
    PyObject *lower = part ? PyObject_CallMethodNoArgs(part, name_lower) : NULL;
    int failed = lower == NULL || append_lowered(lower, PY_SSIZE_T_MAX, letters) < 0;
    Py_XDECREF(part);
    Py_XDECREF(lower);
    return failed ? -1 : 0;
}

/* What the known words of a text come to, each taken once or as often as it stands there. */
typedef struct {
    Py_ssize_t count;
    int64_t stamp;
    double sum, low, high;
} Known;

/* Whoever reads a text has a stamp of its own, which marks the words that it has met. */
static Known known_words(void) {
    static int64_t stamps = 0;
    return (Known){.stamp = stamps++};
}

static void know(Known *known, Lexicon *lexicon, const Py_UCS4 *word, Py_ssize_t size, int once) {
    Entry *entry = lexicon_find(lexicon, word, size);
    if (entry == NULL || (once && entry->stamp == known->stamp)) {
        return;
    }
    entry->stamp = known->stamp;
    double score = entry->score;
    known->sum += score;
    known->low = known->count && known->low < score ? known->low : score;
    known->high = known->count && known->high > score ? known->high : score;
    known->count++;
}

static Summary summary_of(const Known *known) {
    if (known->count == 0) {
        return (Summary){0, 0, 0};
    }
    double mean = known->sum / known->count;
    return (Summary){(float)mean, (float)known->low, (float)known->high};
}

static int is_word(Py_UCS4 letter) {
    if (letter < 128) {
        return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
               letter == '_' || (letter >= 'A' && letter <= 'Z');
    }
    return Py_UNICODE_ISALNUM(letter);
}

/* One word after another; returns 0 when there is none left. */
static int next_word(const Letters *letters, Py_ssize_t *start, Py_ssize_t *end) {
    Py_ssize_t at = *end;
    while (at < letters->size && !is_word(letters->data[at])) {
        at++;
    }
    *start = at;
    while (at < letters->size && is_word(letters->data[at])) {
        at++;
    }
    *end = at;
    return at > *start;
}

int summary_of_text(Lexicon *lexicon, PyObject *text, Letters *room, Summary *summary) {
    if (lowered(text, PY_SSIZE_T_MAX, room) < 0) {
        return -1;
    }
    Known known = known_words();
    Py_ssize_t start = 0, end = 0, starts[PHRASE], ends[PHRASE];
    int words = 0;
    while (next_word(room, &start, &end)) {
        if (words < PHRASE) {
            starts[words] = start;
            ends[words] = end;
        }
        if (++words > design.short_text) {
            *summary = (Summary){0, 0, 0};
            return 0;
        }
        know(&known, lexicon, room->data + start, end - start, 1);
    }
    if (words > 0 && words <= PHRASE) {
        Py_ssize_t phrase = room->size;
        for (int i = 0; i < words; i++) {
            if (letters_add(room, i ? ' ' : '=') < 0) {
                return -1;
            }
            for (Py_ssize_t at = starts[i]; at < ends[i]; at++) {
                if (letters_add(room, room->data[at]) < 0) {
                    return -1;
                }
            }
        }
        know(&known, lexicon, room->data + phrase, room->size - phrase, 1);
    }
    *summary = summary_of(&known);
    return 0;
}

int summary_of_prose(Lexicon *lexicon, PyObject *text, Letters *room, Summary *summary) {
    if (lowered(text, design.prose, room) < 0) {
        return -1;
    }
    Known known = known_words();
    Py_ssize_t at = 0;
    while (at < room->size) {
        Py_ssize_t start = at;
        while (at < room->size && !Py_UNICODE_ISSPACE(room->data[at])) {
            at++;
        }
        if (at > start) {
            know(&known, lexicon, room->data + start, at - start, 0);
        }
        at++;
    }
    *summary = summary_of(&known);
    return 0;
}

static int is_small(Py_UCS4 letter) {
    return letter >= 'a' && letter <= 'z';
}

static int is_capital(Py_UCS4 letter) {
    return letter >= 'A' && letter <= 'Z';
}

/* `navBar-item2` has nav, bar and item. */
static void know_names(Known *known, Lexicon *lexicon, PyObject *names) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(names), at = 0;
    int kind = PyUnicode_KIND(names);
    const void *data = PyUnicode_DATA(names);
    Py_UCS4 word[LONGEST_NAME];
    while (at < size) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, at++);
        if (!is_small(letter) && !is_capital(letter)) {
            continue;
        }
        Py_ssize_t length = 1;
        word[0] = is_capital(letter) ? letter + ('a' - 'A') : letter;
        while (at < size && is_small(letter = PyUnicode_READ(kind, data, at))) {
            if (length < LONGEST_NAME) {
                word[length] = letter;
            }
            length++;
            at++;
        }
        if (length <= LONGEST_NAME) {
            know(known, lexicon, word, length, 1);
        }
    }
}

Summary summary_of_names(Lexicon *lexicon, PyObject *first, PyObject *second) {
    Known known = known_words();
    if (first != Py_None) {
        know_names(&known, lexicon, first);
    }
    if (second != Py_None) {
        know_names(&known, lexicon, second);
    }
    return summary_of(&known);
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
    size_t place = mixed((uint64_t)key ^ secret[0]) & numbers->mask;
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
