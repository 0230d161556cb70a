// The bits of draftproof.types.RowStatus.
#pragma once

#include <cmath>
#include <cstdint>

namespace draftproof {

namespace status {
constexpr std::int64_t ok = 0;
constexpr std::int64_t zero_residual = 1;
constexpr std::int64_t length_out_of_range = 2;
constexpr std::int64_t token_out_of_range = 4;
constexpr std::int64_t uniform_out_of_range = 8;
constexpr std::int64_t target_not_finite = 16;
constexpr std::int64_t target_negative = 32;
constexpr std::int64_t target_mass = 64;
constexpr std::int64_t draft_not_finite = 128;
constexpr std::int64_t draft_negative = 256;
constexpr std::int64_t draft_mass = 512;
constexpr std::int64_t draft_zero = 1024;
constexpr std::int64_t sparse_id_out_of_range = 2048;
constexpr std::int64_t sibling_repeated = 4096;
}  // namespace status

// The bits of one law, and how far from 1 the mass of its rows may lie.
struct Side {
    std::int64_t not_finite, negative, mass;
    double tolerance;

    // By half the tolerance, since the sum at hand may have rounded: a second look decides.
    bool is_off(double sum) const { return !(std::fabs(sum - 1) <= tolerance / 2); }
};

}  // namespace draftproof
