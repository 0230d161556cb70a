// The dtypes a probability may have, and how one number of each widens exactly.
#pragma once

#include <cstdint>
#include <cstring>

namespace draftproof {

enum class Dtype { float64, float32, float16, bfloat16 };

inline std::int64_t itemsize(Dtype dtype) {
    return dtype == Dtype::float64 ? 8 : dtype == Dtype::float32 ? 4 : 2;
}

inline bool is_float32(double number) { return static_cast<float>(number) == number; }

inline float bits_to_float(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float widen_bfloat16(std::uint16_t word) { return bits_to_float(std::uint32_t{word} << 16); }

// Branch-free, so that loops over it vectorise; no float32 denormal enters the arithmetic.
inline float widen_float16(std::uint16_t word) {
    const std::uint32_t sign = std::uint32_t{word & 0x8000u} << 16;
    const std::uint32_t magnitude = word & 0x7FFFu;
    const std::uint32_t normal = (magnitude << 13) + (112u << 23);
    const std::uint32_t special = (magnitude << 13) + (224u << 23);  // infinity and NaN
    const float denormal = bits_to_float((magnitude << 13) + (113u << 23)) - 0x1p-14f;
    std::uint32_t denormal_bits;
    std::memcpy(&denormal_bits, &denormal, sizeof denormal_bits);
    const std::uint32_t bits = magnitude >= 0x7C00u  ? special
                               : magnitude < 0x0400u ? denormal_bits
                                                     : normal;
    return bits_to_float(bits | sign);
}

template <typename T>
inline T load(const char* at) {  // unaligned data is legal
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

inline double load_widened(const char* at, Dtype dtype) {
    switch (dtype) {
        case Dtype::float64: return load<double>(at);
        case Dtype::float32: return load<float>(at);
        case Dtype::float16: return widen_float16(load<std::uint16_t>(at));
        default: return widen_bfloat16(load<std::uint16_t>(at));
    }
}

}  // namespace draftproof
