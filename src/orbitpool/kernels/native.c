/* What a CPU does between products of matrices, each number read once: `native.py` builds and calls it.

   Letters as in the paper: N inputs, K filters of D pixels in S poses. What has an entry for each filter, pose and input
   lies in memory as (K, S, N). Numbers are float32, or bfloat16 where a function is told that they are `brief`. Threads
   share filters or inputs, never a sum, so results do not depend on how many there are. */

#include <stdint.h>
#include <string.h>

#define BLOCK 256 /* inputs or pixels at a time: a few rows of them stay in the first cache */
#define ALONE 32768 /* numbers, up to which one thread has done them before others are awake */
#define OFF (-1)  /* the pose of a filter that is not there */
#define LEAST (-80.0f) /* whose exponential is taken as nought: what is smaller slows processors down */
#define MOST 40.0f /* logits from which on probabilities are one */

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

/* Four quarters of row k, of which `part` has the even part, the odd one and two more: n of m numbers of each.

   Even parts have some numbers more, `fixed` ones, which no quarter turn moves. */
static inline void merge(const void *const *part, int brief, long k, long m, long fixed, long at, long n,
                         float (*quarter)[BLOCK])
{
    float even[BLOCK], odd[BLOCK];
    load(even, part[0], brief, k * (m + fixed) + at, 0, n);
    load(odd, part[1], brief, k * m + at, 0, n);
    load(quarter[2], part[2], brief, 2 * k * m + at, 0, n);
    load(quarter[3], part[2], brief, (2 * k + 1) * m + at, 0, n);
    EACH(i, n)
    {
        float sum = even[i] + odd[i], difference = even[i] - odd[i], x = quarter[2][i], y = quarter[3][i];
        quarter[0][i] = sum + x;
        quarter[1][i] = difference + y;
        quarter[2][i] = sum - x;
        quarter[3][i] = difference - y;
    }
}

/* Logits of filter k for n inputs, in rows that are N apart, from products with it: whole, or in parts. */
static inline void join(const void *const *part, int brief, long k, long S, long N, long at, long n, const float *bias,
                        float *a)
{
    if (part[1]) {
        float quarter[4][BLOCK];
        for (long t = 0; t < S / 4; t++) {
            merge(part, brief, k, S / 4 * N, 0, t * N + at, n, quarter);
            for (long s = t, q = 0; q < 4; q++, s += S / 4)
                EACH(i, n) a[s * N + i] = quarter[q][i] + bias[s];
        }
    } else
        for (long s = 0; s < S; s++) {
            load(a + s * N, part[0], brief, (k * S + s) * N + at, 0, n);
            EACH(i, n) a[s * N + i] += bias[s];
        }
}

/* Poses of a filter for n inputs, drawn from probabilities in rows that are N apart by the random numbers from a place on. */
static inline void draw(const float *p, long S, long N, long n, uint64_t seed, long place, int32_t *pose)
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
            left[i] -= p[s * N + i]; /* below nought from the pose on that is drawn */
            passed[i] += left[i] >= 0;
        }
    EACH(i, n) pose[i] = passed[i] == S ? OFF : passed[i];
}

/* Probability p of each pose, z of any, the mean of p over inputs; with a place for it, the pose drawn for each.

   `part` holds the products: (K, S N) and two of nothing, or those with even filters, odd ones (K, S N / 4) and the rest
   (K, S N / 2). Of the random numbers for all `batch` inputs, those from `first` on are for these. */
void infer(const void *const *part, int brief, const float *bias, long K, long S, long N, float *p, float *z,
           float *mean, int32_t *pose, uint64_t seed, long first, long batch)
{
    SHARED(K * S * N) for (long k = 0; k < K; k++)
    {
        memset(mean + k * S, 0, sizeof(float) * S);
        for (long at = 0; at < N; at += BLOCK) {
            long n = least(BLOCK, N - at);
            float peak[BLOCK], share[BLOCK], on[BLOCK], *a = p + k * S * N + at;
            join(part, brief, k, S, N, at, n, bias + k * S, a);
            EACH(i, n) peak[i] = 0;
            for (long s = 0; s < S; s++)
                EACH(i, n) peak[i] = a[s * N + i] > peak[i] ? a[s * N + i] : peak[i];
            EACH(i, n) on[i] = 0;
            for (long s = 0; s < S; s++)
                EACH(i, n) on[i] += a[s * N + i] = exponential(a[s * N + i] - peak[i]);
            EACH(i, n)
            {
                share[i] = 1 / (on[i] + exponential(-peak[i]));
                z[k * N + at + i] = on[i] * share[i];
            }
            for (long s = 0; s < S; s++) {
                float sum = 0, *x = a + s * N;
                _Pragma("omp simd reduction(+ : sum)") for (long i = 0; i < n; i++) sum += x[i] *= share[i];
                mean[k * S + s] += sum / N;
            }
            if (pose)
                draw(a, S, N, n, seed, k * batch + first + at, pose + k * N + at);
        }
    }
}

/* p times 1 - weight_k (1 - z), in place, and its mean over inputs. */
void tilt(float *p, const float *z, const float *weight, long K, long S, long N, float *mean)
{
    SHARED(K * S * N) for (long k = 0; k < K; k++)
    {
        memset(mean + k * S, 0, sizeof(float) * S);
        for (long at = 0; at < N; at += BLOCK) {
            long n = least(BLOCK, N - at);
            float factor[BLOCK];
            EACH(i, n) factor[i] = 1 - weight[k] * (1 - z[k * N + at + i]);
            for (long s = 0; s < S; s++) {
                float sum = 0, *x = p + (k * S + s) * N + at;
                _Pragma("omp simd reduction(+ : sum)") for (long i = 0; i < n; i++) sum += x[i] *= factor[i];
                mean[k * S + s] += sum / N;
            }
        }
    }
}

/* Factor times rows of x, (K, columns), into places of wider matrices: whole, or taken apart as `merge` joins them.

   What is taken apart has four quarters of m columns and then fixed ones, in the order that is listed, if one is. */
void split(const void *x, int brief, float factor, long K, long columns, const int64_t *listed, long m,
           void *const *part, const long *place, const long *width, int brief_parts)
{
    long quarter = part[1] ? m : 0, whole = columns - 4 * quarter; /* what is not taken apart follows in the first part */
    SHARED(K * columns) for (long k = 0; k < K; k++)
    {
        float a[BLOCK], b[BLOCK], c[BLOCK], d[BLOCK], *some[4] = {a, b, c, d};
        for (long at = 0; at < quarter; at += BLOCK) {
            long n = least(BLOCK, quarter - at);
            for (long q = 0; q < 4; q++)
                load(some[q], x, brief, k * columns + (listed ? 0 : q * m + at), listed ? listed + q * m + at : 0, n);
            EACH(i, n)
            {
                float sum = factor * (a[i] + c[i]), later = factor * (b[i] + d[i]);
                c[i] = factor * (a[i] - c[i]);
                d[i] = factor * (b[i] - d[i]);
                a[i] = sum + later;
                b[i] = sum - later;
            }
            store(part[0], brief_parts, k * width[0] + place[0] + at, a, n);
            store(part[1], brief_parts, k * width[1] + place[1] + at, b, n);
            store(part[2], brief_parts, k * width[2] + place[2] + at, c, n);
            store(part[2], brief_parts, k * width[2] + place[2] + m + at, d, n);
        }
        for (long at = 0; at < whole; at += BLOCK) {
            long n = least(BLOCK, whole - at), after = 4 * quarter + at;
            load(a, x, brief, k * columns + (listed ? 0 : after), listed ? listed + after : 0, n);
            EACH(i, n) a[i] *= factor;
            store(part[0], brief_parts, k * width[0] + place[0] + quarter + at, a, n);
        }
    }
}

/* What `split` takes apart, but for factors of two and four, (K, 4 m + fixed), in the order that is listed. */
void unite(const void *const *part, int brief, long K, long m, long fixed, const int64_t *listed, float *x)
{
    SHARED(K * 4 * m) for (long k = 0; k < K; k++)
    {
        float *row = x + k * (4 * m + fixed), quarter[4][BLOCK];
        for (long at = 0; at < m; at += BLOCK) {
            long n = least(BLOCK, m - at);
            merge(part, brief, k, m, fixed, at, n, quarter);
            for (long q = 0; q < 4; q++)
                for (long i = 0; i < n; i++)
                    row[listed[q * m + at + i]] = quarter[q][i];
        }
        for (long f = 0; f < fixed; f++) {
            load(row + listed[4 * m + f], part[0], brief, k * (m + fixed) + m + f, 0, 1);
        }
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

/* Sums of the filters that are on, in each pose of inputs first to last: (last - first, S, D).

   With pixels listed for each of four quarter turns, (4, D), sums in later poses join those in the first S / 4. */
void add_up(const int32_t *pose, const void *W, int brief, long K, long S, long N, long D, long first, long last,
            const int64_t *listed, float *sum)
{
    SHARED((last - first) * K) for (long row = first; row < last; row++)
    {
        float *own = sum + (row - first) * S * D;
        memset(own, 0, sizeof(float) * S * D);
        for (long k = 0; k < K; k++) {
            long s = pose[k * N + row];
            if (s == OFF)
                continue;
            float *x = own + s * D;
            if (brief)
                EACH(i, D) x[i] += lengthened(((const uint16_t *)W)[k * D + i]);
            else
                EACH(i, D) x[i] += ((const float *)W)[k * D + i];
        }
        for (long s = S / 4; listed && s < S; s++) {
            const int64_t *pixel = listed + s / (S / 4) * D;
            float *to = own + s % (S / 4) * D, *from = own + s * D;
            EACH(i, D) to[i] += from[pixel[i]];
        }
    }
}

/* velocity = momentum velocity + step - decay t, and t += velocity. */
void descend(float *t, float *velocity, const void *step, int brief, long size, float momentum, float decay)
{
    SHARED(size) for (long at = 0; at < size; at += BLOCK)
    {
        long n = least(BLOCK, size - at);
        float x[BLOCK], *some = t + at, *fast = velocity + at;
        load(x, step, brief, at, 0, n);
        EACH(i, n)
        {
            fast[i] = momentum * fast[i] + x[i] - decay * some[i];
            some[i] += fast[i];
        }
    }
}
