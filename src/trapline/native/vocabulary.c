/* Words and what they score: the counterpart of vocabulary.py. */
#include "vocabulary.h"

enum { PHRASE = 3 };

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

int lowered_open(Lowered *lowered, Py_ssize_t size) {
    lowered->size = 0;
    if (size < lowered->room) {
        return 0;
    }
    Py_ssize_t chunks = (size + size / 4 + 1024) / CHUNK;
    lowered_close(lowered);
    /* What is read past the end does not matter, but it is never memory that nobody wrote. */
    uint8_t *bytes = PyMem_Calloc(chunks * CHUNK + 2 * HASH_SLACK, 1);
    lowered->bytes = bytes == NULL ? NULL : bytes + HASH_SLACK;
    lowered->inside = PyMem_Calloc(chunks, sizeof(uint64_t));
    if (lowered->bytes == NULL || lowered->inside == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    lowered->room = chunks * CHUNK;
    return 0;
}

void lowered_close(Lowered *lowered) {
    PyMem_Free(lowered->bytes == NULL ? NULL : lowered->bytes - HASH_SLACK);
    PyMem_Free(lowered->inside);
    memset(lowered, 0, sizeof(*lowered));
}

/* As UTF-8, which has room for half of a pair too. */
static inline int encoded(Py_UCS4 letter, uint8_t *to) {
    if (letter < 0x80) {
        to[0] = (uint8_t)letter;
        return 1;
    }
    if (letter < 0x800) {
        to[0] = (uint8_t)(0xc0 | letter >> 6);
        to[1] = (uint8_t)(0x80 | (letter & 0x3f));
        return 2;
    }
    if (letter < 0x10000) {
        to[0] = (uint8_t)(0xe0 | letter >> 12);
        to[1] = (uint8_t)(0x80 | (letter >> 6 & 0x3f));
        to[2] = (uint8_t)(0x80 | (letter & 0x3f));
        return 3;
    }
    to[0] = (uint8_t)(0xf0 | letter >> 18);
    to[1] = (uint8_t)(0x80 | (letter >> 12 & 0x3f));
    to[2] = (uint8_t)(0x80 | (letter >> 6 & 0x3f));
    to[3] = (uint8_t)(0x80 | (letter & 0x3f));
    return 4;
}

Py_ssize_t write_part(PyObject *text, Py_ssize_t from, Py_ssize_t to, uint8_t *bytes) {
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t size = 0;
    for (Py_ssize_t i = from; i < to; i++) {
        size += encoded(PyUnicode_READ(kind, data, i), bytes + size);
    }
    return size;
}

int written_out(PyObject *text, Lowered *lowered) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    if (lowered_open(lowered, 4 * size) < 0) {
        return -1;
    }
    lowered->size = write_part(text, 0, size, lowered->bytes);
    return 0;
}

static inline uint8_t small(uint8_t byte) {
    return (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 'a' - 'A' : 0));
}

/* What words are made of: letters of names, letters and digits, or all that is no white space. */
enum { OF_NAME, OF_TEXT, OF_PROSE };

/* All ones where bytes in lower case belong to a word. */
static inline Sixteen inside_word(Sixteen bytes, int kind) {
    Sixteen letters = (Sixteen)(bytes - 'a' < 26);
    return kind == OF_NAME   ? letters
           : kind == OF_TEXT ? letters | (Sixteen)(bytes - '0' < 10) | (Sixteen)(bytes == '_')
                             : ~((Sixteen)(bytes - 9 < 5) | (Sixteen)(bytes - 28 < 5));
}

static inline Sixteen small_letters(Sixteen bytes) {
    return bytes + ((Sixteen)(bytes - 'A' < 26) & ('a' - 'A'));
}

/* A text that is ASCII, and stands in its object behind other things. Its last letters are read together
 * with what is before them, be it of the object, and written so too: what is written in parts, as copies
 * of any length are, is slow to read as a whole. */
static inline void lower_plain(PyObject *text, Py_ssize_t size, Lowered *lowered, int kind) {
    _Static_assert(sizeof(PyASCIIObject) >= sizeof(Sixteen), "letters stand behind their object");
    const uint8_t *from = PyUnicode_1BYTE_DATA(text);
    lowered->inside[size / CHUNK] = 0;
    for (Py_ssize_t at = 0; at < size; at += 16) {
        Py_ssize_t missing = size - at < 16 ? 16 - (size - at) : 0;
        Sixteen some = small_letters(*(const Sixteen *)(from + at - missing));
        *(Sixteen *)(lowered->bytes + at - missing) = some;
        uint64_t bits = sixteen_bits(inside_word(some, kind)) >> missing, *inside = lowered->inside + at / CHUNK;
        *inside = (at % CHUNK ? *inside : 0) | bits << at % CHUNK;
    }
    lowered->size = size;
}

/* Puts what is ASCII in lower case, whole chunks at a time, and finds its words; whether the bytes of
 * other letters are inside is known already. */
static inline void lower_bytes(Lowered *lowered, int kind, int plain) {
    uint8_t *bytes = lowered->bytes;
    for (Py_ssize_t chunk = 0; chunk <= lowered->size / CHUNK; chunk++) {
        uint64_t inside = 0, other = 0;
        for (int i = 0; i < CHUNK; i += 16, bytes += 16) {
            Sixteen some = *(Sixteen *)bytes;
            other |= sixteen_bits((Sixteen)(some > 0x7f)) << i;
            some = small_letters(some);
            *(Sixteen *)bytes = some;
            inside |= sixteen_bits(inside_word(some, kind)) << i;
        }
        lowered->inside[chunk] = plain ? inside : (inside & ~other) | (lowered->inside[chunk] & other);
    }
    /* What stood there before is left after the end. */
    lowered->inside[lowered->size / CHUNK] &= ((uint64_t)1 << lowered->size % CHUNK) - 1;
}

/* Letters whose lower case is two letters, or depends on their neighbours; there are no others. */
static inline int is_odd(Py_UCS4 letter) {
    return letter == 0x130 || letter == 0x3a3;
}

/* Writes a text as UTF-8, what is not ASCII in lower case. Returns 1 where a letter is met that Python
 * must lower. */
static inline __attribute__((always_inline)) int write_letters(int kind, const void *data, Py_ssize_t size,
                                                               Lowered *lowered, int prose) {
    enum { SOME = 8 };
    Py_ssize_t at = 0, i = 0;
    while (i < size) {
        Py_UCS4 any = 0x80;
        if (i + SOME <= size) {
            any = 0;
            for (int j = 0; j < SOME; j++) {
                Py_UCS4 letter = PyUnicode_READ(kind, data, i + j);
                any |= letter;
                lowered->bytes[at + j] = (uint8_t)letter;
            }
        }
        if (any < 0x80) {
            i += SOME;
            at += SOME;
            continue;
        }
        Py_ssize_t to = i + SOME < size ? i + SOME : size;
        for (; i < to; i++) {
            Py_UCS4 letter = PyUnicode_READ(kind, data, i);
            if (letter < 0x80) {
                lowered->bytes[at++] = (uint8_t)letter;
                continue;
            }
            if (is_odd(letter)) {
                return 1;
            }
            letter = Py_UNICODE_TOLOWER(letter);
            uint64_t inside = prose ? !Py_UNICODE_ISSPACE(letter) : Py_UNICODE_ISALNUM(letter) != 0;
            int count = encoded(letter, lowered->bytes + at);
            for (int j = 0; j < count; j++, at++) {
                uint64_t bit = (uint64_t)1 << at % CHUNK, *bits = lowered->inside + at / CHUNK;
                *bits = inside ? *bits | bit : *bits & ~bit;
            }
        }
    }
    lowered->size = at;
    return 0;
}

static int lower_letters(PyObject *text, Py_ssize_t size, Lowered *lowered, int prose) {
    const void *data = PyUnicode_DATA(text);
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
        return write_letters(PyUnicode_1BYTE_KIND, data, size, lowered, prose);
    case PyUnicode_2BYTE_KIND:
        return write_letters(PyUnicode_2BYTE_KIND, data, size, lowered, prose);
    default:
        return write_letters(PyUnicode_4BYTE_KIND, data, size, lowered, prose);
    }
}

/* How many bytes a letter can take: in lower case none has a larger kind than it had. */
static Py_ssize_t bytes_of(PyObject *text) {
    return PyUnicode_IS_ASCII(text) ? 1 : PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND ? 2 : 4;
}

static int lower_in_python(PyObject *text, Py_ssize_t size, Lowered *lowered, int prose) {
    PyObject *part = PyUnicode_Substring(text, 0, size);
    PyObject *lower = part ? PyObject_CallMethodNoArgs(part, name_lower) : NULL;
    int failed = lower == NULL;
    if (!failed) {
        Py_ssize_t letters = PyUnicode_GET_LENGTH(lower);
        /* In lower case, nothing is odd. */
        failed = lowered_open(lowered, bytes_of(lower) * letters) < 0 ||
                 lower_letters(lower, letters, lowered, prose);
    }
    Py_XDECREF(part);
    Py_XDECREF(lower);
    return failed ? -1 : 0;
}

/* The first `limit` letters of a text. */
static inline int lower_text(PyObject *text, Py_ssize_t limit, Lowered *lowered, int kind) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    size = size < limit ? size : limit;
    if (lowered_open(lowered, bytes_of(text) * size) < 0) {
        return -1;
    }
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        lower_plain(text, size, lowered, kind);
        return 0;
    }
    int prose = kind == OF_PROSE;
    if (lower_letters(text, size, lowered, prose) && lower_in_python(text, size, lowered, prose) < 0) {
        return -1;
    }
    lower_bytes(lowered, kind, 0);
    return 0;
}

static inline void know(Score *known, const Score *score) {
    known->sum += score->sum;
    known->low = score->low < known->low ? score->low : known->low;
    known->high = score->high > known->high ? score->high : known->high;
    known->count += score->count;
}

static Summary summary_of(const Score *known) {
    if (known->count == 0) {
        return (Summary){0, 0, 0};
    }
    double mean = known->sum / known->count;
    return (Summary){(float)mean, (float)known->low, (float)known->high};
}

static inline void seek(const Lexicon *lexicon, uint64_t hash, WordHashes *sought) {
    __builtin_prefetch(lexicon->slots + (hash & lexicon->mask));
    sought->hashes[sought->count++] = hash;
}

/* Whether a word is among those before it. */
static int is_again(const WordHashes *sought, int place) {
    int before = 0;
    while (sought->hashes[before] != sought->hashes[place]) {
        before++;
    }
    return before < place;
}

Summary summary_of_few(const Lexicon *lexicon, const WordHashes *sought) {
    Score known = NO_SCORE;
    uint64_t met = 0;
    for (int i = 0; i < sought->count; i++) {
        uint64_t hash = sought->hashes[i], mark = (uint64_t)1 << (hash >> 58);
        if (!(met & mark) || !is_again(sought, i)) {
            know(&known, lexicon_score(lexicon, lexicon_place(lexicon, hash)));
        }
        met |= mark;
    }
    return summary_of(&known);
}

Summary summary_of_all(const Lexicon *lexicon, const WordHashes *sought) {
    Score known = NO_SCORE;
    for (int i = 0; i < sought->count; i++) {
        know(&known, lexicon_score(lexicon, lexicon_place(lexicon, sought->hashes[i])));
    }
    return summary_of(&known);
}

/* Few words take more than one step; some bytes after the end are written too. */
static inline void copy_word(uint8_t *to, const uint8_t *from, Py_ssize_t size) {
    for (Py_ssize_t i = 0; i < size; i += HASH_SLACK) {
        memcpy(to + i, from + i, HASH_SLACK);
    }
}

/* A phrase of more than `LONGEST` bytes is no word of a lexicon. */
int seek_text(const Lexicon *lexicon, PyObject *text, Lowered *room, WordHashes *sought) {
    sought->count = 0;
    if (lower_text(text, PY_SSIZE_T_MAX, room, OF_TEXT) < 0) {
        return -1;
    }
    Words words = words_of(room);
    Py_ssize_t start, end, size = 0;
    uint8_t phrase[LONGEST + HASH_SLACK];
    while (next_word(&words, &start, &end)) {
        if (sought->count == config.short_text) {
            sought->count = 0;
            return 0;
        }
        if (sought->count < PHRASE && size + 1 + end - start <= LONGEST) {
            phrase[size++] = sought->count ? ' ' : '=';
            copy_word(phrase + size, room->bytes + start, end - start);
            size += end - start;
        } else {
            size = LONGEST;
        }
        seek(lexicon, hash_of(room->bytes + start, end - start), sought);
    }
    if (sought->count > 0 && size < LONGEST) {
        seek(lexicon, hash_of(phrase, size), sought);
    }
    return 0;
}

int seek_prose(const Lexicon *lexicon, PyObject *text, Lowered *room, WordHashes *sought) {
    sought->count = 0;
    if (lower_text(text, config.prose, room, OF_PROSE) < 0) {
        return -1;
    }
    Words words = words_of(room);
    Py_ssize_t start, end;
    while (sought->count < MAX_PROSE && next_word(&words, &start, &end)) {
        seek(lexicon, hash_of(room->bytes + start, end - start), sought);
    }
    return 0;
}

/* `navBar-item2` has nav, bar and item: a capital begins a word, what is no letter ends one. */
static void add_names(PyObject *names, Lowered *room) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(names), at = room->size;
    int kind = PyUnicode_KIND(names);
    const void *data = PyUnicode_DATA(names);
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        uint8_t byte = letter < 0x80 ? (uint8_t)letter : 0, lower = small(byte);
        room->bytes[at] = 0;
        at += lower != byte;
        room->bytes[at++] = lower;
    }
    room->bytes[at++] = 0;
    room->size = at;
}

static int read_names(Lexicon *lexicon, PyObject *const names[2], Lowered *room, Summary *summary) {
    /* Whoever reads names has a stamp of its own, which marks the words that it has met. */
    static int64_t stamps = 0;
    int64_t stamp = stamps++;
    Py_ssize_t letters = 0;
    for (int i = 0; i < 2; i++) {
        letters += names[i] == Py_None ? 0 : PyUnicode_GET_LENGTH(names[i]);
    }
    if (lowered_open(room, 2 * letters + 2) < 0) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (names[i] != Py_None) {
            add_names(names[i], room);
        }
    }
    lower_bytes(room, OF_NAME, 1);
    Score known = NO_SCORE;
    Words words = words_of(room);
    Py_ssize_t start, end;
    while (next_word(&words, &start, &end)) {
        Py_ssize_t place = lexicon_find(lexicon, hash_of(room->bytes + start, end - start));
        if (place >= 0 && lexicon->stamps[place] != stamp) {
            lexicon->stamps[place] = stamp;
            know(&known, lexicon_score(lexicon, place));
        }
    }
    *summary = summary_of(&known);
    return 0;
}

/* Pages of a site, and elements of a page, have the same names: what these score is remembered, each in
 * the one place that is its own, where another may come. */
int summary_of_names(Lexicon *lexicon, PyObject *const names[2], const int64_t key[2], Lowered *room,
                     Summary *summary) {
    enum { PLACES = 1024 };
    if (lexicon->remembered == NULL) {
        /* Of no names, which score nothing. */
        lexicon->remembered = PyMem_Calloc(PLACES, sizeof(CachedSummary));
        if (lexicon->remembered == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    uint64_t hash = mixed((uint64_t)key[0] ^ hash_secret[0], (uint64_t)key[1] ^ hash_secret[1]);
    CachedSummary *known = lexicon->remembered + hash % PLACES;
    if (known->key[0] != key[0] || known->key[1] != key[1]) {
        if (read_names(lexicon, names, room, &known->summary) < 0) {
            known->key[0] = known->key[1] = 0;
            known->summary = (Summary){0, 0, 0};
            return -1;
        }
        known->key[0] = key[0];
        known->key[1] = key[1];
    }
    *summary = known->summary;
    return 0;
}
