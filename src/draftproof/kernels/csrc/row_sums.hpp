// Sums of a row by blocks, at the memory's speed, in the best instruction set of this machine.
#pragma once

#include <cstdint>
#include <limits>

#include "exponentials.hpp"
#include "numbers.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define DRAFTPROOF_X86 1
#include <immintrin.h>
#endif

namespace draftproof {

constexpr int kBlock = 256;                       // one block is rescanned to find the token
constexpr double kFastRoundoff = 3 * 0x1p-24;    // of a weight: a difference and two sums in float32
constexpr double kMassRoundoff = 2 * 0x1p-24;    // of the mass of q, where it is a scaled pass
constexpr double kScaledRoundoff = 5 * 0x1p-24;  // of scale * p: the scale and the product as well

// What the pass over a row saw of its numbers. `sign` also reports -0.0, `p_mass` and `q_mass` may
// carry float32 rounding: a suspicion, to be settled by a second look.
struct RowCheck {
    double p_mass = 0;
    double q_mass = 0;
    bool sign = false;
};

// What a pass over rows of p and q is to see beside their weights: the masses for a suspicion, that
// of q for its value, or nothing, as of rows that a pass has seen already. The way back meets first
// what the way there has left in the caches.
enum class Look { suspicion, draft_mass, again, again_backwards };
inline bool is_repeated(Look look) { return look >= Look::again; }

// Rows of p and q that are likely to be read next, `at` bytes of each half of which are on their way.
// Memory is idle while a pass runs over what lies in the caches: it is to fetch them meanwhile.
struct Ahead {
    const char *p = nullptr, *q = nullptr;
    std::int64_t half = 0, at = 0;
};

// Each sum writes one weight for each block of kBlock numbers (the last may be short) and adds to
// the check. `residual` sums max(0, p - q), `fast` and `scaled_residual` max(0, scale * p - q),
// `plain` p. The weights of `residual_float32` and `plain_float32` are within kFastRoundoff, those
// of `fast_residual_float32` within kScaledRoundoff. Those of `fused_residual_float32` (null where
// an instruction set fuses nothing) are within kFastRoundoff of those at the float32 scale; it
// checks nothing, and fetches what is ahead. The others err by float64 rounding alone.
// `scaled_weights` are the float64 weights themselves; where p or q is NaN, so may theirs be.
// `largest` is the maximum, NaN aside.
struct RowSums {
    void (*residual_float32)(const float* p, const float* q, std::int64_t n, double* weights,
                             RowCheck& check);
    void (*fast_residual_float32)(const float* p, const float* q, double scale, std::int64_t n,
                                  double* weights, RowCheck& check);
    void (*fused_residual_float32)(const float* p, const float* q, float scale, std::int64_t n,
                                   bool backwards, double* weights, Ahead& ahead);
    void (*scaled_residual_float32)(const float* p, const float* q, double scale, std::int64_t n,
                                    double* weights, RowCheck& check);
    void (*scaled_residual_float64)(const double* p, const double* q, double scale,
                                    std::int64_t n, double* weights, RowCheck& check);
    void (*scaled_weights_float32)(const float* p, const float* q, double scale, std::int64_t n,
                                   double* out);
    void (*plain_float32)(const float* p, std::int64_t n, double* weights, RowCheck& check);
    void (*plain_float64)(const double* p, std::int64_t n, double* weights, RowCheck& check);
    void (*exact_plain_float32)(const float* p, std::int64_t n, double* weights);
    float (*largest_float32)(const float* x, std::int64_t n);
    double (*largest_float64)(const double* x, std::int64_t n);

    // In the rows' own precision.
    void residual(const float* p, const float* q, double scale, Look look, std::int64_t n,
                  double* w, RowCheck& c, Ahead* ahead = nullptr) const {
        if (is_repeated(look) && fused_residual_float32) {
            const auto factor = static_cast<float>(scale);
            Ahead nothing;
            fused_residual_float32(p, q, factor, n, look == Look::again_backwards, w,
                                   ahead ? *ahead : nothing);
        } else if (scale == 1 && look == Look::suspicion) {
            residual_float32(p, q, n, w, c);
        } else {
            fast_residual_float32(p, q, scale, n, w, c);
        }
    }
    void residual(const double* p, const double* q, double scale, Look, std::int64_t n, double* w,
                  RowCheck& c, Ahead* = nullptr) const {
        scaled_residual_float64(p, q, scale, n, w, c);
    }
    void plain(const float* p, std::int64_t n, double* w, RowCheck& c) const {
        plain_float32(p, n, w, c);
    }
    void plain(const double* p, std::int64_t n, double* w, RowCheck& c) const {
        plain_float64(p, n, w, c);
    }
    float largest(const float* x, std::int64_t n) const { return largest_float32(x, n); }
    double largest(const double* x, std::int64_t n) const { return largest_float64(x, n); }
};

}  // namespace draftproof

#define DRAFTPROOF_ISA baseline
#define DRAFTPROOF_MM(name) _mm_##name
#define DRAFTPROOF_VECTOR_BYTES 16
#include "row_sums_isa.hpp"
#include "exponentials_isa.hpp"
#undef DRAFTPROOF_ISA
#undef DRAFTPROOF_MM
#undef DRAFTPROOF_VECTOR_BYTES

#if DRAFTPROOF_X86

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define DRAFTPROOF_ISA avx2
#define DRAFTPROOF_MM(name) _mm256_##name
#define DRAFTPROOF_VECTOR_BYTES 32
#include "row_sums_isa.hpp"
#include "exponentials_isa.hpp"
#undef DRAFTPROOF_ISA
#undef DRAFTPROOF_MM
#undef DRAFTPROOF_VECTOR_BYTES
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,fma")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC's own headers (its bug 105593)
#endif
#define DRAFTPROOF_ISA avx512
#define DRAFTPROOF_MM(name) _mm512_##name
#define DRAFTPROOF_VECTOR_BYTES 64
#include "row_sums_isa.hpp"
#include "exponentials_isa.hpp"
#undef DRAFTPROOF_ISA
#undef DRAFTPROOF_MM
#undef DRAFTPROOF_VECTOR_BYTES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif

#endif  // DRAFTPROOF_X86

namespace draftproof {

struct InstructionSet {
    const char* name;
    const RowSums* sums;
    const Exponentials* exponentials;
};

// Best first; the last one runs everywhere.
inline constexpr InstructionSet kInstructionSets[] = {
#if DRAFTPROOF_X86
    {"avx512", &avx512::kRowSums, &avx512::kExponentials},
    {"avx2", &avx2::kRowSums, &avx2::kExponentials},
#endif
    {"baseline", &baseline::kRowSums, &baseline::kExponentials},
};

inline bool runs_here(const InstructionSet& set) {
#if DRAFTPROOF_X86
    if (set.sums == &avx512::kRowSums) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
    }
    if (set.sums == &avx2::kRowSums) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
#endif
    return set.sums == &baseline::kRowSums;
}

inline const InstructionSet& best_instruction_set() {
    static const InstructionSet& best = []() -> const InstructionSet& {
        for (const InstructionSet& set : kInstructionSets) {
            if (runs_here(set)) return set;
        }
        return kInstructionSets[sizeof kInstructionSets / sizeof *kInstructionSets - 1];
    }();
    return best;
}

}  // namespace draftproof
