/* Made for each width of letters; see tidy.c. */

/* Letters that are looked at together. */
typedef LETTER NAMED(Lanes) __attribute__((vector_size(16)));
typedef __typeof__((NAMED(Lanes)){0} == (NAMED(Lanes)){0}) NAMED(Flags);
#define LANES (16 / (Py_ssize_t)sizeof(LETTER))

static inline NAMED(Lanes) NAMED(lanes)(const LETTER *text) {
    NAMED(Lanes) some;
    memcpy(&some, text, sizeof(some));
    return some;
}

static inline int NAMED(any)(NAMED(Flags) flags) {
    uint64_t halves[2];
    memcpy(halves, &flags, sizeof(halves));
    return (halves[0] | halves[1]) != 0;
}

static int NAMED(begins)(const LETTER *text, Py_ssize_t at, Py_ssize_t size, const char *word) {
    for (; *word; word++, at++) {
        if (at >= size || text[at] != (LETTER)(uint8_t)*word) {
            return 0;
        }
    }
    return 1;
}

static Py_ssize_t NAMED(past)(const LETTER *text, Py_ssize_t at, Py_ssize_t size, LETTER letter) {
    while (at < size && text[at] == letter) {
        at++;
    }
    return at;
}

static Py_ssize_t NAMED(next)(const LETTER *text, Py_ssize_t at, Py_ssize_t size, LETTER letter) {
    while (at + LANES <= size && !NAMED(any)(NAMED(lanes)(text + at) == letter)) {
        at += LANES;
    }
    while (at < size && text[at] != letter) {
        at++;
    }
    return at;
}

/* Whether an emphasis may end somewhere. */
static int NAMED(has_tags)(const LETTER *text, Py_ssize_t size) {
    for (Py_ssize_t at = NAMED(next)(text, 0, size, '<'); at < size;
         at = NAMED(next)(text, at + 1, size, '<')) {
        if (at + 1 < size && text[at + 1] == '/' &&
            (NAMED(begins)(text, at, size, "</em>") || NAMED(begins)(text, at, size, "</strong>"))) {
            return 1;
        }
    }
    return 0;
}

/* Where emphasis that starts at `at` ends, if it can be written with marks; its words are set. */
static Py_ssize_t NAMED(emphasis)(const LETTER *text, Py_ssize_t at, Py_ssize_t size, Run *words) {
    int strong = NAMED(begins)(text, at, size, "<strong>");
    if ((!strong && !NAMED(begins)(text, at, size, "<em>")) ||
        (at > 0 && (text[at - 1] == '*' || is_word(text[at - 1])))) {
        return -1;
    }
    Py_ssize_t start = at + (strong ? 8 : 4), end = start;
    while (end < size && text[end] != '<' && text[end] != '>' && text[end] != '*' &&
           text[end] != '\n') {
        end++;
    }
    if (end == start || Py_UNICODE_ISSPACE(text[start]) || Py_UNICODE_ISSPACE(text[end - 1]) ||
        !NAMED(begins)(text, end, size, strong ? "</strong>" : "</em>")) {
        return -1;
    }
    Py_ssize_t after = end + (strong ? 9 : 5);
    if (after < size && !ends_emphasis(text[after])) {
        return -1;
    }
    *words = (Run){start, end - start};
    return after;
}

/* The end of the block of code that a run of marks opens at the start of a line. It is closed by a
 * line that starts with as many; if none does, by one with as many as the longest that follows. */
static Py_ssize_t NAMED(fenced)(const LETTER *text, Py_ssize_t at, Py_ssize_t size) {
    LETTER mark = text[at];
    Py_ssize_t wanted = NAMED(past)(text, at, size, mark) - at, longest = 0;
    Py_ssize_t first = NAMED(next)(text, at, size, '\n') + 1;
    for (int again = 0; wanted >= 3 && again < 2; again++) {
        for (Py_ssize_t line = first; line < size; line = NAMED(next)(text, line, size, '\n') + 1) {
            Py_ssize_t start = NAMED(past)(text, line, size, ' ');
            Py_ssize_t found = NAMED(past)(text, start, size, mark) - start;
            if (found >= wanted) {
                return start + wanted;
            }
            longest = found > longest ? found : longest;
        }
        wanted = longest;
    }
    return -1;
}

static int NAMED(find_runs)(const LETTER *text, Py_ssize_t size, Runs *runs) {
    for (Py_ssize_t at = NAMED(next)(text, 0, size, '`'); at < size;
         at = NAMED(next)(text, at, size, '`')) {
        Py_ssize_t end = NAMED(past)(text, at, size, '`');
        if (runs_add(runs, at, end - at) < 0) {
            return -1;
        }
        at = end;
    }
    return 0;
}

/* Where the code ends that a run of marks opens; -1 if it opens none. */
static Py_ssize_t NAMED(code_end)(const LETTER *text, Py_ssize_t at, Py_ssize_t size, Runs *runs) {
    Py_ssize_t before = at;
    while (before > 0 && text[before - 1] == ' ') {
        before--;
    }
    if (before == 0 || text[before - 1] == '\n') {
        Py_ssize_t end = NAMED(fenced)(text, at, size);
        if (end >= 0) {
            return end;
        }
    }
    while (runs->next < runs->count && runs->run[runs->next].start < at) {
        runs->next++;
    }
    if (runs->next == runs->count || text[at] != '`') {
        return -1;
    }
    Py_ssize_t wanted = runs->run[runs->next].size;
    if (runs->run[runs->next].start != at) {
        /* What is left of a run that closed a block: a single mark is as good as any other. */
        int single = wanted == 1 && text[at + 1] != '`';
        return single ? runs->run[runs->next].start + 1 : -1;
    }
    for (Py_ssize_t later = runs->next + 1; later < runs->count; later++) {
        if (runs->run[later].size == wanted) {
            return runs->run[later].start + wanted;
        }
    }
    return -1;
}

/* Where a tag or code may start. */
static Py_ssize_t NAMED(next_mark)(const LETTER *text, Py_ssize_t at, Py_ssize_t size) {
    for (; at + LANES <= size; at += LANES) {
        NAMED(Lanes) some = NAMED(lanes)(text + at);
        if (NAMED(any)((some == '<') | (some == '`') | (some == '~'))) {
            break;
        }
    }
    while (at < size && text[at] != '<' && text[at] != '`' && text[at] != '~') {
        at++;
    }
    return at;
}

/* The text with marks for the tags of emphasis outside code; it does not grow. */
static Py_ssize_t NAMED(with_marks)(const LETTER *text, Py_ssize_t size, LETTER *out) {
    Runs runs = {0};
    if (NAMED(find_runs)(text, size, &runs) < 0) {
        PyMem_Free(runs.run);
        return -1;
    }
    Py_ssize_t used = 0, written = 0, at = 0;
    for (at = NAMED(next_mark)(text, at, size); at < size; at = NAMED(next_mark)(text, at, size)) {
        LETTER letter = text[at];
        Run words;
        Py_ssize_t end = letter == '<' ? NAMED(emphasis)(text, at, size, &words) : -1;
        if (end >= 0) {
            Py_ssize_t marks = text[at + 1] == 's' ? 2 : 1;
            memcpy(out + used, text + written, (size_t)(at - written) * sizeof(LETTER));
            used += at - written;
            for (Py_ssize_t i = 0; i < marks; i++) {
                out[used++] = '*';
            }
            memcpy(out + used, text + words.start, (size_t)words.size * sizeof(LETTER));
            used += words.size;
            for (Py_ssize_t i = 0; i < marks; i++) {
                out[used++] = '*';
            }
            written = at = end;
        } else if (letter == '`' || NAMED(begins)(text, at, size, "~~~")) {
            end = NAMED(code_end)(text, at, size, &runs);
            at = end >= 0 ? end : NAMED(past)(text, at, size, letter);
        } else {
            at++;
        }
    }
    memcpy(out + used, text + written, (size_t)(size - written) * sizeof(LETTER));
    PyMem_Free(runs.run);
    return used + size - written;
}

/* Where a line ends, or a letter stands that is not seen. */
static Py_ssize_t NAMED(next_stop)(const LETTER *text, Py_ssize_t at, Py_ssize_t size) {
    for (; at + LANES <= size; at += LANES) {
        NAMED(Lanes) some = NAMED(lanes)(text + at);
        NAMED(Flags) found = (some == '\n') | (some == (LETTER)0xAD);
        if (sizeof(LETTER) > 1) {
            found |= (some == (LETTER)0x200B) | (some == (LETTER)0x2060) | (some == (LETTER)0xFEFF);
        }
        if (NAMED(any)(found)) {
            break;
        }
    }
    while (at < size && text[at] != '\n' && !is_invisible(text[at])) {
        at++;
    }
    return at;
}

/* Drops what is not seen, single spaces at the ends of lines and blank lines after the first, in
 * place. Of two lines after each other that are a break and nothing else, one stays a break. */
static Py_ssize_t NAMED(squeezed)(LETTER *text, Py_ssize_t size) {
    Py_ssize_t used = 0;
    int taken = 0;
    for (Py_ssize_t at = 0; at < size; at++) {
        Py_ssize_t stop = NAMED(next_stop)(text, at, size);
        memmove(text + used, text + at, (size_t)(stop - at) * sizeof(LETTER));
        used += stop - at;
        at = stop;
        if (at == size || text[at] != '\n') {
            continue;
        }
        Py_ssize_t spaces = used;
        while (spaces > 0 && used - spaces < 3 && text[spaces - 1] == ' ') {
            spaces--;
        }
        int starts_line = spaces > 0 && text[spaces - 1] == '\n';
        if (used - spaces == 1) {
            used--;
            taken = 0;
        } else if (used - spaces == 2 && starts_line && !taken) {
            used -= 2;
            taken = 1;
        } else {
            taken = 0;
        }
        if (used < 2 || text[used - 1] != '\n' || text[used - 2] != '\n') {
            text[used++] = '\n';
        }
    }
    return used;
}

/* The tidied text is from `start` on in `out`; where it ends is returned, -1 for an error. */
static Py_ssize_t NAMED(tidied)(const LETTER *text, Py_ssize_t size, LETTER *out, Py_ssize_t *start) {
    if (NAMED(has_tags)(text, size)) {
        size = NAMED(with_marks)(text, size, out);
        if (size < 0) {
            return -1;
        }
    } else {
        memcpy(out, text, (size_t)size * sizeof(LETTER));
    }
    Py_ssize_t end = NAMED(squeezed)(out, size);
    while (*start < end && (out[*start] == '\n' || out[*start] == ' ')) {
        (*start)++;
    }
    while (end > *start && (out[end - 1] == '\n' || out[end - 1] == ' ')) {
        end--;
    }
    if (end > *start) {
        out[end++] = '\n';
    }
    return end;
}

#undef LANES
