// One row of logits as a request sees it: edited where its parameters say so, -inf where masked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "exponentials.hpp"
#include "laws.hpp"

namespace draftproof {

constexpr int kLogitBlock = 512;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Edit {
    std::int64_t token;
    double logit;  // replaces the row's own
};

struct LogitRow {
    Row stored;                    // may be narrower than the vocabulary: the rest is -inf
    std::int64_t size;             // of the vocabulary
    const std::uint32_t* allowed;  // one bit a token, or null
    const Edit* edits;             // by token, each token once
    std::int64_t num_edits;

    bool is_allowed(std::int64_t token) const {
        return !allowed || (allowed[token >> 5] >> (token & 31) & 1);
    }

    double operator[](std::int64_t token) const {
        if (!is_allowed(token)) return -kInfinity;
        const Edit* edit = first_edit(token);
        if (edit != end_of_edits() && edit->token == token) return edit->logit;
        return token < stored.size ? stored[token] : -kInfinity;
    }

    // The logits of a block if they are float32 numbers, in memory or in the buffer; else null.
    const float* floats(std::int64_t start, int n, float* buffer, const Exponentials& exps) const {
        if (stored.dtype == Dtype::float64 || is_edited(start, n)) return nullptr;
        const bool whole = start + n <= stored.size;
        const float* direct = stored.as<float>();
        if (direct && whole && !allowed) return direct + start;
        const auto known =
            static_cast<int>(std::clamp<std::int64_t>(stored.size - start, 0, n));
        copy(start, known, buffer, exps);
        finish(start, known, n, buffer);
        return buffer;
    }

    void doubles(std::int64_t start, int n, double* out) const {
        const auto known =
            static_cast<int>(std::clamp<std::int64_t>(stored.size - start, 0, n));
        stored.copy(start, known, out);
        for (const Edit* edit = first_edit(start);
             edit != end_of_edits() && edit->token < start + n; ++edit) {
            if (edit->token < start + known) out[edit->token - start] = edit->logit;
        }
        finish(start, known, n, out);
    }

   private:
    const Edit* end_of_edits() const { return edits + num_edits; }
    const Edit* first_edit(std::int64_t token) const {
        return std::lower_bound(
            edits, end_of_edits(), token,
            [](const Edit& edit, std::int64_t value) { return edit.token < value; });
    }
    bool is_edited(std::int64_t start, int n) const {
        const Edit* edit = first_edit(start);
        return edit != end_of_edits() && edit->token < start + n;
    }

    void copy(std::int64_t start, int n, float* out, const Exponentials& exps) const {
        const char* at = stored.data + start * stored.stride;
        const bool words = stored.stride == 2 && reinterpret_cast<std::uintptr_t>(at) % 2 == 0;
        if (words && stored.dtype == Dtype::float16) {
            exps.widen_float16(reinterpret_cast<const std::uint16_t*>(at), n, out);
        } else if (words && stored.dtype == Dtype::bfloat16) {
            exps.widen_bfloat16(reinterpret_cast<const std::uint16_t*>(at), n, out);
        } else {
            stored.copy(start, n, out);
        }
    }

    // -inf past the stored columns and where the mask forbids.
    template <typename T>
    void finish(std::int64_t start, int known, int n, T* out) const {
        std::fill(out + known, out + n, -std::numeric_limits<T>::infinity());
        if (!allowed) return;
        for (int i = 0; i < known; ++i) {
            const std::int64_t token = start + i;
            if (token % 32 == 0 && allowed[token >> 5] == ~std::uint32_t{0}) {
                i += 31;
            } else if (!is_allowed(token)) {
                out[i] = -std::numeric_limits<T>::infinity();
            }
        }
    }
};

}  // namespace draftproof
