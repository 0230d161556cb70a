/* The least a verification can do: one bare pass over the rows that it reads last.
 *
 * The sums have the arrays' own type, which no verifier could afford.
 */
#include <stdint.h>

/* sums[r] = sum of max(0, p - q) over row r, or of p where q is null. */
#define PASS(T)                                                                  \
    static T sum_##T(const T *p, const T *q, int64_t n) {                        \
        T sum = 0;                                                               \
        if (q) {                                                                 \
            _Pragma("omp simd reduction(+ : sum)")                               \
            for (int64_t i = 0; i < n; ++i) {                                    \
                const T difference = p[i] - q[i];                                \
                sum += difference > 0 ? difference : 0;                          \
            }                                                                    \
        } else {                                                                 \
            _Pragma("omp simd reduction(+ : sum)")                               \
            for (int64_t i = 0; i < n; ++i) sum += p[i];                         \
        }                                                                        \
        return sum;                                                              \
    }                                                                            \
    void pass_##T(const T *const *p, const T *const *q, int64_t rows, int64_t n, \
                  double *sums) {                                                \
        for (int64_t r = 0; r < rows; ++r) sums[r] = (double)sum_##T(p[r], q[r], n); \
    }

typedef float float32;
typedef double float64;
PASS(float32)
PASS(float64)
