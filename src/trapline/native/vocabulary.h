/* Words of texts, of headings, of class names, and what they score. */
#ifndef TRAPLINE_WORDS_H
#define TRAPLINE_WORDS_H

#include "native.h"
#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* How many bytes after its start may be read of a word that is hashed, however short. */
enum { HASH_SLACK = 16, CHUNK = 64 };
/* A lexicon's words have fewer bytes. */
enum { LONGEST = 1024 };

/* A text in lower case, as UTF-8, and a bit for each of its bytes: whether it is one of a word's. After
 * its end none is. */
typedef struct {
    uint8_t *bytes;
    uint64_t *inside;
    Py_ssize_t size, room;
} Lowered;

/* Arena for so many bytes, and for what is read and written past them. */
int lowered_open(Lowered *lowered, Py_ssize_t size);
void lowered_close(Lowered *lowered);
/* The text as it is; `inside` is not made. */
int written_out(PyObject *text, Lowered *lowered);
/* Some letters of a text as UTF-8; how many bytes they are. */
Py_ssize_t write_part(PyObject *text, Py_ssize_t from, Py_ssize_t to, uint8_t *bytes);

typedef struct {
    float mean, low, high;
} Summary;

/* What the names of an element score, under the hashes of its class and of its id. */
typedef struct {
    int64_t key[2];
    Summary summary;
} CachedSummary;

/* What words score together: how many they are, their sum, and the lowest and the highest of them. That of
 * one word has all of these, and that of none is such that it changes nothing: whether a word is known
 * cannot be foretold, and so nothing should hang on it. */
typedef struct {
    double sum, low, high;
    int64_t count;
} Score;

#define NO_SCORE ((Score){0, INFINITY, -INFINITY, 0})

/* Words and their scores. A slot has the first bits of a word's hash and, from 2, the number of its
 * score (1 for none): all that is read to learn that a word is not there, and nearly all to learn what it scores. */
typedef struct {
    uint64_t *slots;
    int64_t *stamps;
    Score *scores;
    CachedSummary *remembered;
    size_t mask;
} Lexicon;

Lexicon *lexicon_of(PyObject *capsule);
int lexicon_open(Lexicon *lexicon, Py_ssize_t words);
void lexicon_close(Lexicon *lexicon);
/* Adds a word without a score. */
int lexicon_add(Lexicon *lexicon, PyObject *word, Lowered *room);

/* The hashes of words that are to be looked up. */
typedef struct {
    uint64_t hashes[MAX_PROSE];
    int count;
} WordHashes;

/* The words of a short text, or of the beginning of a long one. Where a lexicon has them is fetched: its
 * table is larger than what is near, and what is looked up after something else was done is there. */
int seek_text(const Lexicon *lexicon, PyObject *text, Lowered *room, WordHashes *sought);
int seek_prose(const Lexicon *lexicon, PyObject *text, Lowered *room, WordHashes *sought);
/* What words score, each once or as often as it is there. */
Summary summary_of_few(const Lexicon *lexicon, const WordHashes *sought);
Summary summary_of_all(const Lexicon *lexicon, const WordHashes *sought);
/* What the names of an element score: its class and its id, or None, and their hashes. */
int summary_of_names(Lexicon *lexicon, PyObject *const names[2], const int64_t key[2], Lowered *room,
                     Summary *summary);

/* The first byte is the lowest one on every machine; compilers make one load of it. */
static inline uint64_t eight_bytes(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
           (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

static inline uint64_t four_bytes(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24;
}

extern uint64_t hash_secret[2];

static inline uint64_t mixed(uint64_t one, uint64_t other) {
    unsigned __int128 product = (unsigned __int128)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The bits of so many bytes of eight, from none to sixteen: of the first eight, then of the next. */
#define NO_BYTES 0, 0, 0, 0, 0, 0, 0, 0
#define SOME_BYTES                                                                                  \
    0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX
#define ALL_BYTES                                                                                   \
    UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX
static const uint64_t FIRST_BYTES[17] = {0, SOME_BYTES, ALL_BYTES};
static const uint64_t NEXT_BYTES[17] = {0, NO_BYTES, SOME_BYTES};

/* `HASH_SLACK` bytes from the start of the last whole sixteen are read. */
static inline uint64_t hash_of(const uint8_t *word, Py_ssize_t size) {
    uint64_t hash = hash_secret[0] ^ (uint64_t)size;
    for (; size > 16; word += 16, size -= 16) {
        hash = mixed(eight_bytes(word) ^ hash, eight_bytes(word + 8) ^ hash_secret[1]);
    }
    uint64_t first = eight_bytes(word) & FIRST_BYTES[size], next = eight_bytes(word + 8) & NEXT_BYTES[size];
    hash = mixed(first ^ hash, next ^ hash_secret[1]);
    return mixed(hash, hash_secret[1]);
}

enum { SCORE_BITS = 20 };
static const uint64_t LEXICON_SCORE = ((uint64_t)1 << SCORE_BITS) - 1;

/* Where a word stands, or the free place where it would. The place is of the hash's last bits, which
 * the slot does not have: two words are taken for one where some sixty bits of them agree, which
 * does not happen by chance, nor by intent to who does not know the secret. */
static inline size_t lexicon_place(const Lexicon *lexicon, uint64_t hash) {
    size_t place = hash & lexicon->mask;
    while (lexicon->slots[place] != 0 && (lexicon->slots[place] ^ hash) >> SCORE_BITS != 0) {
        place = (place + 1) & lexicon->mask;
    }
    return place;
}

/* Where a word stands; -1 if it does not. */
static inline Py_ssize_t lexicon_find(const Lexicon *lexicon, uint64_t hash) {
    size_t place = lexicon_place(lexicon, hash);
    return lexicon->slots[place] ? (Py_ssize_t)place : -1;
}

/* What the word at a place scores: nothing where there is none. */
static inline const Score *lexicon_score(const Lexicon *lexicon, size_t place) {
    return lexicon->scores + (lexicon->slots[place] & LEXICON_SCORE);
}

typedef uint8_t Sixteen __attribute__((vector_size(16), aligned(1)));

/* Sixteen bytes that are all ones or all zeros as bits. */
static inline uint64_t sixteen_bits(Sixteen flags) {
#if defined(__SSE2__)
    return (uint64_t)_mm_movemask_epi8((__m128i)flags);
#else
    uint8_t ones[16];
    flags &= 1;
    memcpy(ones, &flags, sizeof(ones));
    return eight_bytes(ones) * 0x0102040810204080 >> 56 |
           eight_bytes(ones + 8) * 0x0102040810204080 >> 56 << 8;
#endif
}

/* One word after another: where bytes begin to be inside of one, and where they cease. */
typedef struct {
    const uint64_t *inside;
    Py_ssize_t size, next;
    uint64_t changes, carried;
} Words;

static inline Words words_of(const Lowered *lowered) {
    return (Words){lowered->inside, lowered->size, 0, 0, 0};
}

/* Where the next word begins or ends; -1 if there is none. After the end of a text nothing is
 * inside, so that all that begin end. */
static inline Py_ssize_t next_change(Words *words) {
    while (words->changes == 0) {
        if (words->next > words->size) {
            return -1;
        }
        uint64_t inside = words->inside[words->next / CHUNK];
        words->changes = inside ^ (inside << 1 | words->carried);
        words->carried = inside >> (CHUNK - 1);
        words->next += CHUNK;
    }
    Py_ssize_t place = words->next - CHUNK + __builtin_ctzll(words->changes);
    words->changes &= words->changes - 1;
    return place;
}

static inline int next_word(Words *words, Py_ssize_t *start, Py_ssize_t *end) {
    *start = next_change(words);
    *end = *start < 0 ? -1 : next_change(words);
    return *start >= 0;
}

#endif
