// Philox4x32-10 (Salmon et al., SC 2011): the words of draftproof.noise, bit for bit.
#pragma once

#include <array>
#include <cstdint>

namespace draftproof {

using PhiloxWords = std::array<std::uint32_t, 4>;

inline PhiloxWords philox4x32(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
        counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
                   static_cast<std::uint32_t>(product1),
                   static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
                   static_cast<std::uint32_t>(product0)};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

inline PhiloxWords noise_words(std::uint64_t seed, std::uint64_t position, std::uint32_t stream,
                               std::uint32_t index) {
    return philox4x32({static_cast<std::uint32_t>(position),
                       static_cast<std::uint32_t>(position >> 32), stream, index},
                      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// 27 + 26 bits in [0, 1).
inline double to_uniform(std::uint32_t high, std::uint32_t low) {
    return ((high >> 5) * 67108864.0 + (low >> 6)) * 0x1p-53;
}

}  // namespace draftproof
