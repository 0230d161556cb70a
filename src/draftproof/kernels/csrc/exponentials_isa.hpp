// Exponentials of logits, written once in vector extensions and included once for each instruction
// set, behind row_sums_isa.hpp, whose vectors these are. No include guard: that is the point.

namespace draftproof {
namespace DRAFTPROOF_ISA {

#define DRAFTPROOF_INLINE static inline __attribute__((always_inline))

// a * b + c, in one rounding where the machine has it: nothing here has to round alike everywhere.
#if DRAFTPROOF_X86 && DRAFTPROOF_VECTOR_BYTES > 16
constexpr bool kFuses = true;
DRAFTPROOF_INLINE FloatV fused(FloatV a, FloatV b, FloatV c) {
    return (FloatV)DRAFTPROOF_MM(fmadd_ps)((Floats)a, (Floats)b, (Floats)c);
}
DRAFTPROOF_INLINE DoubleV fused(DoubleV a, DoubleV b, DoubleV c) {
    return (DoubleV)DRAFTPROOF_MM(fmadd_pd)((Doubles)a, (Doubles)b, (Doubles)c);
}
#else
constexpr bool kFuses = false;
template <typename V>
DRAFTPROOF_INLINE V fused(V a, V b, V c) {
    return a * b + c;
}
#endif

// The greater, or b if either is NaN.
#if DRAFTPROOF_X86
DRAFTPROOF_INLINE FloatV greater(FloatV a, FloatV b) {
    return (FloatV)DRAFTPROOF_MM(max_ps)((Floats)a, (Floats)b);
}
DRAFTPROOF_INLINE DoubleV greater(DoubleV a, DoubleV b) {
    return (DoubleV)DRAFTPROOF_MM(max_pd)((Doubles)a, (Doubles)b);
}
#else
template <typename V>
DRAFTPROOF_INLINE V greater(V a, V b) {
    return a > b ? a : b;
}
#endif

template <typename V, typename T>
DRAFTPROOF_INLINE V all_lanes(T value) {
    return value - V{};
}

// factor * 2^(z * scale - whole) where that is <= 1; NaN of NaN, 0 of -inf and of what is too small.
//
// z * scale is rounded to an integer by adding 1.5 * 2^23 + 127 - whole, which leaves the exponent
// biased in the low bits; a power of two is those bits shifted, and 2^r a polynomial.
struct PowersFloat {
    FloatV magic, scale, lowest, factor;

    PowersFloat(int whole, float scale_by, float factor_by)
        : magic(all_lanes<FloatV>(0x1.8p23f + 127 - static_cast<float>(whole))),
          scale(all_lanes<FloatV>(scale_by)),
          lowest(all_lanes<FloatV>(static_cast<float>(whole - 127) / scale_by)),
          factor(all_lanes<FloatV>(factor_by)) {}

    DRAFTPROOF_INLINE FloatV power(FloatV z, const PowersFloat& by) {
        const FloatV one = all_lanes<FloatV>(1.0f), at = greater(by.lowest, z);
        const FloatV biased = fused(at, by.scale, by.magic);
        const FloatV r = fused(at, by.scale, by.magic - biased);
        FloatV sum = all_lanes<FloatV>(kFloatPowers[kFloatDegree - 1]);
        for (int k = kFloatDegree - 2; k >= 0; --k) {
            sum = fused(sum, r, all_lanes<FloatV>(kFloatPowers[k]));
        }
        return fused(sum, r, one) * (FloatV)((Bits32V)biased << 23);
    }
};

// factor * 2^((z - shift) * scale) in float64, down to its denormals: 2^(n + 64) * 2^-64. The
// constant of the polynomial is 1, so that equal logits have weights of exactly 1.
struct PowersDouble {
    DoubleV shift, scale, lowest, factor;

    PowersDouble(double shift_by, double scale_by, double factor_by)
        : shift(all_lanes<DoubleV>(shift_by)), scale(all_lanes<DoubleV>(scale_by)),
          lowest(all_lanes<DoubleV>(-1087 / scale_by)), factor(all_lanes<DoubleV>(factor_by)) {}

    DRAFTPROOF_INLINE DoubleV power(DoubleV z, const PowersDouble& by) {
        const DoubleV magic = all_lanes<DoubleV>(0x1.8p52 + (1023 + 64)),
                      one = all_lanes<DoubleV>(1.0);
        const DoubleV d = greater(by.lowest, z - by.shift);
        const DoubleV biased = fused(d, by.scale, magic);
        const DoubleV r = fused(d, by.scale, magic - biased);
        return fused(polynomial(r), r, one) * (DoubleV)((Bits64V)biased << 52) * 0x1p-64;
    }

    // (2^r - 1) / r.
    DRAFTPROOF_INLINE DoubleV polynomial(DoubleV r) {
        DoubleV sum = all_lanes<DoubleV>(kDoublePowers[kDoubleDegree - 1]);
        for (int k = kDoubleDegree - 2; k >= 0; --k) {
            sum = fused(sum, r, all_lanes<DoubleV>(kDoublePowers[k]));
        }
        return sum;
    }
};

// 2^(z * scale - whole) within kQuickError; tiny where it is too small, not 0.
struct PowersQuick {
    DoubleV magic, scale;

    PowersQuick(int whole, double scale_by)
        : magic(all_lanes<DoubleV>(0x1.8p52 + 1023 - whole)),
          scale(all_lanes<DoubleV>(scale_by)) {}

    DRAFTPROOF_INLINE DoubleV power(DoubleV z, const PowersQuick& by) {
        const DoubleV biased = fused(z, by.scale, by.magic);
        const DoubleV r = fused(z, by.scale, by.magic - biased);
        DoubleV sum = all_lanes<DoubleV>(kQuickPowers[kQuickDegree - 1]);
        for (int k = kQuickDegree - 2; k >= 0; --k) {
            sum = fused(sum, r, all_lanes<DoubleV>(kQuickPowers[k]));
        }
        return fused(sum, r, all_lanes<DoubleV>(1.0)) * (DoubleV)((Bits64V)biased << 52);
    }
};

// e^x: the same, with log(2) subtracted in two parts.
struct Natural {
    DoubleV factor = all_lanes<DoubleV>(1.0);

    DRAFTPROOF_INLINE DoubleV power(DoubleV x, const Natural& by) {
        const DoubleV magic = all_lanes<DoubleV>(0x1.8p52 + (1023 + 64)),
                      lowest = all_lanes<DoubleV>(-753.0);
        const DoubleV at = greater(lowest, x);
        const DoubleV biased = fused(at, all_lanes<DoubleV>(kLog2E), magic);
        const DoubleV whole = magic - biased;
        const DoubleV r = fused(whole, all_lanes<DoubleV>(kLog2Low),
                                fused(whole, all_lanes<DoubleV>(kLog2High), at));
        const DoubleV slope = PowersDouble::polynomial(kLog2E * r) * kLog2E;
        return fused(slope, r, by.factor) * (DoubleV)((Bits64V)biased << 52) * 0x1p-64;
    }
};

// The last few numbers, as a vector of their own that ends in -inf.
template <typename V, typename T>
DRAFTPROOF_INLINE V load_tail(const T* at, std::int64_t n) {
    T lanes[sizeof(V) / sizeof(T)];
    for (T& lane : lanes) lane = -std::numeric_limits<T>::infinity();
    __builtin_memcpy(lanes, at, n * sizeof(T));
    return load_vector<V>(lanes);
}

// `ahead` is what the caller reads next: it comes from memory while this computes.
static double sum_powers_float32(const float* z, std::int64_t n, int whole, float scale,
                                 const float* ahead) {
    const PowersFloat by(whole, scale, 1);
    DoubleV sums[2] = {};
    std::int64_t i = 0;
    for (; i + 4 * kFloats <= n; i += 4 * kFloats) {
        FloatV parts[4];
        for (int k = 0; k < 4; ++k) {
            parts[k] = PowersFloat::power(load_vector<FloatV>(z + i + k * kFloats), by);
        }
        for (int k = 0; k < 4 * kFloats; k += 16) __builtin_prefetch(ahead + i + k);
        const FloatV sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
        HalfV halves[2];
        __builtin_memcpy(halves, &sum, sizeof sum);
        sums[0] += widen(halves[0]);
        sums[1] += widen(halves[1]);
    }
    for (; i < n; i += kFloats) {
        const FloatV at = i + kFloats <= n ? load_vector<FloatV>(z + i)
                                           : load_tail<FloatV>(z + i, n - i);
        sums[0] += widen_sum(PowersFloat::power(at, by));
    }
    return total(sums[0] + sums[1]);
}

template <typename V, typename By, typename T>
DRAFTPROOF_INLINE void write_powers(const T* z, std::int64_t n, const By& by, T* out) {
    constexpr int lanes = sizeof(V) / sizeof(T);
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const V value = by.factor * By::power(load_vector<V>(z + i), by);
        __builtin_memcpy(out + i, &value, sizeof value);
    }
    if (i < n) {
        const V value = by.factor * By::power(load_tail<V>(z + i, n - i), by);
        __builtin_memcpy(out + i, &value, (n - i) * sizeof(T));
    }
}

static void powers_float32(const float* z, std::int64_t n, int whole, float scale, float factor,
                           float* out) {
    write_powers<FloatV>(z, n, PowersFloat(whole, scale, factor), out);
}
static void powers_float64(const double* z, std::int64_t n, double shift, double scale,
                           double factor, double* out) {
    write_powers<DoubleV>(z, n, PowersDouble(shift, scale, factor), out);
}

static void natural_float64(const double* x, std::int64_t n, double* out) {
    write_powers<DoubleV>(x, n, Natural{}, out);
}

static double quick_sum_float32(const float* z, std::int64_t n, int whole, double scale,
                                float edge, double& above) {
    const PowersQuick by(whole, scale);
    const FloatV lowest = all_lanes<FloatV>(static_cast<float>((whole - 1000) / scale));
    const DoubleV edges = all_lanes<DoubleV>(static_cast<double>(edge));
    DoubleV sums[2] = {}, uppers[2] = {};
    for (std::int64_t i = 0; i < n; i += kFloats) {
        const FloatV at = greater(lowest, i + kFloats <= n ? load_vector<FloatV>(z + i)
                                                           : load_tail<FloatV>(z + i, n - i));
        HalfV halves[2];
        __builtin_memcpy(halves, &at, sizeof at);
        for (int k = 0; k < 2; ++k) {
            const DoubleV wide = widen(halves[k]), power = PowersQuick::power(wide, by);
            sums[k] += power;
            uppers[k] += (DoubleV)((Bits64V)power & (Bits64V)(wide > edges));
        }
    }
    above = total(uppers[0] + uppers[1]);
    return total(sums[0] + sums[1]);
}

// One bit for each lane, all ones or all zeros.
DRAFTPROOF_INLINE std::uint32_t bits_of(Bits32V lanes) {
#if DRAFTPROOF_X86 && DRAFTPROOF_VECTOR_BYTES == 64
    return _mm512_movepi32_mask((__m512i)lanes);
#elif DRAFTPROOF_X86
    return static_cast<std::uint32_t>(DRAFTPROOF_MM(movemask_ps)((Floats)lanes));
#else
    std::uint32_t bits = 0;
    for (int k = 0; k < kFloats; ++k) bits |= static_cast<std::uint32_t>(lanes[k] & 1) << k;
    return bits;
#endif
}

// Write the numbers of the bits that are set, from `first` on, and return how many there are. All of
// `out` up to kFloats may be written.
DRAFTPROOF_INLINE int write_places(std::uint32_t bits, std::int32_t first, std::int32_t* out) {
#if DRAFTPROOF_X86 && DRAFTPROOF_VECTOR_BYTES == 64
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(bits, places));
#elif DRAFTPROOF_X86 && DRAFTPROOF_VECTOR_BYTES == 32
    const __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(
        reinterpret_cast<const __m128i*>(kPlacesOfBits.lanes[bits])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm256_add_epi32(lanes, _mm256_set1_epi32(first)));
#else
    for (std::uint32_t left = bits; left; left &= left - 1) *out++ = first + __builtin_ctz(left);
#endif
    return __builtin_popcount(bits);
}

static int find_float32(const float* z, int n, float least, float most, std::int32_t* out) {
    const FloatV lows = all_lanes<FloatV>(least), highs = all_lanes<FloatV>(most);
    int count = 0, i = 0;
    for (; i + kFloats <= n; i += kFloats) {
        const auto at = load_vector<FloatV>(z + i);
        count += write_places(bits_of((at >= lows) & (at <= highs)), i, out + count);
    }
    for (; i < n; ++i) {
        if (z[i] >= least && z[i] <= most) out[count++] = i;
    }
    return count;
}

static void bins_float32(const float* z, std::int64_t n, float top, float per, int last,
                         std::int32_t* out) {
    const FloatV tops = all_lanes<FloatV>(top), pers = all_lanes<FloatV>(per),
                 lasts = all_lanes<FloatV>(static_cast<float>(last));
    for (std::int64_t i = 0; i < n; i += kFloats) {
        const bool whole = i + kFloats <= n;
        const FloatV at = whole ? load_vector<FloatV>(z + i) : load_tail<FloatV>(z + i, n - i);
        const auto bins = __builtin_convertvector(lesser((tops - at) * pers, lasts), Bits32V);
        __builtin_memcpy(out + i, &bins, whole ? sizeof bins : (n - i) * sizeof *out);
    }
}

template <typename V, typename Bits, typename T>
DRAFTPROOF_INLINE void keep_between(const T* z, std::int64_t n, T least, T most, T* weights) {
    constexpr int lanes = sizeof(V) / sizeof(T);
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const V at = load_vector<V>(z + i);
        const Bits within = (at >= all_lanes<V>(least)) & (at <= all_lanes<V>(most));
        const Bits kept = load_vector<Bits>(weights + i) & within;
        __builtin_memcpy(weights + i, &kept, sizeof kept);
    }
    for (; i < n; ++i) weights[i] = z[i] >= least && z[i] <= most ? weights[i] : T{0};
}

static void keep_float32(const float* z, std::int64_t n, float least, float most,
                         float* weights) {
    keep_between<FloatV, Bits32V>(z, n, least, most, weights);
}
static void keep_float64(const double* z, std::int64_t n, double least, double most,
                         double* weights) {
    keep_between<DoubleV, Bits64V>(z, n, least, most, weights);
}

static void widen_float16(const std::uint16_t* words, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = draftproof::widen_float16(words[i]);
}
static void widen_bfloat16(const std::uint16_t* words, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = draftproof::widen_bfloat16(words[i]);
}

constexpr Exponentials kExponentials = {
    sum_powers_float32, powers_float32, powers_float64, natural_float64, quick_sum_float32,
    find_float32,       bins_float32,   keep_float32,   keep_float64,    widen_float16,
    widen_bfloat16,     kFuses,
};

#undef DRAFTPROOF_INLINE

}  // namespace DRAFTPROOF_ISA
}  // namespace draftproof
