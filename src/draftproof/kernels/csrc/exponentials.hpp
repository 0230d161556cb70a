// Powers of two, in float32 by the vector and in float64: what a softmax is made of.
#pragma once

#include <cstdint>

namespace draftproof {

// 2^r = 1 + r * (c[0] + c[1] r + ...) for |r| <= 1/2: minimax, within 1.54 * 2^-24 of 2^r.
constexpr int kFloatDegree = 5;
constexpr float kFloatPowers[kFloatDegree] = {0x1.62e42ap-1f, 0x1.ebf9bcp-3f, 0x1.c6b752p-5f,
                                              0x1.3cea88p-7f, 0x1.5bba14p-10f};

// The same for float64, within 0.16 * 2^-53.
constexpr int kDoubleDegree = 11;
constexpr double kDoublePowers[kDoubleDegree] = {
    0x1.62e42fefa39f3p-1,  0x1.ebfbdff82c598p-3,  0x1.c6b08d7048f31p-5,  0x1.3b2ab6fba1e1cp-7,
    0x1.5d87fe7bbbe07p-10, 0x1.4309130961163p-13, 0x1.ffcbee3b0af8cp-17, 0x1.62bfd49ed0adfp-20,
    0x1.b54167a0b9061p-24, 0x1.e605f979c7a5dp-28, 0x1.c0638527edf34p-32};

// log(2) in two parts; whole multiples of the first are exact.
constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 1.442695040888963407359924681001892137;

// 2^(z * scale - whole), for z * scale <= whole <= kMostWhole, as computed below in float32, errs by
// no more than kPowerError of itself, relatively: the polynomial and its roundings, and two more of
// a sum; and by |log| times the error of the scale. Where it is not fused, z * scale is rounded too.
// That whole is an integer makes the rest exact: z is never shifted, nor rounded.
constexpr double kPowerError = 6 * 0x1p-24;
constexpr double kRoundoff = 0x1p-24;
constexpr int kMostWhole = 1 << 21;

// The same in float64 by a shorter polynomial, within 0.034 * 2^-24 of 2^r.
constexpr int kQuickDegree = 6;
constexpr double kQuickPowers[kQuickDegree] = {
    0x1.62e430af269bbp-1,  0x1.ebfbdc3c259b8p-3,  0x1.c6aee88ecdf6ap-5,
    0x1.3b2d4cf84fe8fp-7,  0x1.5f3e52e5f0cf2p-10, 0x1.41fbb83a2101ep-13};
constexpr double kQuickError = 0.034 * 0x1p-24;

// Which bits of a byte are set: their numbers, lowest first.
struct PlacesOfBits {
    std::uint8_t lanes[256][8];
};
constexpr PlacesOfBits places_of_bits() {
    PlacesOfBits places{};
    for (int bits = 0; bits < 256; ++bits) {
        int count = 0;
        for (int k = 0; k < 8; ++k) {
            if (bits >> k & 1) places.lanes[bits][count++] = static_cast<std::uint8_t>(k);
        }
    }
    return places;
}
inline constexpr PlacesOfBits kPlacesOfBits = places_of_bits();

// Of NaN all are NaN; of -inf, and of what lies too deep for their type, exactly 0.
struct Exponentials {
    // The sum, four numbers at a time in float32 and the rest in float64. `ahead` is read next.
    double (*sum_float32)(const float* z, std::int64_t n, int whole, float scale,
                          const float* ahead);
    // factor times each of them.
    void (*float32)(const float* z, std::int64_t n, int whole, float scale, float factor,
                    float* out);
    // factor * 2^((z - shift) * scale).
    void (*float64)(const double* z, std::int64_t n, double shift, double scale, double factor,
                    double* out);
    // e^x for x <= 0, within two units in the last place.
    void (*natural_float64)(const double* x, std::int64_t n, double* out);
    // The sum of 2^(z * scale - whole) within kQuickError; `above` is that of the z above an edge.
    double (*quick_sum_float32)(const float* z, std::int64_t n, int whole, double scale,
                                float edge, double& above);
    // Write at which places least <= z <= most, and return how many there are; all n may be written.
    int (*find_float32)(const float* z, int n, float least, float most, std::int32_t* out);
    // min((top - z) * per, last), rounded down.
    void (*bins_float32)(const float* z, std::int64_t n, float top, float per, int last,
                         std::int32_t* out);
    // Zero the weights whose z is not within least..most.
    void (*keep_float32)(const float* z, std::int64_t n, float least, float most, float* weights);
    void (*keep_float64)(const double* z, std::int64_t n, double least, double most,
                         double* weights);
    void (*widen_float16)(const std::uint16_t* words, std::int64_t n, float* out);
    void (*widen_bfloat16)(const std::uint16_t* words, std::int64_t n, float* out);
    bool fuses;

    void keep(const float* z, std::int64_t n, float least, float most, float* weights) const {
        keep_float32(z, n, least, most, weights);
    }
    void keep(const double* z, std::int64_t n, double least, double most, double* weights) const {
        keep_float64(z, n, least, most, weights);
    }
};

}  // namespace draftproof
