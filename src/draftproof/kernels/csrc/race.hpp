// Keyed noise: draftproof.reference.draw.race_winner, on draftproof.noise.token_uniforms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "draw.hpp"
#include "laws.hpp"
#include "philox.hpp"

namespace draftproof {

constexpr std::uint32_t kNoiseStream = 3;

// The first of the tokens that arrive at -log1p(-u) / p, ties to the lowest id; -1 if no p is
// positive and finite. Since -log1p(-u) >= u, most need no logarithm.
class Race {
   public:
    Race(std::uint64_t seed, std::uint64_t position) : seed_(seed), position_(position) {}

    std::int64_t winner(const Row& p, Scratch& scratch) {
        for (std::int64_t start = 0; start < p.size; start += kBlock) {
            const int n = static_cast<int>(std::min<std::int64_t>(kBlock, p.size - start));
            p.copy(start, n, scratch.p64);
            enter(start, scratch.p64, n);
        }
        return winner();
    }

    // The same in parts: tokens enter in the order of their ids, in runs that begin at an even one,
    // or alone.
    void enter(std::int64_t start, const double* p, int n) {
        for (int i = 0; i < n; i += 2) run(start + i, p + i, std::min(2, n - i));
    }
    void enter(std::int64_t token, double p) {
        const double pair[2] = {token % 2 ? 0 : p, token % 2 ? p : 0};
        run(token / 2 * 2, pair, 2);
    }
    std::int64_t winner() const { return weight_ < HUGE_VAL ? winner_ : -1; }

   private:
    // One or two tokens, which share their words.
    void run(std::int64_t token, const double* p, int n) {
        if (!(p[0] > 0) && !(n > 1 && p[1] > 0)) return;
        const PhiloxWords words =
            noise_words(seed_, position_, kNoiseStream, static_cast<std::uint32_t>(token >> 1));
        for (int i = 0; i < n; ++i) {
            arrive(token + i, p[i], to_uniform(words[2 * i], words[2 * i + 1]));
        }
    }

    void arrive(std::int64_t token, double p, double u) {
        if (!(p > 0) || u * (1 - 0x1p-40) > earliest_ * p) return;
        const double arrival = -std::log1p(-u) / p;
        if (winner_ >= 0 && !(arrival < earliest_)) return;
        winner_ = token;
        earliest_ = arrival;
        weight_ = p;
    }

    std::uint64_t seed_, position_;
    std::int64_t winner_ = -1;
    double earliest_ = HUGE_VAL, weight_ = 0;
};

}  // namespace draftproof
