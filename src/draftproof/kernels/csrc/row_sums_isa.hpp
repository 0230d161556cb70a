// The inner loops, written once in vector extensions and included once for each instruction set.
//
// The including file sets DRAFTPROOF_ISA (a namespace), DRAFTPROOF_VECTOR_BYTES and, on x86,
// DRAFTPROOF_MM (the prefix of its intrinsics), and switches the compiler's target. It has no
// include guard: that is the point.

namespace draftproof {
namespace DRAFTPROOF_ISA {

#define DRAFTPROOF_INLINE static inline __attribute__((always_inline))

constexpr int kFloats = DRAFTPROOF_VECTOR_BYTES / 4;
constexpr int kDoubles = DRAFTPROOF_VECTOR_BYTES / 8;
typedef float FloatV __attribute__((vector_size(DRAFTPROOF_VECTOR_BYTES)));
typedef float HalfV __attribute__((vector_size(DRAFTPROOF_VECTOR_BYTES / 2)));
typedef double DoubleV __attribute__((vector_size(DRAFTPROOF_VECTOR_BYTES)));
typedef std::int32_t Bits32V __attribute__((vector_size(DRAFTPROOF_VECTOR_BYTES)));
typedef std::int64_t Bits64V __attribute__((vector_size(DRAFTPROOF_VECTOR_BYTES)));

template <typename V, typename T>
DRAFTPROOF_INLINE V load_vector(const T* at) {
    V value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

// What compilers make of the generic forms costs two or three times these instructions.
#if DRAFTPROOF_X86
using Floats = decltype(DRAFTPROOF_MM(setzero_ps)());
using Doubles = decltype(DRAFTPROOF_MM(setzero_pd)());

DRAFTPROOF_INLINE DoubleV widen(HalfV half) {
#if DRAFTPROOF_VECTOR_BYTES == 16
    long long bits;
    __builtin_memcpy(&bits, &half, sizeof bits);
    return (DoubleV)_mm_cvtps_pd(_mm_castsi128_ps(_mm_cvtsi64_si128(bits)));
#elif DRAFTPROOF_VECTOR_BYTES == 32
    return (DoubleV)_mm256_cvtps_pd((__m128)half);
#else
    return (DoubleV)_mm512_cvtps_pd((__m256)half);
#endif
}

DRAFTPROOF_INLINE FloatV lesser(FloatV a, FloatV b) {
    return (FloatV)DRAFTPROOF_MM(min_ps)((Floats)a, (Floats)b);
}
DRAFTPROOF_INLINE DoubleV lesser(DoubleV a, DoubleV b) {
    return (DoubleV)DRAFTPROOF_MM(min_pd)((Doubles)a, (Doubles)b);
}
#else
DRAFTPROOF_INLINE DoubleV widen(HalfV half) { return __builtin_convertvector(half, DoubleV); }

template <typename V>
DRAFTPROOF_INLINE V lesser(V a, V b) {
    return a < b ? a : b;
}
#endif

DRAFTPROOF_INLINE DoubleV widen_sum(FloatV v) {  // low half + high half, in float64
    HalfV halves[2];
    __builtin_memcpy(halves, &v, sizeof v);
    return widen(halves[0]) + widen(halves[1]);
}

// sum + v, on the units that multiply: those that add are busy with the weights.
#if DRAFTPROOF_X86 && DRAFTPROOF_VECTOR_BYTES > 16
DRAFTPROOF_INLINE FloatV accumulate(FloatV sum, FloatV v) {
    return (FloatV)DRAFTPROOF_MM(fmadd_ps)((Floats)v, DRAFTPROOF_MM(set1_ps)(1), (Floats)sum);
}
DRAFTPROOF_INLINE DoubleV accumulate(DoubleV sum, DoubleV v) {
    return (DoubleV)DRAFTPROOF_MM(fmadd_pd)((Doubles)v, DRAFTPROOF_MM(set1_pd)(1), (Doubles)sum);
}
#else
template <typename V>
DRAFTPROOF_INLINE V accumulate(V sum, V v) {
    return sum + v;
}
#endif

template <typename V>
DRAFTPROOF_INLINE double total(V v) {
    double sum = 0;
    for (unsigned lane = 0; lane < sizeof(V) / sizeof v[0]; ++lane) sum += v[lane];
    return sum;
}

template <typename V>
DRAFTPROOF_INLINE bool any_sign(V bits) {
    bool any = false;
    for (unsigned lane = 0; lane < sizeof(V) / sizeof bits[0]; ++lane) any |= bits[lane] < 0;
    return any;
}

// What a pass accumulates beside the blocks' weights. In float32 a lane sums no more than two blocks,
// and where the mass of q counts no more than four numbers (kMassRoundoff).
template <typename Bits>
struct Masses {
    DoubleV p[2] = {}, q[2] = {};
    Bits signs = {};
    double p_tail = 0, q_tail = 0;
    bool sign_tail = false;

    void add_to(RowCheck& check) const {
        check.p_mass += p_tail + total(p[0] + p[1]);
        check.q_mass += q_tail + total(q[0] + q[1]);
        check.sign |= sign_tail || any_sign(signs);
    }
};
using Masses32 = Masses<Bits32V>;
using Masses64 = Masses<Bits64V>;

// A weight max(0, a - b) is a - min(a, b), and both are nonnegative iff that minimum is: one
// operation less than the plain way. NaN may give NaN, which the draw then does not trust.
//
// Differences and sums of four of them in float32, everything longer in float64. Each weight is
// thereby off by at most three roundings (kFastRoundoff), or by five of the scaled p's
// (kScaledRoundoff), which the draw certifies or repairs.
// kStreams blocks, `gap` numbers apart, are read side by side.
template <int kStreams, bool kScaled>
DRAFTPROOF_INLINE void residual_block(const float* p, const float* q, double scale,
                                      std::int64_t gap, int size, double* weights,
                                      std::int64_t weight_gap, Masses32& masses) {
    const float factor = static_cast<float>(scale);
    FloatV p_sums[2] = {}, q_sums[2] = {};
    DoubleV sums[kStreams] = {};
    int i = 0;
    for (; i + 4 * kFloats <= size; i += 4 * kFloats) {
        for (int s = 0; s < kStreams; ++s) {
            FloatV parts[4], b[4];
            for (int k = 0; k < 4; ++k) {
                const auto a = load_vector<FloatV>(p + s * gap + i + k * kFloats);
                b[k] = load_vector<FloatV>(q + s * gap + i + k * kFloats);
                const FloatV scaled = kScaled ? factor * a : a, both = lesser(scaled, b[k]);
                parts[k] = scaled - both;
                p_sums[k & 1] = accumulate(p_sums[k & 1], a);
                if (!kScaled) q_sums[k & 1] = accumulate(q_sums[k & 1], b[k]);
                masses.signs |= (Bits32V)both;
            }
            sums[s] += widen_sum((parts[0] + parts[1]) + (parts[2] + parts[3]));
            if (kScaled) masses.q[s & 1] += widen_sum((b[0] + b[1]) + (b[2] + b[3]));
        }
    }
    masses.p[0] += widen_sum(p_sums[0] + p_sums[1]);
    masses.q[0] += widen_sum(q_sums[0] + q_sums[1]);
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[s]);
        for (int j = i; j < size; ++j) {
            const float a = p[s * gap + j], b = q[s * gap + j];
            const double difference = scale * a - static_cast<double>(b);
            weight += difference > 0 ? difference : 0;
            masses.p_tail += a;
            masses.q_tail += b;
            masses.sign_tail |= a < 0 || b < 0;
        }
        weights[s * weight_gap] = weight;
    }
}

#if DRAFTPROOF_X86 && DRAFTPROOF_VECTOR_BYTES > 16
#define DRAFTPROOF_FUSES 1
// The scale is a float32, so that only the difference is rounded.
template <int kStreams>
DRAFTPROOF_INLINE void fused_block(const float* p, const float* q, float scale, std::int64_t gap,
                                   int size, double* weights, std::int64_t weight_gap,
                                   Ahead& ahead) {
    constexpr int kLine = 64, kSecondLevel = 2;
    const Floats factor = DRAFTPROOF_MM(set1_ps)(scale);
    DoubleV sums[kStreams] = {};
    int i = 0;
    for (; i + 4 * kFloats <= size; i += 4 * kFloats) {
        if (ahead.at < ahead.half) {
            for (const char* row : {ahead.p + ahead.at, ahead.q + ahead.at}) {
                __builtin_prefetch(row, 0, kSecondLevel);
                __builtin_prefetch(row + ahead.half, 0, kSecondLevel);
            }
            ahead.at += kLine;
        }
        for (int s = 0; s < kStreams; ++s) {
            FloatV parts[4];
            for (int k = 0; k < 4; ++k) {
                const auto a = load_vector<Floats>(p + s * gap + i + k * kFloats);
                const auto b = load_vector<Floats>(q + s * gap + i + k * kFloats);
                const Floats difference = DRAFTPROOF_MM(fmsub_ps)(factor, a, b);
                parts[k] = (FloatV)DRAFTPROOF_MM(max_ps)(difference, DRAFTPROOF_MM(setzero_ps)());
            }
            sums[s] += widen_sum((parts[0] + parts[1]) + (parts[2] + parts[3]));
        }
    }
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[s]);
        for (int j = i; j < size; ++j) {
            const double difference =
                static_cast<double>(scale) * p[s * gap + j] - q[s * gap + j];
            weight += difference > 0 ? difference : 0;
        }
        weights[s * weight_gap] = weight;
    }
}
#endif

template <int kStreams>
DRAFTPROOF_INLINE void scaled_block(const double* p, const double* q, double scale,
                                    std::int64_t gap, int size, double* weights,
                                    std::int64_t weight_gap, Masses64& masses) {
    DoubleV sums[kStreams][2] = {};
    int i = 0;
    for (; i + 2 * kDoubles <= size; i += 2 * kDoubles) {
        for (int s = 0; s < kStreams; ++s) {
            for (int k = 0; k < 2; ++k) {
                const auto a = load_vector<DoubleV>(p + s * gap + i + k * kDoubles);
                const auto b = load_vector<DoubleV>(q + s * gap + i + k * kDoubles);
                const DoubleV scaled = scale * a;
                sums[s][k] += scaled - lesser(scaled, b);
                masses.p[k] = accumulate(masses.p[k], a);
                masses.q[k] = accumulate(masses.q[k], b);
                masses.signs |= (Bits64V)lesser(a, b);
            }
        }
    }
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[s][0] + sums[s][1]);
        for (int j = i; j < size; ++j) {
            const double a = p[s * gap + j], b = q[s * gap + j], difference = scale * a - b;
            weight += difference > 0 ? difference : 0;
            masses.p_tail += a;
            masses.q_tail += b;
            masses.sign_tail |= a < 0 || b < 0;
        }
        weights[s * weight_gap] = weight;
    }
}

// The weights max(0, scale * a - b) of float32 rows, without a float32 rounding.
template <int kStreams>
DRAFTPROOF_INLINE void scaled_block(const float* p, const float* q, double scale,
                                    std::int64_t gap, int size, double* weights,
                                    std::int64_t weight_gap, Masses64& masses) {
    DoubleV sums[2 * kStreams] = {};
    int i = 0;
    for (; i + kFloats <= size; i += kFloats) {
        for (int s = 0; s < 2 * kStreams; ++s) {
            const std::int64_t at = s / 2 * gap + i + s % 2 * (kFloats / 2);
            const DoubleV a = widen(load_vector<HalfV>(p + at));
            const DoubleV b = widen(load_vector<HalfV>(q + at));
            const DoubleV scaled = scale * a;
            sums[s] += scaled - lesser(scaled, b);
            masses.p[s & 1] = accumulate(masses.p[s & 1], a);
            masses.q[s & 1] = accumulate(masses.q[s & 1], b);
            masses.signs |= (Bits64V)lesser(a, b);
        }
    }
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[2 * s] + sums[2 * s + 1]);
        for (int j = i; j < size; ++j) {
            const double a = p[s * gap + j], b = q[s * gap + j], difference = scale * a - b;
            weight += difference > 0 ? difference : 0;
            masses.p_tail += a;
            masses.q_tail += b;
            masses.sign_tail |= a < 0 || b < 0;
        }
        weights[s * weight_gap] = weight;
    }
}

template <int kStreams>
DRAFTPROOF_INLINE void plain_block(const float* p, std::int64_t gap, int size, double* weights,
                                   std::int64_t weight_gap, Masses32& masses) {
    DoubleV sums[kStreams] = {};
    int i = 0;
    for (; i + 4 * kFloats <= size; i += 4 * kFloats) {
        for (int s = 0; s < kStreams; ++s) {
            FloatV parts[4];
            for (int k = 0; k < 4; ++k) {
                parts[k] = load_vector<FloatV>(p + s * gap + i + k * kFloats);
                masses.signs |= (Bits32V)parts[k];
            }
            sums[s] += widen_sum((parts[0] + parts[1]) + (parts[2] + parts[3]));
        }
    }
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[s]);
        for (int j = i; j < size; ++j) {
            weight += p[s * gap + j];
            masses.sign_tail |= p[s * gap + j] < 0;
        }
        masses.p_tail += weight;
        weights[s * weight_gap] = weight;
    }
}

// The same without a float32 rounding.
template <int kStreams>
DRAFTPROOF_INLINE void exact_block(const float* p, std::int64_t gap, int size, double* weights,
                                   std::int64_t weight_gap) {
    DoubleV sums[2 * kStreams] = {};
    int i = 0;
    for (; i + kFloats <= size; i += kFloats) {
        for (int s = 0; s < 2 * kStreams; ++s) {
            const std::int64_t at = s / 2 * gap + i + s % 2 * (kFloats / 2);
            sums[s] += widen(load_vector<HalfV>(p + at));
        }
    }
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[2 * s] + sums[2 * s + 1]);
        for (int j = i; j < size; ++j) weight += p[s * gap + j];
        weights[s * weight_gap] = weight;
    }
}

template <int kStreams>
DRAFTPROOF_INLINE void plain_block(const double* p, std::int64_t gap, int size, double* weights,
                                   std::int64_t weight_gap, Masses64& masses) {
    DoubleV sums[2 * kStreams] = {};
    int i = 0;
    for (; i + 2 * kDoubles <= size; i += 2 * kDoubles) {
        for (int s = 0; s < kStreams; ++s) {
            const double* at = p + s * gap + i;
            sums[2 * s] += load_vector<DoubleV>(at);
            sums[2 * s + 1] += load_vector<DoubleV>(at + kDoubles);
            masses.signs |= load_vector<Bits64V>(at) | load_vector<Bits64V>(at + kDoubles);
        }
    }
    for (int s = 0; s < kStreams; ++s) {
        double weight = total(sums[2 * s] + sums[2 * s + 1]);
        for (int j = i; j < size; ++j) {
            weight += p[s * gap + j];
            masses.sign_tail |= p[s * gap + j] < 0;
        }
        masses.p_tail += weight;
        weights[s * weight_gap] = weight;
    }
}

// Visit the blocks of n numbers: equal parts of the full blocks side by side, then the rest. Memory
// serves four streams best: two of a pair of rows, or four of one.
template <int kParts, typename ManyBlocks, typename OneBlock>
DRAFTPROOF_INLINE void visit_blocks(std::int64_t n, ManyBlocks many, OneBlock one) {
    const std::int64_t part = n / kBlock / kParts;
    for (std::int64_t j = 0; j < part; ++j) many(j, part);
    for (std::int64_t j = kParts * part; j * kBlock < n; ++j) {
        const std::int64_t left = n - j * kBlock;
        one(j, static_cast<int>(left < kBlock ? left : kBlock));
    }
}

template <bool kScaled>
DRAFTPROOF_INLINE void residual(const float* p, const float* q, double scale, std::int64_t n,
                                double* weights, RowCheck& check) {
    Masses32 masses;
    visit_blocks<2>(
        n,
        [&](std::int64_t j, std::int64_t half) __attribute__((always_inline)) {
            residual_block<2, kScaled>(p + j * kBlock, q + j * kBlock, scale, half * kBlock,
                                       kBlock, weights + j, half, masses);
        },
        [&](std::int64_t j, int size) __attribute__((always_inline)) {
            residual_block<1, kScaled>(p + j * kBlock, q + j * kBlock, scale, 0, size,
                                       weights + j, 0, masses);
        });
    masses.add_to(check);
}

static void residual_float32(const float* p, const float* q, std::int64_t n, double* weights,
                             RowCheck& check) {
    residual<false>(p, q, 1, n, weights, check);
}
static void fast_residual_float32(const float* p, const float* q, double scale, std::int64_t n,
                                  double* weights, RowCheck& check) {
    residual<true>(p, q, scale, n, weights, check);
}

#if DRAFTPROOF_FUSES
// Backwards by runs of blocks, for within a run memory is read ahead.
static void fused_residual_float32(const float* p, const float* q, float scale, std::int64_t n,
                                   bool backwards, double* weights, Ahead& ahead) {
    constexpr std::int64_t kRuns = 8;
    const std::int64_t half = n / kBlock / 2;
    for (std::int64_t turn = 0; turn < kRuns; ++turn) {
        const std::int64_t run = backwards ? kRuns - 1 - turn : turn;
        for (std::int64_t j = half * run / kRuns; j < half * (run + 1) / kRuns; ++j) {
            fused_block<2>(p + j * kBlock, q + j * kBlock, scale, half * kBlock, kBlock,
                           weights + j, half, ahead);
        }
    }
    for (std::int64_t j = 2 * half; j * kBlock < n; ++j) {
        const std::int64_t left = n - j * kBlock;
        fused_block<1>(p + j * kBlock, q + j * kBlock, scale, 0,
                       static_cast<int>(left < kBlock ? left : kBlock), weights + j, 0, ahead);
    }
}
#else
constexpr auto fused_residual_float32 = nullptr;
#endif

template <typename T>
DRAFTPROOF_INLINE void scaled_residual(const T* p, const T* q, double scale, std::int64_t n,
                                       double* weights, RowCheck& check) {
    Masses64 masses;
    visit_blocks<2>(
        n,
        [&](std::int64_t j, std::int64_t half) __attribute__((always_inline)) {
            scaled_block<2>(p + j * kBlock, q + j * kBlock, scale, half * kBlock, kBlock,
                            weights + j, half, masses);
        },
        [&](std::int64_t j, int size) __attribute__((always_inline)) {
            scaled_block<1>(p + j * kBlock, q + j * kBlock, scale, 0, size, weights + j, 0,
                            masses);
        });
    masses.add_to(check);
}

template <typename T, typename Total>
DRAFTPROOF_INLINE void plain(const T* p, std::int64_t n, double* weights, RowCheck& check) {
    Total masses;
    visit_blocks<4>(
        n,
        [&](std::int64_t j, std::int64_t part) __attribute__((always_inline)) {
            plain_block<4>(p + j * kBlock, part * kBlock, kBlock, weights + j, part, masses);
        },
        [&](std::int64_t j, int size) __attribute__((always_inline)) {
            plain_block<1>(p + j * kBlock, 0, size, weights + j, 0, masses);
        });
    masses.add_to(check);
}

static void scaled_residual_float32(const float* p, const float* q, double scale, std::int64_t n,
                                    double* weights, RowCheck& check) {
    scaled_residual(p, q, scale, n, weights, check);
}
static void scaled_residual_float64(const double* p, const double* q, double scale,
                                    std::int64_t n, double* weights, RowCheck& check) {
    scaled_residual(p, q, scale, n, weights, check);
}
static void exact_plain_float32(const float* p, std::int64_t n, double* weights) {
    visit_blocks<4>(
        n,
        [&](std::int64_t j, std::int64_t part) __attribute__((always_inline)) {
            exact_block<4>(p + j * kBlock, part * kBlock, kBlock, weights + j, part);
        },
        [&](std::int64_t j, int size) __attribute__((always_inline)) {
            exact_block<1>(p + j * kBlock, 0, size, weights + j, 0);
        });
}
static void plain_float32(const float* p, std::int64_t n, double* weights, RowCheck& check) {
    plain<float, Masses32>(p, n, weights, check);
}
static void plain_float64(const double* p, std::int64_t n, double* weights, RowCheck& check) {
    plain<double, Masses64>(p, n, weights, check);
}

template <typename V, typename T>
DRAFTPROOF_INLINE T largest(const T* x, std::int64_t n) {
    constexpr int lanes = sizeof(V) / sizeof(T);
    T best = -std::numeric_limits<T>::infinity();
    V best0 = best - V{}, best1 = best0;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        const V a0 = load_vector<V>(x + i), a1 = load_vector<V>(x + i + lanes);
        best0 = a0 > best0 ? a0 : best0;  // false for NaN
        best1 = a1 > best1 ? a1 : best1;
    }
    best0 = best1 > best0 ? best1 : best0;
    for (int lane = 0; lane < lanes; ++lane) best = best0[lane] > best ? best0[lane] : best;
    for (; i < n; ++i) best = x[i] > best ? x[i] : best;
    return best;
}

static float largest_float32(const float* x, std::int64_t n) { return largest<FloatV>(x, n); }
static double largest_float64(const double* x, std::int64_t n) { return largest<DoubleV>(x, n); }

static void scaled_weights_float32(const float* p, const float* q, double scale, std::int64_t n,
                                   double* out) {
    std::int64_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) {
        const DoubleV scaled = scale * widen(load_vector<HalfV>(p + i));
        const DoubleV weights = scaled - lesser(scaled, widen(load_vector<HalfV>(q + i)));
        __builtin_memcpy(out + i, &weights, sizeof weights);
    }
    for (; i < n; ++i) {
        const double difference = scale * p[i] - q[i];
        out[i] = difference > 0 ? difference : 0;
    }
}

constexpr RowSums kRowSums = {
    residual_float32,        fast_residual_float32,   fused_residual_float32,
    scaled_residual_float32, scaled_residual_float64, scaled_weights_float32,
    plain_float32,           plain_float64,           exact_plain_float32,
    largest_float32,         largest_float64,
};

#undef DRAFTPROOF_INLINE
#undef DRAFTPROOF_FUSES

}  // namespace DRAFTPROOF_ISA
}  // namespace draftproof
