/* The least a verification can do: one pass over the rows that it reads last.
 *
 * A row is read as four streams at once: memory serves them faster than a single one, and four sums
 * wait for nothing. Accumulators have the arrays' type, which no verifier could afford.
 */
#include <stdint.h>

#define SUM_POSITIVE(weight)                                    \
    do {                                                        \
        const int64_t quarter = n / 4;                          \
        _Pragma("omp simd reduction(+ : s0, s1, s2, s3)")       \
        for (int64_t i = 0; i < quarter; ++i) {                 \
            s0 += weight(i);                                    \
            s1 += weight(i + quarter);                          \
            s2 += weight(i + 2 * quarter);                      \
            s3 += weight(i + 3 * quarter);                      \
        }                                                       \
        for (int64_t i = 4 * quarter; i < n; ++i) s0 += weight(i); \
    } while (0)

#define RESIDUAL(i) (p[i] - q[i] > 0 ? p[i] - q[i] : 0)
#define PLAIN(i) (p[i])

/* sums[r] = sum of max(0, p - q) over row r, or of p where q is null. */
#define PASS(T)                                                                      \
    static T sum_##T(const T *p, const T *q, int64_t n) {                            \
        T s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                            \
        if (q)                                                                       \
            SUM_POSITIVE(RESIDUAL);                                                  \
        else                                                                         \
            SUM_POSITIVE(PLAIN);                                                     \
        return (s0 + s1) + (s2 + s3);                                                \
    }                                                                                \
    void pass_##T(const T *const *p, const T *const *q, int64_t rows, int64_t n,     \
                  double *sums) {                                                    \
        for (int64_t r = 0; r < rows; ++r) sums[r] = (double)sum_##T(p[r], q[r], n); \
    }

typedef float float32;
typedef double float64;
PASS(float32)
PASS(float64)
