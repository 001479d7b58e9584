/* The CPU's fast path: a linear layer with what stands around it, and paged attention.

   Two functions do the work: `linear` and `attention`, whose work `plan` has cut in pieces once
   for a step. `layers` calls them for a whole decoder, five times a layer; cpu_native.py calls
   them one by one where something is to happen in between. They say in their comments what they
   compute; what attention *is* stands in reference.py,
   the layout of pages in contract.py, that of weights in `pack` of cpu_native.py.

   Written with the vector types of GCC and Clang, so one text serves every width (LANES); the
   few instructions that have no portable spelling have a plain twin below them. Knows no
   model, no torch and no allocation: whoever calls brings memory and the number of threads.

   A row is computed by the same operations in the same order whatever its neighbours are:
   blocks of rows, threads and the split over pages change nothing of its arithmetic. So a
   token has the same bits alone, in any batch, and in any chunk of a prompt.
   tests/kernels/test_cpu_native.py holds it to that. */

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* 1. Vectors ------------------------------------------------------------------------------- */

#if !defined(LANES)
#if defined(__AVX512F__) && defined(__AVX512VNNI__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#endif

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));
typedef int16_t Shorts __attribute__((vector_size(4 * LANES)));
typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));

#define INLINE static inline __attribute__((always_inline))
#if !defined(UNROLL) /* the tests compile faster without */
#define UNROLL _Pragma("GCC unroll 16")
#endif

INLINE Floats load(const float *from) {
    Floats vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

INLINE Ints load_ints(const void *from) {
    Ints vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

INLINE void store(float *to, Floats vector) { memcpy(to, &vector, sizeof vector); }

INLINE Floats all(float value) { return value - (Floats){0}; }

INLINE Floats choose(Ints which, Floats yes, Floats no) {
    return (Floats)((which & (Ints)yes) | (~which & (Ints)no));
}

INLINE Floats larger(Floats a, Floats b) { return choose(b > a, b, a); } /* a if that is NaN */

/* LANES bfloat16 numbers: the upper halves of float32. */
INLINE Floats load_bfloat16(const uint16_t *from) {
#if LANES == 8 && defined(__AVX2__) /* of the last line GCC 12 makes four instructions, or more */
    return (Floats)((Words)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)) << 16);
#elif LANES == 16 && defined(__AVX512F__)
    return (Floats)((Words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)) << 16);
#else
    Halves halves;
    memcpy(&halves, from, sizeof halves);
    return (Floats)(__builtin_convertvector(halves, Words) << 16);
#endif
}

INLINE uint16_t to_bfloat16(float value) { /* to the nearest, ties to even, as torch does */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return (uint16_t)(bits >> 16 | 0x40); /* stays a NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* One vector whose lane i is the sum of vector i: pairs of vectors are interleaved and added. */
#define PAIRED(a, b, low, high) \
    (__builtin_shufflevector(a, b, low) + __builtin_shufflevector(a, b, high))
#if LANES == 4
#define NEIGHBOURS_LOW 0, 2, 4, 6
#define NEIGHBOURS_HIGH 1, 3, 5, 7
#elif LANES == 8
#define NEIGHBOURS_LOW 0, 2, 8, 10, 4, 6, 12, 14
#define NEIGHBOURS_HIGH 1, 3, 9, 11, 5, 7, 13, 15
#define HALVES_LOW 0, 1, 2, 3, 8, 9, 10, 11
#define HALVES_HIGH 4, 5, 6, 7, 12, 13, 14, 15
#else
#define NEIGHBOURS_LOW 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define NEIGHBOURS_HIGH 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define HALVES_LOW 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define HALVES_HIGH 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#endif

INLINE Floats sums_of(Floats vectors[LANES]) {
    UNROLL for (int i = 0; i < LANES / 2; i++)
        vectors[i] = PAIRED(vectors[2 * i], vectors[2 * i + 1], NEIGHBOURS_LOW, NEIGHBOURS_HIGH);
    UNROLL for (int i = 0; i < LANES / 4; i++)
        vectors[i] = PAIRED(vectors[2 * i], vectors[2 * i + 1], NEIGHBOURS_LOW, NEIGHBOURS_HIGH);
#if LANES > 4 /* now lanes 4n .. 4n + 3 hold the n-th partial sums of four vectors */
    UNROLL for (int i = 0; i < LANES / 8; i++)
        vectors[i] = PAIRED(vectors[2 * i], vectors[2 * i + 1], HALVES_LOW, HALVES_HIGH);
#endif
#if LANES > 8
    vectors[0] = PAIRED(vectors[0], vectors[1], HALVES_LOW, HALVES_HIGH);
#endif
    return vectors[0];
}

INLINE float sum_of(Floats vector) {
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += vector[i];
    return sum;
}

INLINE float largest_of(Floats vector) {
    float largest = vector[0];
    for (int i = 1; i < LANES; i++) largest = vector[i] > largest ? vector[i] : largest;
    return largest;
}

/* The nearest integer, for |x| < 2**22: adding 1.5 * 2**23 leaves it in the lower bits. */
INLINE Ints nearest(Floats x) {
    return (Ints)(x + 12582912.0f) - 0x4b400000;
}

/* e**x for x <= 88, 0 below -87: 2**n times a polynomial of the rest (Cephes' expf, 2e-7). */
INLINE Floats exponential(Floats x) {
    Floats bounded = larger(x, all(-87.0f));
    Ints n = nearest(bounded * 1.44269504f);
    Floats whole = __builtin_convertvector(n, Floats);
    Floats rest = bounded - whole * 0.693359375f + whole * 2.12194440e-4f;
    Floats y = all(1.9875691500e-4f);
    y = y * rest + 1.3981999507e-3f;
    y = y * rest + 8.3334519073e-3f;
    y = y * rest + 4.1665795894e-2f;
    y = y * rest + 1.6666665459e-1f;
    y = y * rest + 5.0000001201e-1f;
    y = y * rest * rest + rest + 1.0f;
    Floats power = (Floats)((n + 127) << 23);
    return choose(x < -87.0f, all(0), y * power); /* NaN stays NaN */
}

/* 2. The dot products of one tile ------------------------------------------------------------ */

enum { TILE = 16 };             /* outputs of a tile: its weights are read as one stream */
enum { PARTS = TILE / LANES };  /* vectors that hold one number for each output */
enum { GROUP = 32 };            /* weights, or inputs of a row, that share a scale */
enum { FLOAT32, BFLOAT16, INT8 };
#if LANES == 16
enum { ROWS = 8 }; /* rows of x that are multiplied with a tile at once, at most */
#else
enum { ROWS = 6 };
#endif

typedef struct {
    const uint8_t *tiles; /* in the order of `pack` */
    const float *bias;    /* (outputs,), gate before up; or NULL */
    int64_t inputs;       /* a multiple of GROUP: padded with zeros */
    int64_t outputs;      /* of `linear`: half of the rows if it is gated */
    int64_t format;
    int64_t is_gated; /* tiles alternate: gate, up */
} Matrix;

/* sum + the products of four inputs with their int8 weights, in each lane. Where a machine
   multiplies bytes, inputs are four bytes (FOUR = 4); elsewhere they are 16-bit numbers in the
   order 0 2 1 3, as the weights of a lane fall apart into the even and the odd ones (FOUR = 8).
   Instructions that take unsigned by signed bytes see weights + 128, and WEIGHT_BIAS says by
   how much the sum is to begin lower. */
#if !defined(MINIMSG_PLAIN) && LANES == 16 && defined(__AVX512VNNI__)
enum { FOUR = 4, WEIGHT_BIAS = 128 };
INLINE Ints dot4(Ints sum, Ints weights, const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)(weights ^ (int32_t)0x80808080),
                                     _mm512_set1_epi32(four));
}
#elif !defined(MINIMSG_PLAIN) && LANES == 4 && defined(__ARM_FEATURE_DOTPROD)
enum { FOUR = 4, WEIGHT_BIAS = 0 };
INLINE Ints dot4(Ints sum, Ints weights, const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    return (Ints)vdotq_s32((int32x4_t)sum, (int8x16_t)weights, (int8x16_t)vdupq_n_s32(four));
}
#elif defined(MINIMSG_BIASED) /* the arithmetic of VNNI, to be tested on machines without it */
enum { FOUR = 4, WEIGHT_BIAS = 128 };
INLINE Ints dot4(Ints sum, Ints weights, const uint8_t *x) {
    for (int i = 0; i < 4; i++)
        sum += (Ints)((Words)(weights ^ (int32_t)0x80808080) << (24 - 8 * i) >> 24) *
               (int32_t)((const int8_t *)x)[i];
    return sum;
}
#else
enum { FOUR = 8, WEIGHT_BIAS = 0 };
INLINE Ints dot2(Ints weights, Ints x) { /* two products of 16-bit numbers, added */
#if !defined(MINIMSG_PLAIN) && LANES == 8 && defined(__AVX2__)
    return (Ints)_mm256_madd_epi16((__m256i)weights, (__m256i)x);
#elif !defined(MINIMSG_PLAIN) && LANES == 4 && defined(__SSE2__)
    return (Ints)_mm_madd_epi16((__m128i)weights, (__m128i)x);
#else
    return (weights << 16 >> 16) * (x << 16 >> 16) + (weights >> 16) * (x >> 16);
#endif
}
INLINE Ints dot4(Ints sum, Ints weights, const uint8_t *x) {
    int32_t even, odd;
    memcpy(&even, x, 4);
    memcpy(&odd, x + 4, 4);
    sum += dot2((Ints)((Shorts)weights << 8 >> 8), even - (Ints){0});
    return sum + dot2((Ints)((Shorts)weights >> 8), odd - (Ints){0});
}
#endif

/* A row of x as a tile multiplies it: float32; or for each group a scale, what its sum begins
   with, and the inputs as `dot4` wants them. */
enum { HEAD_BYTES = 8, GROUP_BYTES = HEAD_BYTES + GROUP / 4 * FOUR };
enum { TILE_GROUP_BYTES = 2 * TILE + TILE * GROUP }; /* of a tile: scales in bfloat16, weights */

INLINE int64_t row_bytes(const Matrix *matrix) {
    int64_t inputs = matrix->inputs;
    return matrix->format == INT8 ? inputs / GROUP * GROUP_BYTES : inputs * 4;
}

INLINE void put(Floats total[ROWS][PARTS], const int rows, float out[ROWS][TILE]) {
    UNROLL for (int row = 0; row < rows; row++)
        UNROLL for (int part = 0; part < PARTS; part++)
            store(out[row] + part * LANES, total[row][part]);
}

/* What is read next, to be asked for meanwhile: so many bytes with each group of inputs. */
typedef struct {
    const uint8_t *at;
    int64_t step;
} Ahead;

INLINE void ask_for(Ahead *ahead) {
    for (int64_t i = 0; i < ahead->step; i += 64) __builtin_prefetch(ahead->at + i);
    ahead->at += ahead->step;
}

INLINE void dot_int8(const Matrix *matrix, const uint8_t *tile, const uint8_t *x, const int rows,
                     Ahead ahead, float out[ROWS][TILE]) {
    const int64_t groups = matrix->inputs / GROUP, stride = groups * GROUP_BYTES;
    Floats total[ROWS][PARTS] = {0};
    for (int64_t group = 0; group < groups; group++, x += GROUP_BYTES) {
        ask_for(&ahead);
        const uint16_t *scales = (const uint16_t *)(tile + group * TILE_GROUP_BYTES);
        const uint8_t *weights = (const uint8_t *)(scales + TILE);
        Ints sum[ROWS][PARTS];
        UNROLL for (int row = 0; row < rows; row++)
            UNROLL for (int part = 0; part < PARTS; part++)
                sum[row][part] = ((const int32_t *)(x + row * stride))[1] - (Ints){0};
        UNROLL for (int four = 0; four < GROUP / 4; four++)
            UNROLL for (int part = 0; part < PARTS; part++) {
                Ints w = load_ints(weights + four * 4 * TILE + part * 4 * LANES);
                UNROLL for (int row = 0; row < rows; row++)
                    sum[row][part] = dot4(sum[row][part], w,
                                          x + row * stride + HEAD_BYTES + four * FOUR);
            }
        UNROLL for (int row = 0; row < rows; row++)
            UNROLL for (int part = 0; part < PARTS; part++)
                total[row][part] += __builtin_convertvector(sum[row][part], Floats) *
                                    load_bfloat16(scales + part * LANES) *
                                    *(const float *)(x + row * stride);
    }
    put(total, rows, out);
}

INLINE void dot_bfloat16(const Matrix *matrix, const uint8_t *tile, const uint8_t *x,
                         const int rows, Ahead ahead, float out[ROWS][TILE]) {
    const int64_t inputs = matrix->inputs;
    Floats total[ROWS][PARTS] = {0};
    for (int64_t k = 0; k < inputs; k += 2) { /* a word holds the weights of inputs k, k + 1 */
        if (k % GROUP == 0) ask_for(&ahead);
        Words w[PARTS];
        UNROLL for (int part = 0; part < PARTS; part++)
            w[part] = (Words)load_ints(tile + k * 2 * TILE + part * 4 * LANES);
        UNROLL for (int row = 0; row < rows; row++) {
            const float *at = (const float *)x + row * inputs + k;
            UNROLL for (int part = 0; part < PARTS; part++) {
                total[row][part] += (Floats)(w[part] << 16) * at[0];
                total[row][part] += (Floats)(w[part] & 0xffff0000) * at[1];
            }
        }
    }
    put(total, rows, out);
}

INLINE void dot_float32(const Matrix *matrix, const uint8_t *tile, const uint8_t *x,
                        const int rows, Ahead ahead, float out[ROWS][TILE]) {
    const int64_t inputs = matrix->inputs;
    Floats total[ROWS][PARTS] = {0};
    for (int64_t k = 0; k < inputs; k++) {
        if (k % GROUP == 0) ask_for(&ahead);
        UNROLL for (int row = 0; row < rows; row++) {
            float at = ((const float *)x)[row * inputs + k];
            UNROLL for (int part = 0; part < PARTS; part++)
                total[row][part] += load((const float *)tile + k * TILE + part * LANES) * at;
        }
    }
    put(total, rows, out);
}

/* As many rows as leave their sums, the weights and an input in the registers of a core. */
INLINE int64_t rows_at_once(const Matrix *matrix) {
    return LANES == 16 || matrix->format == FLOAT32 ? ROWS : 4;
}

/* The compiler makes one body for each number of rows, with every loop over them unrolled. */
#define CASE(number, dot) \
    case number: dot(matrix, tile, x, number, ahead, out); break
#if LANES == 16
#define MORE_CASES(dot) CASE(7, dot); CASE(8, dot)
#else
#define MORE_CASES(dot)
#endif
#define FOR_ROWS(dot)                                                                   \
    switch (rows) {                                                                     \
        CASE(1, dot); CASE(2, dot); CASE(3, dot); CASE(4, dot); CASE(5, dot); CASE(6, dot); \
        MORE_CASES(dot);                                                                \
    }

static void dot(const Matrix *matrix, const uint8_t *tile, const uint8_t *x, int rows, Ahead ahead,
                float out[ROWS][TILE]) {
    switch (matrix->format) {
    case INT8: FOR_ROWS(dot_int8); break;
    case BFLOAT16: FOR_ROWS(dot_bfloat16); break;
    default: FOR_ROWS(dot_float32);
    }
}

static int64_t tile_bytes(const Matrix *matrix) {
    switch (matrix->format) {
    case INT8: return matrix->inputs / GROUP * TILE_GROUP_BYTES;
    case BFLOAT16: return matrix->inputs * 2 * TILE;
    default: return matrix->inputs * 4 * TILE;
    }
}

/* 3. Linear ---------------------------------------------------------------------------------- */

/* Inputs to -127 .. 127 with a scale for each 32, so that an outlier costs few neighbours. */
static void quantize(const float *x, int64_t inputs, uint8_t *row) {
    for (int64_t group = 0; group < inputs / GROUP; group++, x += GROUP, row += GROUP_BYTES) {
        Floats largest = all(0), zero = all(0); /* or NaN, so that what is not finite is not lost */
        for (int i = 0; i < GROUP; i += LANES) {
            largest = larger(larger(load(x + i), -load(x + i)), largest);
            zero += load(x + i) * 0.0f;
        }
        float scale = largest_of(largest) / 127 + sum_of(zero);
        float inverse = scale > 0 ? 1 / scale : 0;
        int32_t numbers[GROUP];
        uint32_t start = 0; /* wraps if x is not finite */
        for (int i = 0; i < GROUP; i += LANES) {
            Ints nearby = nearest(load(x + i) * inverse);
            memcpy(numbers + i, &nearby, sizeof nearby);
        }
        if (WEIGHT_BIAS)
            for (int i = 0; i < GROUP; i++) start -= WEIGHT_BIAS * (uint32_t)numbers[i];
        memcpy(row, &scale, 4);
        memcpy(row + 4, &start, 4);
        int8_t *bytes = (int8_t *)(row + HEAD_BYTES);
        int16_t *shorts = (int16_t *)(row + HEAD_BYTES);
        for (int i = 0; i < GROUP; i += 4) {
            if (FOUR == 4)
                for (int k = 0; k < 4; k++) bytes[i + k] = (int8_t)numbers[i + k];
            else
                for (int k = 0; k < 4; k++) shorts[i + k] = (int16_t)numbers[i + k % 2 * 2 + k / 2];
        }
    }
}

/* A row of x, normalized (arXiv 1910.07467) if there is a `norm`, as the tiles multiply it. */
static void prepare(const Matrix *matrix, const float *x, int64_t width, const float *norm,
                    float epsilon, float *floats, uint8_t *row) {
    float factor = 1;
    int64_t i = 0;
    if (norm) {
        Floats squares = all(0);
        float rest = 0;
        for (; i + LANES <= width; i += LANES) squares += load(x + i) * load(x + i);
        for (; i < width; i++) rest += x[i] * x[i];
        factor = 1 / sqrtf((sum_of(squares) + rest) / (float)width + epsilon);
    }
    float *to = matrix->format == INT8 ? floats : (float *)row;
    for (i = 0; i + LANES <= width; i += LANES)
        store(to + i, norm ? load(x + i) * factor * load(norm + i) : load(x + i));
    for (; i < width; i++) to[i] = norm ? x[i] * factor * norm[i] : x[i];
    for (; i < matrix->inputs; i++) to[i] = 0;
    if (matrix->format == INT8) quantize(floats, matrix->inputs, row);
}

/* Rows of a tile to `out` (rows, outputs): bias, gate, and what is there already if it `adds`. */
static void finish(const Matrix *matrix, int64_t tile, int rows, float value[ROWS][TILE],
                   float gate[ROWS][TILE], int adds, float *out) {
    const int64_t first = tile * TILE, outputs = matrix->outputs;
    const int64_t count = outputs - first < TILE ? outputs - first : TILE;
    float bias[2][TILE] = {0};
    for (int64_t i = 0; matrix->bias && i < count; i++) {
        bias[0][i] = matrix->bias[first + i];
        bias[1][i] = matrix->is_gated ? matrix->bias[outputs + first + i] : 0;
    }
    for (int row = 0; row < rows; row++) {
        float *to = out + row * outputs + first;
        for (int i = 0; i < TILE; i += LANES) {
            Floats result = load(value[row] + i) + load(bias[matrix->is_gated] + i);
            if (matrix->is_gated) { /* silu(gate) * up, arXiv 2002.05202 */
                Floats x = load(gate[row] + i) + load(bias[0] + i);
                /* e**80 is finite in float32, e**89 is not; silu is 0 at either */
                result *= x / (1.0f + exponential(-larger(x, all(-80.0f))));
            }
            if (count == TILE)
                store(to + i, adds ? load(to + i) + result : result);
            else
                store(value[row] + i, result);
        }
        for (int64_t i = 0; count < TILE && i < count; i++)
            to[i] = adds ? to[i] + value[row][i] : value[row][i];
    }
}

enum { CACHE_BYTES = 1 << 18 }; /* rows of x that stay near a core while tiles pass by */

/* Scratch of `linear` for each row of x. */
int64_t linear_bytes(const Matrix *matrix) { return row_bytes(matrix); }

/* `linear`, by the threads of the team that calls it. */
static void team_linear(const Matrix *matrix, const float *x, int64_t width, int64_t rows,
                        const float *norm, float epsilon, int64_t adds, float *out,
                        uint8_t *scratch) {
    if (rows == 0) return;
    const int64_t stride = row_bytes(matrix), bytes = tile_bytes(matrix);
    const int64_t tiles = (matrix->outputs + TILE - 1) / TILE;
    const int64_t unit = matrix->is_gated ? 2 : 1;
    const int64_t step = rows_at_once(matrix);
    const int64_t block = CACHE_BYTES / stride > step ? CACHE_BYTES / stride / step * step : step;
    const int64_t blocks = (rows + block - 1) / block;
    const int64_t passes = ((rows < block ? rows : block) + step - 1) / step; /* over a tile */
    const int64_t share = bytes / passes / (matrix->inputs / GROUP) + 1;
#pragma omp for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        uint8_t *to = scratch + row * stride;
        float floats[matrix->format == INT8 ? matrix->inputs : 1];
        prepare(matrix, x + row * width, width, norm, epsilon, floats, to);
    }
#pragma omp for schedule(static) collapse(2)
    for (int64_t part = 0; part < blocks; part++)
        for (int64_t tile = 0; tile < tiles; tile++) {
            int64_t end = (part + 1) * block < rows ? (part + 1) * block : rows;
            const uint8_t *weights = matrix->tiles + tile * unit * bytes;
            const uint8_t *later = weights + unit * bytes; /* of the next tile, a part each pass */
            for (int64_t row = part * block; row < end; row += step) {
                int count = (int)(end - row < step ? end - row : step);
                const uint8_t *at = scratch + row * stride;
                float value[ROWS][TILE], gate[ROWS][TILE];
                Ahead ahead = {later, share};
                if (matrix->is_gated) dot(matrix, weights, at, count, ahead, gate);
                ahead.at += (unit - 1) * bytes;
                dot(matrix, weights + (unit - 1) * bytes, at, count, ahead, value);
                later += bytes / passes;
                finish(matrix, tile, count, value, gate, (int)adds, out + row * matrix->outputs);
            }
        }
}

/* out (rows, outputs) float32 = [norm(]x (rows, width)[)] W^T + bias; gated: silu(.) * (.) of its
   two halves; with `adds`, added to what out holds. */
void linear(const Matrix *matrix, const float *x, int64_t width, int64_t rows, const float *norm,
            float epsilon, int64_t adds, float *out, uint8_t *scratch, int64_t threads) {
#pragma omp parallel num_threads(threads)
    team_linear(matrix, x, width, rows, norm, epsilon, adds, out, scratch);
}

/* 4. Attention ------------------------------------------------------------------------------- */

enum { CHUNK = 64 };  /* keys whose softmax is made at once; chunks begin at multiples of it */
enum { BLOCK = 16 };  /* new tokens of a sequence that pass over the keys together */

/* The tokens of a step: what contract.py calls a Layout, and the work in it. */
typedef struct {
    int64_t sequences, table_width, page_size;
    const int64_t *query_starts, *context_lens, *page_tables, *slots;
    const struct Item *items;
    int64_t num_items, num_partials; /* partial results: of a token, a chunk and a head each */
} Layout;

/* A block of new tokens, some kv heads, and some chunks of what they see. */
typedef struct Item {
    int64_t sequence, token, tokens; /* rows of T */
    int64_t kv_head, kv_heads;
    int64_t chunk, chunks;
    int64_t seen;    /* chunks of the whole block, */
    int64_t partial; /* and where its partial results begin; -1: this item sees all chunks */
} Item;

typedef struct {
    int64_t num_heads, num_kv_heads, head_dim, window; /* 0: no window */
    int64_t is_bfloat16;                               /* of the pages */
    float scale, epsilon;
    const float *query_norm, *key_norm; /* (head_dim,), or NULL: heads come as they are */
    const float *cos, *sin;             /* (T, head_dim), see models/rope.py; or NULL */
} Heads;

static int64_t block_tokens(const Layout *layout, int64_t sequence, int64_t token) {
    int64_t left = layout->query_starts[sequence + 1] - token;
    return left < BLOCK ? left : BLOCK;
}

static int64_t block_chunks(const Layout *layout, int64_t sequence, int64_t token) {
    int64_t left = layout->query_starts[sequence + 1] - token; /* tokens from this one on */
    int64_t seen = layout->context_lens[sequence] - left + block_tokens(layout, sequence, token);
    return (seen + CHUNK - 1) / CHUNK;
}

/* Cut a step into items; returns how many, and writes them if there is a place for them. There
   are to be several for each thread: long contexts are split, and heads if that is too little. */
int64_t plan(Layout *layout, int64_t num_heads, int64_t num_kv_heads, int64_t threads,
             Item *items) {
    int64_t count = 0, partials = 0, total = 0;
    for (int64_t s = 0; s < layout->sequences; s++)
        for (int64_t t = layout->query_starts[s]; t < layout->query_starts[s + 1]; t += BLOCK)
            total += block_chunks(layout, s, t);
    const int64_t most = total / (4 * threads) > 1 ? total / (4 * threads) : 1;
    const int64_t kv_heads = total < 4 * threads ? 1 : num_kv_heads;
    for (int64_t s = 0; s < layout->sequences; s++)
        for (int64_t t = layout->query_starts[s]; t < layout->query_starts[s + 1]; t += BLOCK) {
            int64_t tokens = block_tokens(layout, s, t), seen = block_chunks(layout, s, t);
            for (int64_t kv_head = 0; kv_head < num_kv_heads; kv_head += kv_heads)
                for (int64_t chunk = 0; chunk < seen; chunk += most, count++) {
                    int64_t chunks = seen - chunk < most ? seen - chunk : most;
                    if (items)
                        items[count] = (Item){s, t, tokens, kv_head, kv_heads, chunk, chunks, seen,
                                              seen > most ? partials : -1};
                }
            if (seen > most) partials += seen * tokens * num_heads;
        }
    layout->num_items = count;
    layout->num_partials = partials;
    return count;
}

static void normalize(float *head, const float *weight, int64_t size, float epsilon) {
    Floats squares = all(0);
    for (int64_t i = 0; i < size; i += LANES) squares += load(head + i) * load(head + i);
    float factor = 1 / sqrtf(sum_of(squares) / (float)size + epsilon);
    for (int64_t i = 0; i < size; i += LANES)
        store(head + i, load(head + i) * factor * load(weight + i));
}

/* Turn each pair (i, i + size / 2) by its angle (arXiv 2104.09864). */
static void rotate(float *head, const float *cos, const float *sin, int64_t size) {
    int64_t half = size / 2;
    for (int64_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = a * cos[i] + b * sin[i];
        head[i + half] = b * cos[i + half] + a * sin[i + half];
    }
}

static void write_head(const Heads *heads, const float *from, void *pages, int64_t at) {
    for (int64_t i = 0; i < heads->head_dim; i++) {
        if (heads->is_bfloat16)
            ((uint16_t *)pages)[at + i] = to_bfloat16(from[i]);
        else
            ((float *)pages)[at + i] = from[i];
    }
}

/* Normalize and rotate the heads of a token, in place, and put key and value into their slot. */
static void take_in(const Heads *heads, const Layout *layout, int64_t token, float *query,
                    float *key, float *value, void *keys, void *values) {
    int64_t size = heads->head_dim, kv_heads = heads->num_kv_heads;
    const float *cos = heads->cos ? heads->cos + token * size : NULL;
    const float *sin = heads->cos ? heads->sin + token * size : NULL;
    for (int64_t head = 0; head < heads->num_heads; head++) {
        if (heads->query_norm)
            normalize(query + head * size, heads->query_norm, size, heads->epsilon);
        if (cos) rotate(query + head * size, cos, sin, size);
    }
    for (int64_t head = 0; head < kv_heads; head++) {
        if (heads->key_norm) normalize(key + head * size, heads->key_norm, size, heads->epsilon);
        if (cos) rotate(key + head * size, cos, sin, size);
        int64_t at = (layout->slots[token] * kv_heads + head) * size;
        write_head(heads, key + head * size, keys, at);
        write_head(heads, value + head * size, values, at);
    }
}

/* Rows of one head in the pages of a sequence, from one position to the next. */
typedef struct {
    const char *at; /* the row of `position` */
    int64_t position, end;
    int64_t page_end;    /* the first position behind its page */
    const int64_t *page; /* its page, in the table */
    const char *pages;   /* the first row of all */
    int64_t page_size, head_bytes, row_bytes;
} Walk;

static Walk walk(const Heads *heads, const Layout *layout, int64_t sequence, int64_t kv_head,
                 const void *pages, int64_t position, int64_t end) {
    int64_t page_size = layout->page_size, number = position / page_size;
    Walk walk = {.position = position, .end = end, .page_end = (number + 1) * page_size,
                 .page = layout->page_tables + sequence * layout->table_width + number,
                 .page_size = page_size, .head_bytes = heads->head_dim * (heads->is_bfloat16 ? 2 : 4)};
    walk.row_bytes = heads->num_kv_heads * walk.head_bytes;
    walk.pages = (const char *)pages + kv_head * walk.head_bytes;
    if (position < end)
        walk.at = walk.pages + (*walk.page * page_size + position % page_size) * walk.row_bytes;
    return walk;
}

INLINE const char *next_row(Walk *walk) { /* without a division: they are slow */
    const char *row = walk->at;
    walk->at += walk->row_bytes;
    if (++walk->position == walk->page_end && walk->position < walk->end) {
        walk->at = walk->pages + *++walk->page * walk->page_size * walk->row_bytes;
        walk->page_end += walk->page_size;
    }
    return row;
}

/* Ask memory for the next `rows` rows, if there are so many. */
INLINE void ask(Walk *walk, int64_t rows) {
    for (; rows > 0 && walk->position < walk->end; rows--) {
        const char *row = next_row(walk);
        for (int64_t i = 0; i < walk->head_bytes; i += 64) __builtin_prefetch(row + i);
    }
}

/* The rows of a walk as float32. */
static void gather(const Heads *heads, Walk walk, float *to) {
    const int64_t size = heads->head_dim;
    for (; walk.position < walk.end; to += size) {
        const char *row = next_row(&walk);
        if (!heads->is_bfloat16)
            memcpy(to, row, (size_t)size * 4);
        else
            for (int64_t i = 0; i < size; i += LANES)
                store(to + i, load_bfloat16((const uint16_t *)row + i));
    }
}

/* Scores of one query with `count` keys (of CHUNK rows, all finite). Here and in `weigh`, `pace`
   rows that are wanted next are asked for with each LANES keys. */
static void score(const float *query, const float *keys, int64_t count, int64_t size, float scale,
                  float *scores, Walk *ahead, int64_t pace) {
    for (int64_t key = 0; key < count; key += LANES) {
        ask(ahead, pace);
        Floats sums[LANES] = {0};
        for (int64_t i = 0; i < size; i += LANES) {
            Floats at = load(query + i);
            UNROLL for (int lane = 0; lane < LANES; lane++)
                sums[lane] += at * load(keys + (key + lane) * size + i);
        }
        store(scores + key, sums_of(sums) * scale);
    }
}

/* Scores to weights in place, those outside [first, end) to 0; their sum, and the largest score. */
static float soften(float *scores, int64_t count, int64_t first, int64_t end, float *largest) {
    for (int64_t key = 0; key < first; key++) scores[key] = -INFINITY;
    for (int64_t key = end; key < CHUNK; key++) scores[key] = -INFINITY;
    Floats top = all(-INFINITY), sum = all(0);
    for (int64_t key = 0; key < count; key += LANES) top = larger(load(scores + key), top);
    *largest = largest_of(top);
    for (int64_t key = 0; key < count; key += LANES) {
        Floats weights = exponential(load(scores + key) - *largest);
        store(scores + key, weights);
        sum += weights;
    }
    return sum_of(sum);
}

/* to (size) = the sum of `count` values, each times its weight. */
static void weigh(const float *weights, const float *values, int64_t count, int64_t size,
                  float *to, Walk *ahead, int64_t pace) {
    enum { WIDE = 8 };
    for (int64_t i = 0; i < size; i += WIDE * LANES) {
        Floats sums[WIDE] = {0};
        if (size - i >= WIDE * LANES) {
            for (int64_t key = 0; key < count; key++) {
                if (key % LANES == 0) ask(ahead, pace);
                UNROLL for (int k = 0; k < WIDE; k++)
                    sums[k] += weights[key] * load(values + key * size + i + k * LANES);
            }
            UNROLL for (int k = 0; k < WIDE; k++) store(to + i + k * LANES, sums[k]);
        } else {
            for (int64_t at = i; at < size; at += LANES) {
                Floats narrow = all(0);
                for (int64_t key = 0; key < count; key++)
                    narrow += weights[key] * load(values + key * size + at);
                store(to + at, narrow);
            }
        }
    }
}

/* A row of an item's query: a token of its block and a head. */
typedef struct {
    int64_t token, head;
} Row;

INLINE Row row_of(const Heads *heads, int64_t kv_head, int64_t row) {
    int64_t group = heads->num_heads / heads->num_kv_heads;
    return (Row){row / group, kv_head * group + row % group};
}

INLINE float *output(const Heads *heads, const Item *item, Row row, float *out) {
    return out + ((item->token + row.token) * heads->num_heads + row.head) * heads->head_dim;
}

/* Where a running or partial result lies: its numbers, its sum and its largest score. */
typedef struct {
    float *total, *sum, *largest;
} Result;

INLINE Result partial_result(const Heads *heads, const Item *item, int64_t chunk, Row row,
                             float *partials) {
    int64_t place = (chunk * item->tokens + row.token) * heads->num_heads + row.head;
    int64_t number = item->partial + place;
    float *at = partials + number * (heads->head_dim + 2);
    return (Result){at, at + heads->head_dim, at + heads->head_dim + 1};
}

static void empty(Result result, int64_t size) {
    memset(result.total, 0, (size_t)size * 4);
    *result.sum = 0;
    *result.largest = -INFINITY;
}

static void divide(float *total, float sum, int64_t size) {
    for (int64_t i = 0; i < size; i++) total[i] /= sum;
}

/* Add a chunk to a result (arXiv 1805.02867); one in which a row sees nothing has the sum 0. */
static void join(Result result, const float *chunk, float chunk_sum, float chunk_largest,
                 int64_t size) {
    if (chunk_sum == 0) return;
    float top = *result.largest > chunk_largest ? *result.largest : chunk_largest;
    float old = expf(*result.largest - top), new = expf(chunk_largest - top);
    for (int64_t i = 0; i < size; i += LANES)
        store(result.total + i, load(result.total + i) * old + load(chunk + i) * new);
    *result.sum = *result.sum * old + chunk_sum * new;
    *result.largest = top;
}

/* An item at work. */
typedef struct {
    const Heads *heads;
    const Layout *layout;
    const Item *item;
    const float *query; /* of the step */
    int64_t query_stride;
    const void *keys, *values;
    float *out, *partials;
    int64_t rows;     /* of each kv head */
    int64_t position; /* of the item's first token */
    float *sums, *largest; /* (kv_heads, rows) */
    Walk ahead;       /* what is asked for while something else is computed */
} Work;

/* Rows to ask for with LANES keys of each row, so that a chunk of them is there when it is due. */
INLINE int64_t pace(const Work *work) { return (LANES + work->rows - 1) / work->rows; }

/* A chunk of what an item sees: where it begins, how many of its positions the last token sees,
   and where the first token lies, counted from its beginning (before or behind the chunk, too). */
typedef struct {
    int64_t number, start, seen, position;
} Chunk;

INLINE Chunk chunk_of(const Work *work, int64_t number) {
    int64_t start = number * CHUNK, seen = work->position + work->item->tokens - start;
    return (Chunk){number, start, seen < CHUNK ? seen : CHUNK, work->position - start};
}

INLINE int64_t padded(const Chunk *chunk) { return (chunk->seen + LANES - 1) / LANES * LANES; }

INLINE Walk walk_chunk(const Work *work, const Chunk *chunk, int64_t kv, const void *pages) {
    return walk(work->heads, work->layout, work->item->sequence, kv, pages, chunk->start,
                chunk->start + chunk->seen);
}

INLINE const float *query_of(const Work *work, Row row) {
    return work->query + (work->item->token + row.token) * work->query_stride +
           row.head * work->heads->head_dim;
}

/* The weights of a row over a chunk, their sum, and the largest score; the sum is 0 if it sees
   nothing there. `keys` are those of its kv head. */
static float weights_of(Work *work, const Chunk *chunk, Row row, const float *keys,
                        float weights[CHUNK], float *largest) {
    const Heads *heads = work->heads;
    int64_t end = chunk->position + row.token + 1;
    int64_t first = heads->window && end > heads->window ? end - heads->window : 0;
    if (end <= 0 || first >= chunk->seen) return 0;
    if (end > chunk->seen) end = chunk->seen;
    score(query_of(work, row), keys, padded(chunk), heads->head_dim, heads->scale, weights,
          &work->ahead, pace(work));
    return soften(weights, padded(chunk), first, end, largest);
}

/* Where the numbers of a row go: for each chunk apart, or joined over all. */
INLINE Result result_of(const Work *work, const Chunk *chunk, int64_t kv, int64_t r) {
    const Item *item = work->item;
    Row row = row_of(work->heads, kv, r);
    int64_t at = (kv - item->kv_head) * work->rows + r;
    if (item->partial >= 0)
        return partial_result(work->heads, item, chunk->number, row, work->partials);
    return (Result){output(work->heads, item, row, work->out), work->sums + at, work->largest + at};
}

/* The keys that follow those of a kv head and a chunk. */
static Walk walk_next(const Work *work, const Chunk *chunk, int64_t kv) {
    const Item *item = work->item;
    if (kv + 1 < item->kv_head + item->kv_heads) return walk_chunk(work, chunk, kv + 1, work->keys);
    if (chunk->number + 1 == item->chunk + item->chunks) return (Walk){0};
    Chunk next = chunk_of(work, chunk->number + 1);
    return walk_chunk(work, &next, item->kv_head, work->keys);
}

/* The rows of one kv head over a chunk. */
static void attend_chunk(Work *work, const Chunk *chunk, int64_t kv) {
    const Heads *heads = work->heads;
    const int64_t size = heads->head_dim, rows = work->rows, rest = padded(chunk) - chunk->seen;
    float gathered[CHUNK * size], weighed[size]; /* keys, then values: both would leave the cache */
    float weights[rows][CHUNK], sums[rows], largest[rows];
    gather(heads, walk_chunk(work, chunk, kv, work->keys), gathered);
    memset(gathered + chunk->seen * size, 0, (size_t)(rest * size) * 4);
    work->ahead = walk_chunk(work, chunk, kv, work->values);
    for (int64_t r = 0; r < rows; r++)
        sums[r] = weights_of(work, chunk, row_of(heads, kv, r), gathered, weights[r], &largest[r]);
    ask(&work->ahead, CHUNK);
    gather(heads, walk_chunk(work, chunk, kv, work->values), gathered);
    work->ahead = walk_next(work, chunk, kv);
    for (int64_t r = 0; r < rows; r++) {
        if (sums[r] == 0) continue;
        weigh(weights[r], gathered, chunk->seen, size, weighed, &work->ahead, pace(work));
        join(result_of(work, chunk, kv, r), weighed, sums[r], largest[r], size);
    }
    ask(&work->ahead, CHUNK);
}

/* All rows of an item over its chunks. */
static void attend(Work *work) {
    const Item *item = work->item;
    const int64_t size = work->heads->head_dim, end_kv = item->kv_head + item->kv_heads;
    const int64_t first_seen = work->heads->window ? work->position + 1 - work->heads->window : 0;
    for (int64_t number = item->chunk; number < item->chunk + item->chunks; number++) {
        Chunk chunk = chunk_of(work, number);
        for (int64_t kv = item->kv_head; kv < end_kv; kv++) {
            for (int64_t r = 0; (item->partial >= 0 || number == item->chunk) && r < work->rows; r++)
                empty(result_of(work, &chunk, kv, r), size);
            if (chunk.start + CHUNK > first_seen) attend_chunk(work, &chunk, kv);
        }
    }
    for (int64_t kv = item->kv_head; item->partial < 0 && kv < end_kv; kv++)
        for (int64_t r = 0; r < work->rows; r++) {
            Result result = result_of(work, NULL, kv, r);
            divide(result.total, *result.sum, size);
        }
}

static void attend_item(const Heads *heads, const Layout *layout, const Item *item,
                        const float *query, int64_t query_stride, const void *keys,
                        const void *values, float *out, float *partials) {
    const int64_t rows = item->tokens * (heads->num_heads / heads->num_kv_heads);
    const int64_t end = layout->query_starts[item->sequence + 1];
    float sums[item->kv_heads * rows], largest[item->kv_heads * rows];
    Work work = {heads, layout, item, query, query_stride, keys, values, out, partials, rows,
                 layout->context_lens[item->sequence] - end + item->token, sums, largest, {0}};
    attend(&work);
}

/* Join the chunks of a block that was split, for the heads of `item`, its first. */
static void merge(const Heads *heads, const Item *item, float *partials, float *out) {
    const int64_t size = heads->head_dim;
    const int64_t rows = item->tokens * (heads->num_heads / heads->num_kv_heads);
    for (int64_t kv = item->kv_head; kv < item->kv_head + item->kv_heads; kv++)
        for (int64_t r = 0; r < rows; r++) {
            float sum, largest;
            Row row = row_of(heads, kv, r);
            Result result = {output(heads, item, row, out), &sum, &largest};
            empty(result, size);
            for (int64_t chunk = 0; chunk < item->seen; chunk++) {
                Result part = partial_result(heads, item, chunk, row, partials);
                join(result, part.total, *part.sum, *part.largest, size);
            }
            divide(result.total, sum, size);
        }
}

/* `attention`, by the threads of the team that calls it. */
static void team_attention(const Heads *heads, const Layout *layout, float *query, float *key,
                           float *value, int64_t stride, int64_t tokens, void *keys, void *values,
                           float *out, float *partials) {
#pragma omp for schedule(static)
    for (int64_t token = 0; token < tokens; token++)
        take_in(heads, layout, token, query + token * stride, key + token * stride,
                value + token * stride, keys, values);
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < layout->num_items; item++)
        attend_item(heads, layout, layout->items + item, query, stride, keys, values, out,
                    partials);
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < layout->num_items; item++)
        if (layout->items[item].partial >= 0 && layout->items[item].chunk == 0)
            merge(heads, layout->items + item, partials, out);
}

/* out (T, num_heads, head_dim): the new keys and values go into their slots, then each new
   token attends to its sequence up to itself. A token's heads are `stride` floats apart from the
   next one's; with norms or angles they are changed in place. */
void attention(const Heads *heads, const Layout *layout, float *query, float *key, float *value,
               int64_t stride, int64_t tokens, void *keys, void *values, float *out,
               float *partials, int64_t threads) {
#pragma omp parallel num_threads(threads)
    team_attention(heads, layout, query, key, value, stride, tokens, keys, values, out, partials);
}

/* 5. Layers ---------------------------------------------------------------------------------- */

/* DecoderLayer of models/layers.py. */
typedef struct {
    const Matrix *input, *output, *gate_up, *down;
    const float *attention_norm, *mlp_norm; /* (hidden,) */
    float attention_epsilon, mlp_epsilon;
    Heads heads; /* but its angles, which change with each step */
    void *keys, *values;
} Layer;

/* Memory of `layers` for what lies between the products: (T, .) each, and as `linear` wants it. */
typedef struct {
    float *heads, *attended, *gated, *partials;
    uint8_t *scratch;
} Room;

/* All layers of a decoder, added to x (T, hidden) in place: between them the threads only wait
   for each other, where a call for each product would let them go and Python pass by. */
void layers(const Layer *layers, int64_t count, const Layout *layout, const float *cos,
            const float *sin, float *x, int64_t hidden, int64_t tokens, const Room *room,
            int64_t threads) {
#pragma omp parallel num_threads(threads)
    for (const Layer *layer = layers; layer < layers + count; layer++) {
        Heads heads = layer->heads;
        heads.cos = cos;
        heads.sin = sin;
        const int64_t queries = heads.num_heads * heads.head_dim;
        float *query = room->heads, *key = query + queries;
        float *value = key + heads.num_kv_heads * heads.head_dim;
        team_linear(layer->input, x, hidden, tokens, layer->attention_norm,
                    layer->attention_epsilon, 0, query, room->scratch);
        team_attention(&heads, layout, query, key, value, layer->input->outputs, tokens,
                       layer->keys, layer->values, room->attended, room->partials);
        team_linear(layer->output, room->attended, queries, tokens, NULL, 0, 1, x, room->scratch);
        team_linear(layer->gate_up, x, hidden, tokens, layer->mlp_norm, layer->mlp_epsilon, 0,
                    room->gated, room->scratch);
        team_linear(layer->down, room->gated, layer->gate_up->outputs, tokens, NULL, 0, 1, x,
                    room->scratch);
    }
}
