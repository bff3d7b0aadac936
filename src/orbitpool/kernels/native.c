/* What a CPU does between products of matrices, each number read once: `native.py` builds and calls it.

   Letters as in the paper: N inputs, K filters of D pixels in S poses. What has an entry for each filter, pose and input
   lies in memory as (K, S, N), or as `row_of` says. Numbers are float32, or bfloat16 where a function is told that they
   are `brief`. Threads share filters or inputs, never a sum, so results do not depend on how many there are. */

#include <stdint.h>
#include <string.h>

#define BLOCK 256 /* inputs or pixels at a time: a few rows of them stay in the first cache */
#define FEW (4 * LANES) /* inputs that registers hold; LANES are said from outside */
#define HELD 8192 /* logits of a filter at a time */
#define ALONE 32768 /* numbers, up to which one thread has done them before others are awake */
#define OFF (-1)  /* the pose of a filter that is not there */
#define LEAST (-80.0f) /* whose exponential is taken as nought: what is smaller slows processors down */
#define MOST 40.0f /* logits from which on probabilities are one */

typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define EACH(i, n) _Pragma("omp simd") for (long i = 0; i < (n); i++)
#define PRAGMA(words) _Pragma(#words)
#define SHARED(work) PRAGMA(omp parallel for schedule(static) if ((work) > ALONE))

static inline long least(long a, long b) { return a < b ? a : b; }

static inline uint32_t bits(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
static inline float number(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }

static inline float larger(float a, float b) { return a > b || a != a ? a : b; } /* or what is not a number */

static inline float lengthened(uint16_t x) { return number((uint32_t)x << 16); }

static inline uint16_t shortened(float x) /* to the nearest; of two that are as near, to the even one */
{
    uint32_t y = bits(x);
    return (uint16_t)(x != x ? 0x7fc0 : (y + 0x7fff + ((y >> 16) & 1)) >> 16);
}

/* e^x for x up to 88, to two units in the last place, by the polynomial of the Cephes library. */
static inline float exponential(float x)
{
    float z = x < LEAST ? LEAST : x; /* not a number stays that */
    float shifted = z * 1.44269504f + 12582912.0f; /* the nearest whole number stands in its lowest bits */
    float whole = shifted - 12582912.0f;
    float r = z - whole * 0.693359375f + whole * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    return x < LEAST ? 0.0f : y * number((bits(shifted) << 23) + 0x3f800000);
}

/* The number from 0 to 1 that belongs to a place: SplitMix64 of Steele, Lea and Flood (2014), its 24 highest bits. */
static inline float chance(uint64_t seed, uint64_t place)
{
    uint64_t x = seed + (place + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (float)(int32_t)((x ^ (x >> 31)) >> 40) * 0x1p-24f;
}

/* n numbers from a place on, or at the places that are listed there. */
static inline void load(float *x, const void *from, int brief, long at, const int64_t *listed, long n)
{
    const uint16_t *shorts = from;
    const float *floats = from;
    if (brief && listed)
        EACH(i, n) x[i] = lengthened(shorts[at + listed[i]]);
    else if (brief)
        EACH(i, n) x[i] = lengthened(shorts[at + i]);
    else if (listed)
        EACH(i, n) x[i] = floats[at + listed[i]];
    else
        EACH(i, n) x[i] = floats[at + i];
}

static inline void store(void *to, int brief, long at, const float *x, long n)
{
    uint16_t *shorts = (uint16_t *)to + at;
    float *floats = (float *)to + at;
    if (brief)
        EACH(i, n) shorts[i] = shortened(x[i]);
    else
        EACH(i, n) floats[i] = x[i];
}

/* Sums and differences of what four quarter turns have, in their place. */
static inline void part_turns(float *a, float *b, float *c, float *d, long n)
{
    EACH(i, n)
    {
        float sum = a[i] + c[i], later = b[i] + d[i];
        c[i] = a[i] - c[i];
        d[i] = b[i] - d[i];
        a[i] = sum + later;
        b[i] = sum - later;
    }
}

/* The four that sums and differences are of, but for factors of four, four, two and two, in their place. */
static inline void join_turns(float *a, float *b, float *c, float *d, long n)
{
    EACH(i, n)
    {
        float sum = a[i] + b[i], difference = a[i] - b[i];
        a[i] = sum + c[i];
        b[i] = difference + d[i];
        c[i] = sum - c[i];
        d[i] = difference - d[i];
    }
}

/* Where N inputs' numbers for a filter in a pose lie: after those of `first` of M inputs in rows for all of them.

   Poses are rows of one matrix, (K, S M), or of three: sums of four quarter turns, (K, S / 4 M), odd ones, and the rest.
*/
typedef struct {
    void *numbers;
    long at;
} Row;

static inline Row row_of(void *const *part, long k, long s, long S, long N, long first, long M)
{
    long some = part[1] ? S / 4 : S, which = least(s / some, 2), poses = which < 2 ? some : 2 * some;
    return (Row){part[which], poses * (k * M + first) + (s - which * some) * N};
}

/* The sum of a vector, by halves: compilers would add one number after another. */
static inline float sum_of(Vector x)
{
    for (long half = LANES / 2; half; half /= 2)
        EACH(i, half) x[i] += x[i + half];
    return x[0];
}

/* The sum of n numbers, each of which is multiplied by a factor. */
static inline float scale(float *x, const float *factor, long n)
{
    Vector sums = {0};
    float sum = 0;
    long i = 0;
    for (; i + LANES <= n; i += LANES) {
        Vector *some = (Vector *)(x + i);
        *some *= *(const Vector *)(factor + i);
        sums += *some;
    }
    for (; i < n; i++)
        sum += x[i] *= factor[i];
    return sum + sum_of(sums);
}

/* Poses of a filter for n inputs, drawn from probabilities in rows of them, by the random numbers from a place on. */
static inline void draw(const float *p, long S, long n, uint64_t seed, long place, int32_t *pose)
{
    float left[BLOCK];
    int32_t passed[BLOCK];
    EACH(i, n)
    {
        left[i] = chance(seed, place + i);
        passed[i] = 0;
    }
    for (long s = 0; s < S; s++)
        EACH(i, n)
        {
            left[i] -= p[s * n + i]; /* below nought from the pose on that is drawn */
            passed[i] += left[i] >= 0;
        }
    EACH(i, n) pose[i] = passed[i] == S ? OFF : passed[i];
}

/* Probability p of each pose, z of any, the mean of p over inputs; with a place for it, the pose drawn for each.

   Products and p lie as `row_of` says, products by themselves, and may be one and the same. Of the random numbers for all
   `batch` inputs, those from `start` on are for these. */
void infer(void *const *product, int brief, const float *bias, long K, long S, long N, void *const *p, int brief_p,
           long first, long M, float *z, float *mean, int32_t *pose, uint64_t seed, long start, long batch)
{
    long block = S * BLOCK <= HELD ? BLOCK : S < HELD ? HELD / S : 1, turns = product[1] ? S / 4 : 0;
    SHARED(K * S * N) for (long k = 0; k < K; k++)
    {
        float a[S * block];
        memset(mean + k * S, 0, sizeof(float) * S);
        for (long at = 0; at < N; at += block) {
            long n = least(block, N - at), turn = turns * n;
            float peak[BLOCK], share[BLOCK], on[BLOCK];
            for (long s = 0; s < S; s++) {
                Row row = row_of(product, k, s, S, N, 0, N);
                load(a + s * n, row.numbers, brief, row.at + at, 0, n);
            }
            for (float *x = a; x < a + turn; x += n)
                join_turns(x, x + turn, x + 2 * turn, x + 3 * turn, n);
            EACH(i, n) peak[i] = on[i] = 0;
            for (long s = 0; s < S; s++) {
                float *x = a + s * n, own = bias[k * S + s];
                EACH(i, n)
                {
                    x[i] += own;
                    peak[i] = x[i] > peak[i] ? x[i] : peak[i];
                }
            }
            for (long s = 0; s < S; s++) {
                float *x = a + s * n;
                EACH(i, n) on[i] += x[i] = exponential(x[i] - peak[i]);
            }
            EACH(i, n)
            {
                share[i] = 1 / (on[i] + exponential(-peak[i]));
                z[k * N + at + i] = on[i] * share[i];
            }
            for (long s = 0; s < S; s++) {
                mean[k * S + s] += scale(a + s * n, share, n) / N;
            }
            if (pose)
                draw(a, S, n, seed, k * batch + start + at, pose + k * N + at);
            for (float *x = a; x < a + turn; x += n)
                part_turns(x, x + turn, x + 2 * turn, x + 3 * turn, n);
            for (long s = 0; s < S; s++) {
                Row row = row_of(p, k, s, S, N, first, M);
                store(row.numbers, brief_p, row.at + at, a + s * n, n);
            }
        }
    }
}

/* p times weight_k (1 - z) - 1, in place, where `infer` has put it, and its mean over inputs. */
void tilt(void *const *p, int brief, long first, long M, const float *z, const float *weight, long K, long S, long N,
          float *mean)
{
    long turn = p[1] ? S / 4 : 0;
    SHARED(K * S * N) for (long k = 0; k < K; k++)
    {
        float *own = mean + k * S;
        memset(own, 0, sizeof(float) * S);
        for (long at = 0; at < N; at += BLOCK) {
            long n = least(BLOCK, N - at);
            float factor[BLOCK], x[BLOCK];
            EACH(i, n) factor[i] = weight[k] * (1 - z[k * N + at + i]) - 1;
            for (long s = 0; s < S; s++) {
                Row row = row_of(p, k, s, S, N, first, M);
                load(x, row.numbers, brief, row.at + at, 0, n);
                own[s] += scale(x, factor, n) / (s < 2 * turn ? 4 * N : turn ? 2 * N : N);
                store(row.numbers, brief, row.at + at, x, n);
            }
        }
        join_turns(own, own + turn, own + 2 * turn, own + 3 * turn, turn);
    }
}

/* Rows of x, (K, D), taken apart: of four quarters of m numbers, then others, in the order that is listed.

   The sums, and what is no part of a quarter, go to the first part, (K, D - 3 m), the odd ones to the second, (K, m). */
void apart(const void *x, int brief, long K, long D, const int64_t *listed, long m, void *const *part)
{
    SHARED(K * D) for (long k = 0; k < K; k++)
    {
        float a[BLOCK], b[BLOCK], c[BLOCK], d[BLOCK], *some[4] = {a, b, c, d};
        long even = k * (D - 3 * m);
        for (long at = 0; at < m; at += BLOCK) {
            long n = least(BLOCK, m - at);
            for (long q = 0; q < 4; q++)
                load(some[q], x, brief, k * D, listed + q * m + at, n);
            part_turns(a, b, c, d, n);
            store(part[0], brief, even + at, a, n);
            store(part[1], brief, k * m + at, b, n);
            store(part[2], brief, 2 * k * m + at, c, n);
            store(part[2], brief, (2 * k + 1) * m + at, d, n);
        }
        for (long at = 4 * m; at < D; at += BLOCK) {
            long n = least(BLOCK, D - at);
            load(a, x, brief, k * D, listed + at, n);
            store(part[0], brief, even + at - 3 * m, a, n);
        }
    }
}

/* What `apart` takes apart, but for factors of four and two, (K, D), in the order that is listed. */
void unite(const void *const *part, int brief, long K, long D, const int64_t *listed, long m, float *x)
{
    SHARED(K * D) for (long k = 0; k < K; k++)
    {
        float a[BLOCK], b[BLOCK], c[BLOCK], d[BLOCK], *some[4] = {a, b, c, d}, *row = x + k * D;
        long even = k * (D - 3 * m);
        for (long at = 0; at < m; at += BLOCK) {
            long n = least(BLOCK, m - at);
            load(a, part[0], brief, even + at, 0, n);
            load(b, part[1], brief, k * m + at, 0, n);
            load(c, part[2], brief, 2 * k * m + at, 0, n);
            load(d, part[2], brief, (2 * k + 1) * m + at, 0, n);
            join_turns(a, b, c, d, n);
            for (long q = 0; q < 4; q++)
                for (long i = 0; i < n; i++)
                    row[listed[q * m + at + i]] = some[q][i];
        }
        for (long at = 4 * m; at < D; at++)
            load(row + listed[at], part[0], brief, even + at - 3 * m, 0, 1);
    }
}

/* Odds of any pose so far, with a bias, or the largest response so far, and those of one more pose. */
static inline void add_pose(float *on, const float *a, float sign, const float *bias, long n)
{
    if (bias)
        EACH(i, n)
        {
            float logit = sign * a[i] + *bias;
            on[i] += exponential(logit > MOST ? MOST : logit);
        }
    else
        EACH(i, n) on[i] = larger(sign * a[i], on[i]);
}

/* Add n numbers to the sums of the cells that they are in, if of any: a run of neighbours in one cell at a time. */
static inline void gather(const float *x, const int32_t *cell, long n, long cells, float *sum)
{
    for (long i = 0; i < n;) {
        int32_t own = cell[i];
        float total = 0;
        for (; i < n && cell[i] == own; i++)
            total += x[i];
        if (own >= 0 && own < cells)
            sum[own] += total;
    }
}

/* Take responses in poses `from` to `to` of S, (K, images P) each, into features, which are added up over cells.

   Features are probabilities of any pose, with biases (S, K), or without them what the largest response has above alpha;
   on a second side those of -a. `cell` (P,) says where each patch belongs. Sums are (images, sides, K, cells).
   Before the last pose, what has been reduced waits in z, (sides, K, images P). */
void encode(const void *const *a, int brief, const float *bias, long K, long images, long P, long from, long to, long S,
            float alpha, int sides, const int32_t *cell, long cells, float *z, float *sum)
{
    long N = images * P;
    SHARED((to - from) * K * N) for (long k = 0; k < K; k++)
        for (long at = 0, n; at < N; at += n) {
            n = P < BLOCK ? least(BLOCK / P * P, N - at) : least(BLOCK, P - at % P); /* whole images, or part of one */
            float x[BLOCK], on[2][BLOCK];
            for (int side = 0; side < sides; side++)
                EACH(i, n) on[side][i] = from ? z[(side * K + k) * N + at + i] : bias ? 0 : alpha;
            for (long s = from; s < to; s++) {
                load(x, a[s - from], brief, k * N + at, 0, n);
                for (int side = 0; side < sides; side++)
                    add_pose(on[side], x, side ? -1 : 1, bias ? bias + s * K + k : 0, n);
            }
            for (int side = 0; side < sides; side++) {
                float *own = on[side];
                if (to < S) {
                    EACH(i, n) z[(side * K + k) * N + at + i] = own[i];
                    continue;
                }
                EACH(i, n) own[i] = bias ? own[i] / (own[i] + 1) : own[i] - alpha;
                for (long some = 0, m = least(n, P), image = at / P; some < n; some += m, image++)
                    gather(own + some, cell + at % P, m, cells, sum + ((image * sides + side) * K + k) * cells);
            }
        }
}

/* Hidden units (K, S, N), ones where filters are on in that pose and noughts elsewhere. */
void stand(const int32_t *pose, long K, long S, long N, void *hidden, int brief)
{
    SHARED(K * S * N) for (long k = 0; k < K; k++)
        for (long s = 0; s < S; s++)
            for (long at = 0; at < N; at += BLOCK) {
                long n = least(BLOCK, N - at);
                float x[BLOCK];
                EACH(i, n) x[i] = pose[k * N + at + i] == s;
                store(hidden, brief, (k * S + s) * N + at, x, n);
            }
}

/* x += sign times n numbers of W from a place on. */
static inline void add(float *x, float sign, const void *W, int brief, long at, long n)
{
    const uint16_t *shorts = (const uint16_t *)W + at;
    const float *floats = (const float *)W + at;
    if (brief)
        EACH(i, n) x[i] += sign * lengthened(shorts[i]);
    else
        EACH(i, n) x[i] += sign * floats[i];
}

/* x += filter k after q quarter turns back, both taken apart as `apart` does. */
static inline void add_turned(float *x, void *const *W, int brief, long k, long q, long D, long m)
{
    long even = D - 3 * m, odd = q % 2;
    add(x, 1, W[0], brief, k * even, even);
    add(x + even, odd ? -1 : 1, W[1], brief, k * m, m);
    add(x + even + m, q == 1 || q == 2 ? -1 : 1, W[2], brief, (2 * k + odd) * m, m);
    add(x + even + 2 * m, q > 1 ? -1 : 1, W[2], brief, (2 * k + 1 - odd) * m, m);
}

/* Put what `apart` takes apart together again, in the order that is listed, numbers LANES apart. */
static inline void put_together(float *x, long D, const int64_t *listed, long m, float *to)
{
    float *a = x, *b = x + D - 3 * m, *c = b + m, *d = c + m;
    for (long i = 4 * m; i < D; i++)
        to[listed[i] * LANES] = x[i - 3 * m];
    EACH(i, m)
    {
        c[i] *= 2;
        d[i] *= 2;
    }
    join_turns(a, b, c, d, m);
    for (long i = 0; i < m; i++) {
        to[listed[i] * LANES] = a[i] / 4;
        to[listed[m + i] * LANES] = b[i] / 4;
        to[listed[2 * m + i] * LANES] = c[i] / 4;
        to[listed[3 * m + i] * LANES] = d[i] / 4;
    }
}

/* Sums of T_s' w over the filters that are on, each in its pose, (N, D1 C).

   Filters have D numbers, C to a pixel. Row (d, s) of a sparse matrix has that of pixel d of T_s'. With an order listed,
   filters are as `apart` takes them apart, and poses after the first quarter are turns of those. Each of the crew has
   room for LANES numbers of each pixel of a window and of a field, a window more, and for LANES (S + K) filters. */
void generate(const int32_t *pose, void *const *W, int brief, long K, long S, long N, long D, long C,
              const int32_t *starts, const int32_t *columns, const float *values, long D1, const int64_t *listed,
              long m, long crew, float *room, int32_t *filters, float *field)
{
    long some = listed ? S / 4 : S, size = D1 * C;
    SHARED(N * K) for (long member = 0; member < crew; member++)
    {
        float *window = room + member * (LANES * (D + size) + D), *sum = window + LANES * D, *x = sum + LANES * size;
        int32_t *last = filters + member * LANES * (S + K), *before = last + LANES * S; /* of the filters in a pose */
        for (long row = N * member / crew, n; row < N * (member + 1) / crew; row += n) {
            n = least(LANES, N * (member + 1) / crew - row);
            memset(last, 0xff, sizeof(int32_t) * LANES * S);
            memset(sum, 0, sizeof(float) * LANES * size);
            for (long k = 0; k < K; k++)
                for (long i = 0; i < n; i++) {
                    long s = pose[k * N + row + i];
                    if (s == OFF)
                        continue;
                    before[k * LANES + i] = last[s * LANES + i];
                    last[s * LANES + i] = k;
                }
            for (long t = 0; t < some; t++) {
                for (long i = 0; i < n; i++) {
                    memset(x, 0, sizeof(float) * D);
                    for (long s = t; s < S; s += some)
                        for (long k = last[s * LANES + i]; k != OFF; k = before[k * LANES + i])
                            if (listed)
                                add_turned(x, W, brief, k, s / some, D, m);
                            else
                                add(x, 1, W[0], brief, k * D, D);
                    if (listed)
                        put_together(x, D, listed, m, window + i);
                    else
                        for (long j = 0; j < D; j++)
                            window[j * LANES + i] = x[j];
                }
                for (long d = 0; d < D1; d++)
                    for (long c = 0; c < C; c++) {
                        Vector *own = (Vector *)sum + d * C + c, total = *own;
                        for (long e = starts[d * S + t]; e < starts[d * S + t + 1]; e++)
                            total += values[e] * ((Vector *)window)[columns[e] * C + c];
                        *own = total;
                    }
            }
            for (long i = 0; i < n; i++)
                for (long j = 0; j < size; j++)
                    field[(row + i) * size + j] = sum[j * LANES + i];
        }
    }
}

/* The weighted sum of listed rows of x, n numbers of each. */
static inline void weigh(float *sum, const int32_t *range, const int32_t *listed, const float *weight, const float *x,
                         long width, long n)
{
    if (n == FEW) {
        Vector a = {0}, b = {0}, c = {0}, d = {0};
        for (long e = range[0]; e < range[1]; e++) {
            const Vector *row = (const Vector *)(x + listed[e] * width);
            a += weight[e] * row[0];
            b += weight[e] * row[1];
            c += weight[e] * row[2];
            d += weight[e] * row[3];
        }
        memcpy(sum, (Vector[4]){a, b, c, d}, sizeof(float) * FEW);
        return;
    }
    EACH(i, n) sum[i] = 0;
    for (long e = range[0]; e < range[1]; e++) {
        const float *row = x + listed[e] * width;
        EACH(i, n) sum[i] += weight[e] * row[i];
    }
}

/* Rows of a sparse matrix times x, (columns, C N): N inputs, of which pixels have C channels, in `poses` poses.

   A row is a pixel in a pose, pose after pose; they become rows of pixels and channels, (rows C / poses, poses N). */
void move(const int32_t *starts, const int32_t *columns, const float *values, long rows, long poses, const float *x,
          long C, long N, void *moved, int brief)
{
    SHARED(rows * C * N) for (long row = 0; row < rows; row++)
        for (long c = 0; c < C; c++)
            for (long next = 0; next < N; next += FEW) {
                long n = least(FEW, N), at = least(next, N - n); /* the last ones may be among those before */
                float sum[FEW];
                weigh(sum, starts + row, columns, values, x + c * N + at, C * N, n);
                store(moved, brief, ((row / poses * C + c) * poses + row % poses) * N + at, sum, n);
            }
}

/* velocity = momentum velocity + rate gradient - decay t, and t += velocity. */
void descend(float *t, float *velocity, const void *gradient, int brief, long size, float rate, float momentum,
             float decay)
{
    SHARED(size) for (long at = 0; at < size; at += BLOCK)
    {
        long n = least(BLOCK, size - at);
        float x[BLOCK], *some = t + at, *fast = velocity + at;
        load(x, gradient, brief, at, 0, n);
        EACH(i, n)
        {
            fast[i] = momentum * fast[i] + rate * x[i] - decay * some[i];
            some[i] += fast[i];
        }
    }
}
