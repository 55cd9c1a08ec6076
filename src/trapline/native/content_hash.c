/* The normal form of a text that is hashed: store/content_hash.py. */
#include "native.h"

/* Letters of which it is known that no other spelling of theirs is the normal one, and that they join
 * with no letter before them: Latin, Greek, Cyrillic, Chinese, Japanese and Korean ones, and signs. */
static int is_composed(Py_UCS4 letter) {
    static const Py_UCS2 RANGES[][2] = {
        {0x2002, 0x20cf}, {0x4e00, 0x9fff}, {0x0388, 0x0482}, {0x3000, 0x3029}, {0x3041, 0x3096},
        {0x30a1, 0x30fe}, {0xac00, 0xd7a3}, {0xff01, 0xffef}, {0x2190, 0x2328}, {0x232b, 0x2adb},
        {0x048a, 0x052f},
    };
    if (letter < 0x300) {
        return 1;
    }
    for (size_t i = 0; i < sizeof(RANGES) / sizeof(RANGES[0]); i++) {
        if (letter >= RANGES[i][0] && letter <= RANGES[i][1]) {
            return 1;
        }
    }
    return 0;
}

static char *put_letter(char *at, Py_UCS4 letter) {
    if (letter < 0x80) {
        *at++ = (char)letter;
    } else if (letter < 0x800) {
        *at++ = (char)(0xc0 | letter >> 6);
        *at++ = (char)(0x80 | (letter & 0x3f));
    } else {
        *at++ = (char)(0xe0 | letter >> 12);
        *at++ = (char)(0x80 | (letter >> 6 & 0x3f));
        *at++ = (char)(0x80 | (letter & 0x3f));
    }
    return at;
}

#ifdef __SSE2__
#include <emmintrin.h>

enum { AT_ONCE = 16 };

/* So many letters as bytes; those that do not fit into seven bits are 0 or less. */
FOR_EACH_WIDTH __m128i letters_at(int kind, const void *data, Py_ssize_t at) {
    if (kind == PyUnicode_1BYTE_KIND) {
        return _mm_loadu_si128((const __m128i *)((const Py_UCS1 *)data + at));
    }
    const __m128i *wide = (const __m128i *)((const Py_UCS2 *)data + at);
    __m128i one = _mm_loadu_si128(wide), other = _mm_loadu_si128(wide + 1);
    /* Larger ones become 255, and those that look as if below zero 0. */
    return _mm_packus_epi16(one, other);
}

/* Writes the letters at a place, if they are words of ASCII with single blanks between, of which the
 * first may come at once and the last stays for the next time; returns how many were written. */
FOR_EACH_WIDTH int squeeze_run(int kind, const void *data, Py_ssize_t at, char *to) {
    const __m128i blank = _mm_set1_epi8(' ');
    __m128i letters = letters_at(kind, data, at);
    __m128i ends = _mm_cmpeq_epi8(letters, _mm_set1_epi8('\n'));
    letters = _mm_or_si128(_mm_andnot_si128(ends, letters), _mm_and_si128(ends, blank));
    unsigned blanks = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(letters, blank));
    /* What is beyond ASCII is below zero here. */
    if (_mm_movemask_epi8(_mm_cmplt_epi8(letters, blank)) || blanks & blanks << 1) {
        return 0;
    }
    _mm_storeu_si128((__m128i *)to, letters);
    return AT_ONCE - (int)(blanks >> (AT_ONCE - 1));
}
#endif

/* Writes words with one space between them; returns the end, or NULL at a letter that is to be
 * composed first. */
FOR_EACH_WIDTH char *squeeze_width(int kind, const void *data, Py_ssize_t size, char *start) {
    char *at = start;
    int spaced = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
#ifdef __SSE2__
        /* As long as the last one written is no blank, and none is to come. */
        while (kind != PyUnicode_4BYTE_KIND && !spaced && at > start && size - i > AT_ONCE) {
            int written = squeeze_run(kind, data, i, at);
            if (written == 0) {
                break;
            }
            at += written;
            i += written;
        }
#endif
        Py_UCS4 letter = PyUnicode_READ(kind, data, i);
        /* Of most letters this is known at once. */
        if (!(letter > ' ' && letter < 0x7f) && Py_UNICODE_ISSPACE(letter)) {
            spaced = at > start;
            continue;
        }
        if (!is_composed(letter)) {
            return NULL;
        }
        if (spaced) {
            *at++ = ' ';
            spaced = 0;
        }
        at = put_letter(at, letter);
    }
    return at;
}

static char *squeeze(int kind, const void *data, Py_ssize_t size, char *start) {
    switch (kind) {
    case PyUnicode_1BYTE_KIND:
        return squeeze_width(PyUnicode_1BYTE_KIND, data, size, start);
    case PyUnicode_2BYTE_KIND:
        return squeeze_width(PyUnicode_2BYTE_KIND, data, size, start);
    default:
        return squeeze_width(PyUnicode_4BYTE_KIND, data, size, start);
    }
}

PyObject *content_hash_squeezed(PyObject *module, PyObject *string) {
    (void)module;
    if (!PyUnicode_Check(string)) {
        PyErr_SetString(PyExc_TypeError, "a text is a string");
        return NULL;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(string);
    int kind = PyUnicode_KIND(string);
    /* Three bytes hold all that is composed; a space takes the room of one that was left out. */
    Py_ssize_t widest = PyUnicode_IS_ASCII(string) ? 1 : kind == PyUnicode_1BYTE_KIND ? 2 : 3;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, widest * size);
    if (bytes == NULL) {
        return NULL;
    }
    char *start = PyBytes_AS_STRING(bytes);
    char *end = squeeze(kind, PyUnicode_DATA(string), size, start);
    if (end == NULL) {
        Py_DECREF(bytes);
        Py_RETURN_NONE;
    }
    _PyBytes_Resize(&bytes, end - start);
    return bytes;
}
