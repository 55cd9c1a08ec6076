/* The product of a matrix with a panel of weights, and what goes before it; made once for each set of instructions, by files
 * that say how many numbers go into a register (LANES) and what the function is called (PRODUCT).
 *
 * A dozen registers hold sums, of ROWS rows by the PANEL columns of a panel: each weight that is
 * loaded serves all rows. */

typedef float JOINED(PRODUCT, _Lanes) __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));

enum { JOINED(PRODUCT, _VECTORS) = PANEL / LANES, JOINED(PRODUCT, _ROWS) = 12 / (PANEL / LANES) };

#define Lanes JOINED(PRODUCT, _Lanes)
#define VECTORS JOINED(PRODUCT, _VECTORS)
#define ROWS JOINED(PRODUCT, _ROWS)

/* Some rows, at most ROWS: a number that the compiler knows. */
TARGET static inline __attribute__((always_inline)) void JOINED(PRODUCT, _rows)(
    const Product *given, const float *panel, const float *start, Py_ssize_t row, Py_ssize_t column,
    const int rows) {
    Lanes sums[ROWS][VECTORS];
    const float *from = given->from + row * given->from_step;
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) {
            sums[r][v] = *(const Lanes *)(start + v * LANES);
        }
    }
    for (Py_ssize_t i = 0; i < given->depth; i++, panel += PANEL) {
        for (int r = 0; r < rows; r++) {
            float value = from[r * given->from_step + i];
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] += value * *(const Lanes *)(panel + v * LANES);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        float *to = given->to + (row + r) * given->to_step + column;
        for (int v = 0; v < VECTORS; v++) {
            *(Lanes *)(to + v * LANES) = sums[r][v];
        }
    }
}

TARGET static void PRODUCT(const Product *given) {
    for (Py_ssize_t column = 0; column < given->columns; column += PANEL) {
        const float *panel = given->weights + column * given->depth, *start = given->start + column;
        Py_ssize_t row = 0;
        for (; row + ROWS <= given->rows; row += ROWS) {
            JOINED(PRODUCT, _rows)(given, panel, start, row, column, ROWS);
        }
        for (; row < given->rows; row++) {
            JOINED(PRODUCT, _rows)(given, panel, start, row, column, 1);
        }
    }
}

/* Shifts, scales and bounds the columns of rows that follow each other. */
TARGET static void JOINED(PRODUCT, _standardise)(const Scale *by, const float *from, Py_ssize_t rows,
                                                 float *to) {
    Py_ssize_t size = by->size;
    const float *mean = by->mean, *scale = by->scale;
    float bound = by->bound;
    for (Py_ssize_t row = 0; row < rows; row++, from += size, to += size) {
        for (Py_ssize_t i = 0; i < size; i++) {
            float value = (from[i] - mean[i]) * scale[i];
            value = value < -bound ? -bound : value;
            to[i] = value > bound ? bound : value;
        }
    }
}

#undef Lanes
#undef VECTORS
#undef ROWS
