/* What attributes a page's source can hold: the quick look of marks.py.
 *
 * Every attribute with a value has an equals sign, and what stands around it says its name and its
 * value, whatever the tokenizer makes of the rest. So all such signs are looked at, those in scripts
 * and texts too: more may be found than the tree has, never less.
 */
#include "native.h"
#include <string.h>

#define CAPSULE "trapline.extract.Seeker"
#define FOR_EACH_WIDTH static inline __attribute__((always_inline))

enum { MAX_WORD = 16, MAX_WORDS = 16, MAX_SOUGHT = 16, MAX_COUNTS = 4, LETTERS = 256 };
/* Beside the numbers of words: a quoted value may end with this letter, or have a reference in it. */
enum { ENDS = 1 << MAX_WORDS };
/* Values without quotes can overlap, `a=a=a=`: of each no more than this is read. */
enum { LONGEST_BARE = 256 };

/* Its letters are told eight at a time too, without regard to case: `halves`, where `known` has bits. */
typedef struct {
    uint8_t letters[MAX_WORD];
    uint64_t halves[2], known[2];
    int size, whole;
    uint32_t flag;
} Word;

/* By either half of a letter's bits, which of eight sets of words may have it somewhere. */
typedef struct {
    uint8_t low[16], high[16];
} Sets;

/* An attribute and the words that its value may hold; by letter those that have it first or second. */
typedef struct {
    Word name;
    Word words[MAX_WORDS];
    int count;
    uint32_t flags;
    uint32_t first[LETTERS], second[LETTERS];
    /* Whether letters can be looked up sixteen at a time, in these. */
    int quick;
    Sets first_sets, second_sets;
} Attribute;

/* `ending` has the attributes whose names end with a letter; `lone` is the attribute that counts
 * without a value too, and `pair` where its middle is. `counts` are the flags of several bits, which
 * count values. */
typedef struct {
    Attribute attributes[MAX_SOUGHT];
    int count;
    uint32_t counts[MAX_COUNTS];
    int counted;
    uint32_t ending[LETTERS];
    Word lone;
    int pair;
} Seeker;

/* Where a value with quotes and one without may end, or have a reference in it. */
static const uint8_t quoted_stops[] = {'"', '\'', '&'};
static const uint8_t bare_stops[LETTERS] = {
    [' '] = 1, ['\n'] = 1, ['\t'] = 1, ['\r'] = 1, ['\f'] = 1, ['>'] = 1, ['&'] = 1};

typedef struct {
    const void *data;
    Py_ssize_t size;
} Source;

FOR_EACH_WIDTH Py_UCS4 letter_at(int kind, Source text, Py_ssize_t at) {
    Py_UCS4 letter = PyUnicode_READ(kind, text.data, at);
    return letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter;
}

static inline int is_space(Py_UCS4 letter) {
    return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r' || letter == '\f';
}

static inline int in_name(Py_UCS4 letter) {
    return (letter >= 'a' && letter <= 'z') || letter == '-';
}

/* A letter, or 0 for one that no table has. */
FOR_EACH_WIDTH Py_UCS4 listed_at(int kind, Source text, Py_ssize_t at) {
    Py_UCS4 letter = PyUnicode_READ(kind, text.data, at);
    return kind == PyUnicode_1BYTE_KIND || letter < LETTERS ? letter : 0;
}

/* The first of eight bytes is the lowest of a word. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a machine of small ends is needed");

/* Where it differs from the half of a word; a few signs are taken for others, which does no harm. */
static inline uint64_t differs(const uint8_t *text, const Word *word, int half) {
    uint64_t letters;
    memcpy(&letters, text + half * (int)sizeof(letters), sizeof(letters));
    return ((letters | 0x2020202020202020) ^ word->halves[half]) & word->known[half];
}

FOR_EACH_WIDTH int stands_at(int kind, Source text, Py_ssize_t at, const Word *word) {
    if (kind == PyUnicode_1BYTE_KIND && text.size - at >= MAX_WORD) {
        const uint8_t *here = (const uint8_t *)text.data + at;
        return (differs(here, word, 0) | differs(here, word, 1)) == 0;
    }
    if (text.size - at < word->size) {
        return 0;
    }
    for (int i = 0; i < word->size; i++) {
        if (letter_at(kind, text, at + i) != word->letters[i]) {
            return 0;
        }
    }
    return 1;
}

/* Whether what begins with `&` may be a letter or a slash: no letter has a name. */
FOR_EACH_WIDTH int is_reference(int kind, Source text, Py_ssize_t at) {
    static const uint8_t slash[] = {'s', 'o', 'l'};
    int left = text.size - at > 3, named = left;
    for (int i = 0; left && i < 3; i++) {
        named &= letter_at(kind, text, at + 1 + i) == slash[i];
    }
    return named || (text.size - at > 1 && PyUnicode_READ(kind, text.data, at + 1) == '#');
}

/* What the words say that stand at a place of a value, of those that `starting` has the numbers of. */
FOR_EACH_WIDTH uint32_t words_at(int kind, Source text, Py_ssize_t at, int first, unsigned starting,
                                 const Attribute *sought) {
    uint32_t found = 0;
    for (; starting; starting &= starting - 1) {
        const Word *word = sought->words + __builtin_ctz(starting);
        if (!stands_at(kind, text, at, word)) {
            continue;
        }
        Py_ssize_t end = at + word->size;
        Py_UCS4 after = end < text.size ? PyUnicode_READ(kind, text.data, end) : ' ';
        int ends = is_space(after) || after == '"' || after == '\'' || after == '>' || after == '&';
        found |= !word->whole || (first && ends) ? word->flag : 0;
    }
    return found;
}

/* A value between quotes that is being read. */
typedef struct {
    Py_ssize_t from, at;
    Py_UCS4 quote;
    uint32_t found;
} Quoted;

/* Looks at the letter of a value where it is, and the next one; whether the value ends there. */
FOR_EACH_WIDTH int ends_at(int kind, Source text, const Attribute *sought, Quoted *value) {
    Py_ssize_t at = value->at;
    Py_UCS4 letter = listed_at(kind, text, at);
    Py_UCS4 next = at + 1 < text.size ? listed_at(kind, text, at + 1) : 0;
    unsigned starting = sought->first[letter] & (sought->second[next] | ENDS);
    if (!starting) {
        return 0;
    }
    value->found |= words_at(kind, text, at, at == value->from, starting & ~ENDS, sought);
    if (letter == '&' && is_reference(kind, text, at)) {
        value->found = sought->flags;
        return 1;
    }
    return letter == value->quote;
}

#if defined(__x86_64__)
#include <tmmintrin.h>

#define SHUFFLES __attribute__((target("ssse3")))

static int has_shuffles(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("ssse3") != 0;
}

/* For each of sixteen letters the sets of words that may have it. */
SHUFFLES static inline __m128i sets_of(const Sets *sets, __m128i letters) {
    const __m128i half = _mm_set1_epi8(0x0f);
    __m128i low = _mm_and_si128(letters, half), high = _mm_and_si128(_mm_srli_epi16(letters, 4), half);
    return _mm_and_si128(_mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)sets->low), low),
                         _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)sets->high), high));
}

/* Which of sixteen letters may begin a word or a reference, or end the value, a bit for each. */
SHUFFLES static inline unsigned looked_at(const uint8_t *text, const Attribute *sought, char quote) {
    __m128i here = _mm_loadu_si128((const __m128i *)text);
    __m128i next = _mm_loadu_si128((const __m128i *)(text + 1));
    __m128i words = _mm_and_si128(sets_of(&sought->first_sets, here), sets_of(&sought->second_sets, next));
    __m128i none = _mm_cmpeq_epi8(words, _mm_setzero_si128());
    __m128i stops = _mm_or_si128(_mm_cmpeq_epi8(here, _mm_set1_epi8(quote)),
                                 _mm_cmpeq_epi8(here, _mm_set1_epi8('&')));
    return (unsigned)_mm_movemask_epi8(_mm_andnot_si128(stops, none)) ^ 0xffff;
}

/* Reads a value as far as there are sixteen letters and one more; whether it ends there. */
SHUFFLES static int seek_quickly(Source text, const Attribute *sought, Quoted *value) {
    for (Py_ssize_t at = value->at; text.size - at > 16; at += 16) {
        const uint8_t *letters = (const uint8_t *)text.data + at;
        for (unsigned some = looked_at(letters, sought, (char)value->quote); some; some &= some - 1) {
            value->at = at + __builtin_ctz(some);
            if (ends_at(PyUnicode_1BYTE_KIND, text, sought, value)) {
                return 1;
            }
        }
        value->at = at + 16;
    }
    return 0;
}
#else
static int has_shuffles(void) {
    return 0;
}

static int seek_quickly(Source text, const Attribute *sought, Quoted *value) {
    (void)text, (void)sought, (void)value;
    return 0;
}
#endif

/* What a value between quotes holds. */
FOR_EACH_WIDTH uint32_t seek_quoted(int kind, Source text, Py_ssize_t from, Py_UCS4 quote,
                                    const Attribute *sought) {
    Quoted value = {from, from, quote, 0};
    if (kind == PyUnicode_1BYTE_KIND && sought->quick && seek_quickly(text, sought, &value)) {
        return value.found;
    }
    while (value.at < text.size && !ends_at(kind, text, sought, &value)) {
        value.at++;
    }
    return value.found;
}

/* What a value holds. Words have no quotes, spaces or brackets, so none stands across its end. */
FOR_EACH_WIDTH uint32_t seek_words(int kind, Source text, Py_ssize_t from, const Attribute *sought) {
    while (from < text.size && is_space(PyUnicode_READ(kind, text.data, from))) {
        from++;
    }
    Py_UCS4 quote = from < text.size ? PyUnicode_READ(kind, text.data, from) : 0;
    if (quote == '"' || quote == '\'') {
        return seek_quoted(kind, text, from + 1, quote, sought);
    }
    Py_ssize_t most = text.size - from > LONGEST_BARE ? from + LONGEST_BARE : text.size;
    uint32_t found = 0;
    Py_UCS4 letter = from < most ? listed_at(kind, text, from) : 0;
    for (Py_ssize_t at = from; at < most; at++) {
        Py_UCS4 next = at + 1 < text.size ? listed_at(kind, text, at + 1) : 0;
        unsigned starting = sought->first[letter] & sought->second[next];
        if (starting) {
            found |= words_at(kind, text, at, at == from, starting, sought);
        }
        if (bare_stops[letter] && (letter != '&' || is_reference(kind, text, at))) {
            return letter == '&' ? sought->flags : found;
        }
        letter = next;
    }
    return most < text.size ? sought->flags : found;
}

/* What is found with what a value says; what is counted goes as far as its bits do. */
static inline uint32_t with_value(const Seeker *seeker, uint32_t found, uint32_t said) {
    for (int i = 0; said && i < seeker->counted; i++) {
        uint32_t bits = seeker->counts[i];
        if (said & bits) {
            found += (found & bits) != bits ? bits & -bits : 0;
            said &= ~bits;
        }
    }
    return found | said;
}

/* What the attribute whose equals sign stands somewhere adds to what is found. */
FOR_EACH_WIDTH uint32_t seek_around(int kind, Source text, Py_ssize_t sign, const Seeker *seeker,
                                    uint32_t found) {
    Py_ssize_t end = sign;
    while (end > 0 && is_space(PyUnicode_READ(kind, text.data, end - 1))) {
        end--;
    }
    unsigned ending = end > 0 ? seeker->ending[listed_at(kind, text, end - 1)] : 0;
    for (; ending; ending &= ending - 1) {
        const Attribute *sought = seeker->attributes + __builtin_ctz(ending);
        Py_ssize_t start = end - sought->name.size;
        if (start >= 0 && (found & sought->flags) != sought->flags &&
            stands_at(kind, text, start, &sought->name) &&
            (start == 0 || !in_name(letter_at(kind, text, start - 1)))) {
            found = with_value(seeker, found, seek_words(kind, text, sign + 1, sought));
        }
    }
    return found;
}

/* Whether a name starts somewhere and stands by itself. */
FOR_EACH_WIDTH int is_lone(int kind, Source text, Py_ssize_t start, const Word *name) {
    if (start < 0 || !stands_at(kind, text, start, name)) {
        return 0;
    }
    Py_ssize_t end = start + name->size;
    Py_UCS4 before = start ? PyUnicode_READ(kind, text.data, start - 1) : ' ';
    Py_UCS4 after = end < text.size ? PyUnicode_READ(kind, text.data, end) : ' ';
    return (is_space(before) || before == '/' || before == '"' || before == '\'') &&
           (is_space(after) || after == '/' || after == '>' || after == '=');
}

/* What stands around one letter adds to what is found, if the letter is one to look around. */
FOR_EACH_WIDTH uint32_t seek_at(int kind, Source text, Py_ssize_t at, const Seeker *seeker,
                                uint32_t found) {
    if (PyUnicode_READ(kind, text.data, at) == '=') {
        return seek_around(kind, text, at, seeker, found);
    }
    int lone = !(found & seeker->lone.flag) && is_lone(kind, text, at - seeker->pair, &seeker->lone);
    return found | (lone ? seeker->lone.flag : 0);
}

enum { RUN = 64 };

#define NEAR(name, Letter)                                                                          \
    static void name(uint8_t *near, const Letter *text, const uint8_t *pair) {                      \
        Letter sign = '=', one = pair[0], other = pair[1], small = 0x20;                            \
        for (int i = 0; i < RUN; i++) {                                                             \
            Letter here = text[i] | small, next = text[i + 1] | small;                              \
            near[i] = (text[i] == sign) | ((here == one) & (next == other));                        \
        }                                                                                           \
    }

#ifdef __SSE2__
#include <emmintrin.h>

/* Which of so many letters are near something, a bit for each. */
static inline uint64_t near_bits(const Py_UCS1 *text, const uint8_t *pair) {
    const __m128i sign = _mm_set1_epi8('='), small = _mm_set1_epi8(0x20);
    const __m128i one = _mm_set1_epi8((char)pair[0]), other = _mm_set1_epi8((char)pair[1]);
    uint64_t bits = 0;
    for (int i = 0; i < RUN; i += 16) {
        __m128i here = _mm_loadu_si128((const __m128i *)(text + i));
        __m128i next = _mm_loadu_si128((const __m128i *)(text + i + 1));
        __m128i first = _mm_cmpeq_epi8(_mm_or_si128(here, small), one);
        __m128i second = _mm_cmpeq_epi8(_mm_or_si128(next, small), other);
        __m128i near = _mm_or_si128(_mm_cmpeq_epi8(here, sign), _mm_and_si128(first, second));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(near) << i;
    }
    return bits;
}
#else
NEAR(near_1, Py_UCS1)

static inline uint64_t near_bits(const Py_UCS1 *text, const uint8_t *pair) {
    uint8_t near[RUN];
    uint64_t bits = 0;
    near_1(near, text, pair);
    for (int i = 0; i < RUN; i++) {
        bits |= (uint64_t)near[i] << i;
    }
    return bits;
}
#endif

NEAR(near_2, Py_UCS2)
NEAR(near_4, Py_UCS4)

/* Looks around equals signs, and where two letters from the middle of the lone name stand. Runs of
 * letters are compared at once, which compilers make a few instructions of. */
FOR_EACH_WIDTH uint32_t seek_all(int kind, Source text, const Seeker *seeker) {
    enum { STEP = sizeof(uint64_t) };
    uint32_t found = 0;
    Py_ssize_t run = 0;
    for (; text.size - run > RUN; run += RUN) {
        const uint8_t *pair = seeker->lone.letters + seeker->pair;
        if (kind == PyUnicode_1BYTE_KIND) {
            uint64_t any = near_bits((const Py_UCS1 *)text.data + run, pair);
            for (; any; any &= any - 1) {
                found = seek_at(kind, text, run + __builtin_ctzll(any), seeker, found);
            }
            continue;
        }
        uint8_t near[RUN];
        if (kind == PyUnicode_2BYTE_KIND) {
            near_2(near, (const Py_UCS2 *)text.data + run, pair);
        } else {
            near_4(near, (const Py_UCS4 *)text.data + run, pair);
        }
        for (int step = 0; step < RUN; step += STEP) {
            uint64_t any;
            memcpy(&any, near + step, STEP);
            for (; any; any &= any - 1) {
                Py_ssize_t at = run + step + (__builtin_ctzll(any) >> 3);
                found = seek_at(kind, text, at, seeker, found);
            }
        }
    }
    for (; run < text.size; run++) {
        found = seek_at(kind, text, run, seeker, found);
    }
    return found;
}

PyObject *native_seek(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *capsule, *given;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &given)) {
        return NULL;
    }
    if (!PyUnicode_Check(given) && !PyBytes_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a source is text or bytes");
        return NULL;
    }
    const Seeker *seeker = PyCapsule_GetPointer(capsule, CAPSULE);
    if (seeker == NULL) {
        return NULL;
    }
    if (PyBytes_Check(given)) {
        /* Of UTF-8: no letter beyond ASCII has a byte of it. */
        Source bytes = {PyBytes_AS_STRING(given), PyBytes_GET_SIZE(given)};
        return PyLong_FromUnsignedLong(seek_all(PyUnicode_1BYTE_KIND, bytes, seeker));
    }
    Source text = {PyUnicode_DATA(given), PyUnicode_GET_LENGTH(given)};
    switch (PyUnicode_KIND(given)) {
    case PyUnicode_1BYTE_KIND:
        return PyLong_FromUnsignedLong(seek_all(PyUnicode_1BYTE_KIND, text, seeker));
    case PyUnicode_2BYTE_KIND:
        return PyLong_FromUnsignedLong(seek_all(PyUnicode_2BYTE_KIND, text, seeker));
    default:
        return PyLong_FromUnsignedLong(seek_all(PyUnicode_4BYTE_KIND, text, seeker));
    }
}

/* Only letters and slashes: other signs can be written as references of many names. */
static int take_word(PyObject *given, Word *word) {
    Py_ssize_t size = PyUnicode_Check(given) ? PyUnicode_GET_LENGTH(given) : 0;
    int plain = size > 1 && size < MAX_WORD && PyUnicode_IS_ASCII(given);
    for (Py_ssize_t i = 0; plain && i < size; i++) {
        Py_UCS4 letter = PyUnicode_READ_CHAR(given, i);
        plain = in_name(letter) || letter == '/';
        word->letters[i] = (uint8_t)letter;
        word->halves[i / 8] |= (uint64_t)letter << i % 8 * 8;
        word->known[i / 8] |= (uint64_t)0xff << i % 8 * 8;
    }
    if (!plain) {
        PyErr_SetString(PyExc_ValueError, "a word has a few small letters");
        return -1;
    }
    word->size = (int)size;
    return 0;
}

/* Marks a letter of either case. */
static void mark_letter(uint32_t table[LETTERS], uint8_t letter, uint32_t number) {
    table[letter] |= number;
    table[letter >= 'a' ? letter & ~0x20 : letter] |= number;
}

static void mark_set(Sets *sets, uint8_t letter, uint8_t set) {
    uint8_t other = letter >= 'a' ? letter & ~0x20 : letter;
    sets->low[letter & 0xf] |= set;
    sets->high[letter >> 4] |= set;
    sets->high[other >> 4] |= set;
}

/* The attribute of a name, which is added if it is not there; NULL if there is no room. */
static Attribute *attribute_of(Seeker *seeker, const Word *name) {
    for (int i = 0; i < seeker->count; i++) {
        Attribute *known = seeker->attributes + i;
        if (known->name.size == name->size &&
            memcmp(known->name.letters, name->letters, (size_t)name->size) == 0) {
            return known;
        }
    }
    if (seeker->count == MAX_SOUGHT) {
        return NULL;
    }
    int number = seeker->count++;
    Attribute *added = seeker->attributes + number;
    added->name = *name;
    added->quick = has_shuffles();
    for (size_t i = 0; i < sizeof(quoted_stops); i++) {
        added->first[quoted_stops[i]] = ENDS;
    }
    mark_letter(seeker->ending, name->letters[name->size - 1], 1u << number);
    return added;
}

static int take_rule(Seeker *seeker, PyObject *rule) {
    PyObject *name, *words;
    int whole;
    unsigned int flag;
    if (!PyTuple_Check(rule)) {
        PyErr_SetString(PyExc_TypeError, "a rule is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(rule, "OO!pI", &name, &PyTuple_Type, &words, &whole, &flag)) {
        return -1;
    }
    Word word = {.flag = flag};
    if (take_word(name, &word) < 0) {
        return -1;
    }
    if (PyTuple_GET_SIZE(words) == 0 && seeker->lone.size == 0) {
        seeker->lone = word;
        seeker->pair = (word.size - 1) / 2;
        return 0;
    }
    Attribute *sought = attribute_of(seeker, &word);
    if (sought == NULL || PyTuple_GET_SIZE(words) > MAX_WORDS - sought->count) {
        PyErr_SetString(PyExc_ValueError, "more is sought than there is room for");
        return -1;
    }
    sought->flags |= flag;
    if (flag & (flag - 1)) {
        if (seeker->counted == MAX_COUNTS) {
            PyErr_SetString(PyExc_ValueError, "more is counted than there is room for");
            return -1;
        }
        seeker->counts[seeker->counted++] = flag;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(words); i++) {
        Word *part = sought->words + sought->count;
        if (take_word(PyTuple_GET_ITEM(words, i), part) < 0) {
            return -1;
        }
        part->flag = flag;
        part->whole = whole;
        /* Words that begin alike are in one set: fewer pairs are taken for theirs. */
        uint8_t set = (uint8_t)(1 << part->letters[0] % 8);
        uint32_t number = 1u << sought->count++;
        mark_letter(sought->first, part->letters[0], number);
        mark_letter(sought->second, part->letters[1], number);
        mark_set(&sought->first_sets, part->letters[0], set);
        mark_set(&sought->second_sets, part->letters[1], set);
    }
    return 0;
}

static void seeker_close(PyObject *capsule) {
    PyMem_Free(PyCapsule_GetPointer(capsule, CAPSULE));
}

PyObject *native_seeker(PyObject *module, PyObject *rules) {
    (void)module;
    Seeker *seeker = PyMem_Calloc(1, sizeof(Seeker));
    PyObject *capsule = seeker ? PyCapsule_New(seeker, CAPSULE, seeker_close) : PyErr_NoMemory();
    if (capsule == NULL) {
        PyMem_Free(seeker);
        return NULL;
    }
    int failed = !PyTuple_Check(rules);
    if (failed) {
        PyErr_SetString(PyExc_TypeError, "rules are a tuple");
    }
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(rules); i++) {
        failed = take_rule(seeker, PyTuple_GET_ITEM(rules, i)) < 0;
    }
    if (failed) {
        Py_CLEAR(capsule);
    }
    return capsule;
}
