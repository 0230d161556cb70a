// The tokens that the masks of one context allow, as bits, packed when the context is reached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numbers.hpp"

namespace draftproof {

// A mask over the vocabulary for each context, or one for all: booleans, or words of bits.
struct Mask {
    const char* data = nullptr;  // null: no mask
    std::int64_t context_stride, stride;
    bool is_words;

    std::uint32_t word(std::int64_t context, std::int64_t w, std::int64_t vocabulary) const {
        const char* row = data + context * context_stride;
        if (is_words) return load<std::uint32_t>(row + w * stride);
        std::uint32_t bits = 0;
        const auto n =
            static_cast<int>(std::min<std::int64_t>(32, vocabulary - 32 * w));
        for (int i = 0; i < n; ++i) {
            bits |= std::uint32_t{row[(32 * w + i) * stride] != 0} << i;
        }
        return bits;
    }
};

// One side's masks: a batch's, and by request those of its own.
struct MaskTable {
    Mask batch;
    std::int64_t batch_stride;
    std::vector<Mask> allowed, banned;  // empty: no request has any

    // Null if every token is allowed.
    const std::uint32_t* row(std::int64_t b, std::int64_t context, std::int64_t vocabulary,
                             std::vector<std::uint32_t>& words) const {
        bool any = false;
        const auto apply = [&](const Mask& mask, std::uint32_t flip) {
            if (!mask.data) return;
            if (!any) words.assign((vocabulary + 31) / 32, ~std::uint32_t{0});
            any = true;
            for (std::int64_t w = 0; w < (vocabulary + 31) / 32; ++w) {
                words[w] &= mask.word(context, w, vocabulary) ^ flip;
            }
        };
        Mask of_batch = batch;
        if (batch.data) of_batch.data += b * batch_stride;
        apply(of_batch, 0);
        if (!allowed.empty()) apply(allowed[b], 0);
        if (!banned.empty()) apply(banned[b], ~std::uint32_t{0});
        return any ? words.data() : nullptr;
    }
};

}  // namespace draftproof
