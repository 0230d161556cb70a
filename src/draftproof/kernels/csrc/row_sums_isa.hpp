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

// NaN gives 0 (max returns its second operand then); its row is found bad by its mass.
DRAFTPROOF_INLINE FloatV positive_part(FloatV v) {
    return (FloatV)DRAFTPROOF_MM(max_ps)((Floats)v, DRAFTPROOF_MM(setzero_ps)());
}
DRAFTPROOF_INLINE DoubleV positive_part(DoubleV v) {
    return (DoubleV)DRAFTPROOF_MM(max_pd)((Doubles)v, DRAFTPROOF_MM(setzero_pd)());
}
#else
DRAFTPROOF_INLINE DoubleV widen(HalfV half) { return __builtin_convertvector(half, DoubleV); }

template <typename V>
DRAFTPROOF_INLINE V positive_part(V v) {
    const V zero = {};
    return v > zero ? v : zero;
}
#endif

DRAFTPROOF_INLINE DoubleV widen_sum(FloatV v) {  // low half + high half, in float64
    HalfV halves[2];
    __builtin_memcpy(halves, &v, sizeof v);
    return widen(halves[0]) + widen(halves[1]);
}

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

// Differences and sums of two of them in float32, everything longer in float64. Each weight is
// thereby off by at most two roundings (kFastRoundoff), which the draw certifies or repairs.
void residual_float32(const float* p, const float* q, std::int64_t n, double* weights,
                      RowCheck& check) {
    Bits32V signs = {};
    bool tail_sign = false;
    for (std::int64_t start = 0; start < n; start += kBlock) {
        const int size = static_cast<int>(n - start < kBlock ? n - start : kBlock);
        DoubleV sum0 = {}, sum1 = {};
        FloatV p0 = {}, p1 = {}, q0 = {}, q1 = {};
        int i = 0;
        for (; i + 4 * kFloats <= size; i += 4 * kFloats) {
            __builtin_prefetch(reinterpret_cast<const char*>(p + i) + kPrefetchBytes);
            __builtin_prefetch(reinterpret_cast<const char*>(q + i) + kPrefetchBytes);
            const auto a0 = load_vector<FloatV>(p + i), b0 = load_vector<FloatV>(q + i);
            const auto a1 = load_vector<FloatV>(p + i + kFloats);
            const auto b1 = load_vector<FloatV>(q + i + kFloats);
            const auto a2 = load_vector<FloatV>(p + i + 2 * kFloats);
            const auto b2 = load_vector<FloatV>(q + i + 2 * kFloats);
            const auto a3 = load_vector<FloatV>(p + i + 3 * kFloats);
            const auto b3 = load_vector<FloatV>(q + i + 3 * kFloats);
            sum0 += widen_sum(positive_part(a0 - b0) + positive_part(a1 - b1));
            sum1 += widen_sum(positive_part(a2 - b2) + positive_part(a3 - b3));
            p0 += a0 + a1;
            p1 += a2 + a3;
            q0 += b0 + b1;
            q1 += b2 + b3;
            signs |= ((Bits32V)a0 | (Bits32V)a1) | ((Bits32V)a2 | (Bits32V)a3);
            signs |= ((Bits32V)b0 | (Bits32V)b1) | ((Bits32V)b2 | (Bits32V)b3);
        }
        double weight = total(sum0 + sum1);
        double p_mass = total(p0 + p1), q_mass = total(q0 + q1);
        for (; i < size; ++i) {
            const double difference = static_cast<double>(p[i]) - static_cast<double>(q[i]);
            weight += difference > 0 ? difference : 0;
            p_mass += p[i];
            q_mass += q[i];
            tail_sign |= p[i] < 0 || q[i] < 0;
        }
        *weights++ = weight;
        check.p_mass += p_mass;
        check.q_mass += q_mass;
        p += size;
        q += size;
    }
    check.sign |= tail_sign || any_sign(signs);
}

void residual_float64(const double* p, const double* q, std::int64_t n, double* weights,
                      RowCheck& check) {
    Bits64V signs = {};
    bool tail_sign = false;
    DoubleV p0 = {}, p1 = {}, q0 = {}, q1 = {};
    for (std::int64_t start = 0; start < n; start += kBlock) {
        const int size = static_cast<int>(n - start < kBlock ? n - start : kBlock);
        DoubleV sum0 = {}, sum1 = {};
        int i = 0;
        for (; i + 2 * kDoubles <= size; i += 2 * kDoubles) {
            __builtin_prefetch(reinterpret_cast<const char*>(p + i) + kPrefetchBytes);
            __builtin_prefetch(reinterpret_cast<const char*>(q + i) + kPrefetchBytes);
            const auto a0 = load_vector<DoubleV>(p + i), b0 = load_vector<DoubleV>(q + i);
            const auto a1 = load_vector<DoubleV>(p + i + kDoubles);
            const auto b1 = load_vector<DoubleV>(q + i + kDoubles);
            sum0 += positive_part(a0 - b0);
            sum1 += positive_part(a1 - b1);
            p0 += a0;
            p1 += a1;
            q0 += b0;
            q1 += b1;
            signs |= ((Bits64V)a0 | (Bits64V)a1) | ((Bits64V)b0 | (Bits64V)b1);
        }
        double weight = total(sum0 + sum1);
        for (; i < size; ++i) {
            const double difference = p[i] - q[i];
            weight += difference > 0 ? difference : 0;
            check.p_mass += p[i];
            check.q_mass += q[i];
            tail_sign |= p[i] < 0 || q[i] < 0;
        }
        *weights++ = weight;
        p += size;
        q += size;
    }
    check.p_mass += total(p0 + p1);
    check.q_mass += total(q0 + q1);
    check.sign |= tail_sign || any_sign(signs);
}

void plain_float32(const float* p, std::int64_t n, double* weights, RowCheck& check) {
    Bits32V signs = {};
    bool tail_sign = false;
    for (std::int64_t start = 0; start < n; start += kBlock) {
        const int size = static_cast<int>(n - start < kBlock ? n - start : kBlock);
        DoubleV sum0 = {}, sum1 = {}, sum2 = {}, sum3 = {};
        int i = 0;
        for (; i + 2 * kFloats <= size; i += 2 * kFloats) {
            __builtin_prefetch(reinterpret_cast<const char*>(p + i) + kPrefetchBytes);
            sum0 += widen(load_vector<HalfV>(p + i));
            sum1 += widen(load_vector<HalfV>(p + i + kFloats / 2));
            sum2 += widen(load_vector<HalfV>(p + i + kFloats));
            sum3 += widen(load_vector<HalfV>(p + i + kFloats + kFloats / 2));
            signs |= load_vector<Bits32V>(p + i) | load_vector<Bits32V>(p + i + kFloats);
        }
        double weight = total((sum0 + sum1) + (sum2 + sum3));
        for (; i < size; ++i) {
            weight += p[i];
            tail_sign |= p[i] < 0;
        }
        *weights++ = weight;
        check.p_mass += weight;
        p += size;
    }
    check.sign |= tail_sign || any_sign(signs);
}

void plain_float64(const double* p, std::int64_t n, double* weights, RowCheck& check) {
    Bits64V signs = {};
    bool tail_sign = false;
    for (std::int64_t start = 0; start < n; start += kBlock) {
        const int size = static_cast<int>(n - start < kBlock ? n - start : kBlock);
        DoubleV sum0 = {}, sum1 = {};
        int i = 0;
        for (; i + 2 * kDoubles <= size; i += 2 * kDoubles) {
            __builtin_prefetch(reinterpret_cast<const char*>(p + i) + kPrefetchBytes);
            sum0 += load_vector<DoubleV>(p + i);
            sum1 += load_vector<DoubleV>(p + i + kDoubles);
            signs |= load_vector<Bits64V>(p + i) | load_vector<Bits64V>(p + i + kDoubles);
        }
        double weight = total(sum0 + sum1);
        for (; i < size; ++i) {
            weight += p[i];
            tail_sign |= p[i] < 0;
        }
        *weights++ = weight;
        check.p_mass += weight;
        p += size;
    }
    check.sign |= tail_sign || any_sign(signs);
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

float largest_float32(const float* x, std::int64_t n) { return largest<FloatV>(x, n); }
double largest_float64(const double* x, std::int64_t n) { return largest<DoubleV>(x, n); }

constexpr RowSums kRowSums = {residual_float32, residual_float64, plain_float32,
                              plain_float64,    largest_float32,  largest_float64};

#undef DRAFTPROOF_INLINE

}  // namespace DRAFTPROOF_ISA
}  // namespace draftproof
