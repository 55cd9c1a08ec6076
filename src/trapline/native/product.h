/* The product of a matrix with panels of weights, and what goes before and after it; made once for each
 * set of instructions, by files that say how many numbers go into a register (LANES) and what the
 * function is called (PRODUCT).
 *
 * A dozen registers hold sums, of ROWS rows by the PANEL columns of a panel: each weight that is
 * loaded serves all rows. What is zero in all of them is passed over, and so is its weight; where it is
 * zero in some, nothing is added to their sums, which do not depend on the rows beside them. */

typedef float JOINED(PRODUCT, _Lanes) __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));
typedef int32_t JOINED(PRODUCT, _Bits) __attribute__((vector_size(LANES * sizeof(float))));

enum { JOINED(PRODUCT, _VECTORS) = PANEL / LANES, JOINED(PRODUCT, _ROWS) = 12 / (PANEL / LANES) };

#define Lanes JOINED(PRODUCT, _Lanes)
#define Bits JOINED(PRODUCT, _Bits)
#define VECTORS JOINED(PRODUCT, _VECTORS)
#define ROWS JOINED(PRODUCT, _ROWS)
_Static_assert(TOGETHER_ROWS % ROWS == 0, "rows are filled up for every set of instructions");

/* Which numbers are not zero in some of the rows. */
TARGET static int32_t JOINED(PRODUCT, _places)(const Product *given, Py_ssize_t row, int32_t *places) {
    const float *from = given->from + row * given->from_step;
    Py_ssize_t step = given->from_step, i = 0;
    int32_t count = 0;
    for (; i + LANES <= given->depth; i += LANES) {
        Bits any = (Bits) * (const Lanes *)(from + i);
        for (int r = 1; r < ROWS; r++) {
            any |= (Bits) * (const Lanes *)(from + r * step + i);
        }
        for (int lane = 0; lane < LANES; lane++) {
            places[count] = (int32_t)i + lane;
            count += any[lane] != 0;
        }
    }
    for (; i < given->depth; i++) {
        places[count++] = (int32_t)i;
    }
    return count;
}

TARGET static inline void JOINED(PRODUCT, _rows)(const Product *given, const int32_t *places,
                                                 int32_t count, Py_ssize_t row, Py_ssize_t column) {
    Lanes sums[ROWS][VECTORS];
    const float *lines[ROWS], *panel = given->weights + column * given->depth;
    for (int r = 0; r < ROWS; r++) {
        lines[r] = given->from + (row + r) * given->from_step;
        const float *start = given->start + (row + r) * given->start_step + column;
        for (int v = 0; v < VECTORS; v++) {
            sums[r][v] = *(const Lanes *)(start + v * LANES);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        Py_ssize_t place = places[i];
        const Lanes *weights = (const Lanes *)(panel + place * PANEL);
        for (int r = 0; r < ROWS; r++) {
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] += lines[r][place] * weights[v];
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        float *to = given->to + (row + r) * given->to_step + column;
        for (int v = 0; v < VECTORS; v++) {
            Bits kept = given->positive ? sums[r][v] > 0 : (Bits){0} == 0;
            *(Lanes *)(to + v * LANES) = (Lanes)((Bits)sums[r][v] & kept);
        }
    }
}

/* A tile of rows after the other, so that a panel stays near for all of them. */
TARGET static void PRODUCT(const Product *given) {
    for (Py_ssize_t tile = 0; tile < given->rows; tile += TILE) {
        Py_ssize_t end = tile + TILE < given->rows ? tile + TILE : given->rows;
        int32_t counts[TILE / ROWS], *places = given->places;
        for (Py_ssize_t row = tile; row < end; row += ROWS, places += given->depth) {
            counts[(row - tile) / ROWS] = JOINED(PRODUCT, _places)(given, row, places);
        }
        for (Py_ssize_t column = 0; column < given->columns; column += PANEL) {
            places = given->places;
            for (Py_ssize_t row = tile; row < end; row += ROWS, places += given->depth) {
                JOINED(PRODUCT, _rows)(given, places, counts[(row - tile) / ROWS], row, column);
            }
        }
    }
}

/* Shifts, scales and bounds the columns of rows that follow each other; what they are where nothing was
 * is taken off, so that nothing stays nothing. */
TARGET static void JOINED(PRODUCT, _standardise)(const Scale *by, const float *from, Py_ssize_t rows,
                                                 float *to) {
    Py_ssize_t size = by->size;
    const float *mean = by->mean, *scale = by->scale, *nothing = by->nothing;
    float bound = by->bound;
    for (Py_ssize_t row = 0; row < rows; row++, from += size, to += size) {
        for (Py_ssize_t i = 0; i < size; i++) {
            float value = (from[i] - mean[i]) * scale[i];
            value = value < -bound ? -bound : value;
            to[i] = (value > bound ? bound : value) - nothing[i];
        }
    }
}

/* Adds to each row the one of others that has its number; `width` is that of panels. */
TARGET static void JOINED(PRODUCT, _add)(const float *others, const int32_t *numbers, Py_ssize_t rows,
                                         Py_ssize_t width, float *to) {
    for (Py_ssize_t row = 0; row < rows; row++, to += width) {
        const float *other = others + numbers[row] * width;
        for (Py_ssize_t i = 0; i < width; i += LANES) {
            *(Lanes *)(to + i) += *(const Lanes *)(other + i);
        }
    }
}

/* Adds to each row's answer what its numbers come to, times weights. */
TARGET static void JOINED(PRODUCT, _answer)(const float *from, Py_ssize_t rows, Py_ssize_t width,
                                            const float *weights, float *answers) {
    for (Py_ssize_t row = 0; row < rows; row++, from += width) {
        Lanes sums = {0};
        for (Py_ssize_t i = 0; i < width; i += LANES) {
            sums += *(const Lanes *)(from + i) * *(const Lanes *)(weights + i);
        }
        for (int i = 0; i < LANES; i++) {
            answers[row] += sums[i];
        }
    }
}

#undef Lanes
#undef Bits
#undef VECTORS
#undef ROWS
