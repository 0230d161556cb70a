// The inverse-CDF draw of one token: fast where it can prove its answer, else by definition.
//
// The definition is draftproof.reference.draw.inverse_cdf: the running float64 sum C in token
// order, and the first v with C(v) > u * C(V-1). A pass that sums by blocks gets every partial sum
// within a known relative error; where the token it finds is further than that from both ends of
// its interval, the definition would find it too. Otherwise the sums are repeated in float64, and
// if that is still too close, in the definition's own order.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "discounts.hpp"
#include "laws.hpp"
#include "row_sums.hpp"

namespace draftproof {

// The weights of a last draw: max(0, scale * p - q), or p where there is no q.
struct Weights {
    Row p;
    const DraftLaw* q;
    double scale = 1;
    Look look = Look::suspicion;

    std::int64_t size() const { return p.size; }
};

// Per thread, reused: O(V / kBlock + K) numbers and two blocks; greedy_block takes two rows of V.
struct Scratch {
    std::vector<double> block_weights;
    std::vector<double> ratios;
    std::vector<std::int64_t> drafts;
    std::vector<SparseEntry> entries;
    std::vector<double> p_row, q_row;
    Discounts discounts;
    Ahead ahead;
    alignas(64) float p32[kBlock], q32[kBlock];
    alignas(64) double p64[kBlock], q64[kBlock];

    float* p_block(float) { return p32; }
    float* q_block(float) { return q32; }
    double* p_block(double) { return p64; }
    double* q_block(double) { return q64; }
};

struct Drawn {
    std::int64_t token;  // -1 if the weights have no positive finite sum
    double total;        // of the weights, approximate
};

constexpr std::int64_t kFew = 64;

namespace detail {

// How a row is cut: a first block that ends where memory is aligned (vectors that straddle cache
// lines cost a fifth more), then blocks of kBlock.
class Blocks {
   public:
    Blocks(const Row& row) : size_(row.size), first_(kBlock) {
        constexpr std::uintptr_t kAlignment = 64;
        const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(row.data) % kAlignment;
        if (past && past % itemsize(row.dtype) == 0) {
            first_ = static_cast<int>((kAlignment - past) / itemsize(row.dtype));
        }
        first_ = static_cast<int>(std::min<std::int64_t>(first_, size_));
    }

    std::int64_t count() const { return 1 + (size_ - first_ + kBlock - 1) / kBlock; }
    std::int64_t start(std::int64_t j) const { return j ? first_ + (j - 1) * kBlock : 0; }
    int size(std::int64_t j) const {
        if (!j) return first_;
        return static_cast<int>(std::min<std::int64_t>(kBlock, size_ - start(j)));
    }

   private:
    std::int64_t size_;
    int first_;
};

// Call f(start, n, block) for the first block and for all the others together.
template <typename Function>
void visit_runs(const Blocks& blocks, std::int64_t size, Function f) {
    const int first = blocks.size(0);
    f(0, first, 0);
    f(first, size - first, 1);
}

// Sum the weights by blocks, in T.
template <typename T>
void sum_blocks(const Weights& weights, const Blocks& blocks, Scratch& scratch,
                const RowSums& sums, double* out, RowCheck& check) {
    const T* p = weights.p.as<T>();
    const T* q = weights.q ? weights.q->as<T>(weights.size()) : nullptr;
    if (p && (!weights.q || q)) {
        visit_runs(blocks, weights.size(), [&](std::int64_t start, std::int64_t n, int block) {
            if (q) {
                sums.residual(p + start, q + start, weights.scale, weights.look, n, out + block,
                              check, &scratch.ahead);
            } else {
                sums.plain(p + start, n, out + block, check);
            }
        });
        return;
    }
    for (std::int64_t j = 0; j < blocks.count(); ++j) {
        const std::int64_t at = blocks.start(j);
        const int size = blocks.size(j);
        const T* p_block = p ? p + at : scratch.p_block(T{});
        if (!p) weights.p.copy(at, size, scratch.p_block(T{}));
        if (weights.q && weights.q->listed_within(at, size)) {
            const T* q_block = q ? q + at : scratch.q_block(T{});
            if (!q) weights.q->copy(at, size, scratch.q_block(T{}));
            sums.residual(p_block, q_block, weights.scale, weights.look, size, out + j, check,
                          &scratch.ahead);
        } else {
            sums.plain(p_block, size, out + j, check);
            out[j] *= weights.scale;
        }
    }
}

// The float64 weights of at most kBlock tokens, exactly; the result lies in the scratch.
inline const double* exact_weights(const Weights& weights, std::int64_t start, int n,
                                   Scratch& scratch, const RowSums& sums) {
    double* w = scratch.p64;
    const float* p = weights.p.as<float>();
    const float* q = weights.q ? weights.q->as<float>(weights.size()) : nullptr;
    if (p && q) {
        sums.scaled_weights_float32(p + start, q + start, weights.scale, n, w);
        return w;
    }
    weights.p.copy(start, n, w);
    if (weights.q && weights.q->listed_within(start, n)) {
        weights.q->copy(start, n, scratch.q64);
        for (int i = 0; i < n; ++i) {
            const double difference = weights.scale * w[i] - scratch.q64[i];
            w[i] = difference > 0 ? difference : 0;
        }
    } else if (weights.q) {
        for (int i = 0; i < n; ++i) w[i] *= weights.scale;
    }
    return w;
}

// Call visit(start, n, w) for the weights block by block, until it returns true.
template <typename Visit>
void each_block(const Weights& weights, Scratch& scratch, const RowSums& sums, Visit visit) {
    for (std::int64_t start = 0; start < weights.size(); start += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, weights.size() - start));
        if (visit(start, n, exact_weights(weights, start, n, scratch, sums))) return;
    }
}

// The definition, on the weights that each(visit) visits block by block.
template <typename EachBlock>
Drawn draw_in_order(EachBlock each, double u) {
    double total = 0;
    std::int64_t last_positive = -1;
    each([&](std::int64_t start, int n, const double* w) {
        for (int i = 0; i < n; ++i) {
            total += w[i];
            if (w[i] != 0) last_positive = start + i;
        }
        return false;
    });
    if (!(total > 0) || std::isinf(total)) return {-1, total};
    const double threshold = u * total;
    double running = 0;
    std::int64_t token = -1;
    each([&](std::int64_t start, int n, const double* w) {
        for (int i = 0; i < n; ++i) {
            running += w[i];
            if (running > threshold) {
                token = start + i;
                return true;
            }
        }
        return false;
    });
    return {token < 0 ? last_positive : token, total};
}

inline Drawn draw_in_order(const Weights& weights, double u, Scratch& scratch,
                           const RowSums& sums) {
    return draw_in_order([&](auto visit) { each_block(weights, scratch, sums, visit); }, u);
}

// The first j at which below + w[0] + .. + w[j] exceeds the threshold, or n; the sum before it is
// added to `below`. Eight at a time, which keeps the chain of additions short.
inline std::int64_t find_crossing(const double* w, std::int64_t n, double threshold,
                                  double& below) {
    std::int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
        const double sum = ((w[j] + w[j + 1]) + (w[j + 2] + w[j + 3])) +
                           ((w[j + 4] + w[j + 5]) + (w[j + 6] + w[j + 7]));
        if (below + sum > threshold) break;
        below += sum;
    }
    for (; j < n && !(below + w[j] > threshold); ++j) below += w[j];
    return j;
}

// Find the token by block sums whose every partial sum is within a relative error of the true one;
// -1 if the error leaves its identity open. exact(start, n) are the weights within a block.
template <typename Exact>
std::int64_t draw_by_blocks(Exact exact, const Blocks& blocks, double u, double total,
                            double relative_error, const Scratch& scratch) {
    const double margin = 2 * relative_error * total, threshold = u * total;
    double below = 0;
    const std::int64_t j =
        find_crossing(scratch.block_weights.data(), blocks.count(), threshold, below);
    if (j == blocks.count()) return -1;
    const int n = blocks.size(j);
    const double* w = exact(blocks.start(j), n);
    const std::int64_t i = find_crossing(w, n, threshold, below);
    if (i == n) return -1;
    const bool certain = (below == 0 || below + margin <= threshold) &&
                         below + w[i] >= threshold + margin;
    return certain ? blocks.start(j) + i : -1;
}

inline std::int64_t draw_by_blocks(const Weights& weights, const Blocks& blocks, double u,
                                   double total, double relative_error, Scratch& scratch,
                                   const RowSums& sums) {
    const auto exact = [&](std::int64_t start, int n) {
        return exact_weights(weights, start, n, scratch, sums);
    };
    return draw_by_blocks(exact, blocks, u, total, relative_error, scratch);
}

// Eight sums side by side: each addition waits for the one before it.
inline double total(const Scratch& scratch) {
    constexpr std::size_t kLanes = 8;
    const auto& weights = scratch.block_weights;
    double lanes[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= weights.size(); j += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += weights[j + lane];
    }
    return std::accumulate(lanes, lanes + kLanes,
                           std::accumulate(weights.begin() + j, weights.end(), 0.0));
}

// Sum by blocks in float32; how far every partial sum may be off by it, relative to the total.
inline double sum_blocks_fast(const Weights& weights, const Blocks& blocks, Scratch& scratch,
                              const RowSums& sums, RowCheck& check) {
    RowCheck seen;
    sum_blocks<float>(weights, blocks, scratch, sums, scratch.block_weights.data(), seen);
    check.p_mass += seen.p_mass;
    check.q_mass += seen.q_mass;
    check.sign |= seen.sign;
    const bool fused = is_repeated(weights.look) && sums.fused_residual_float32;
    if (weights.scale == 1 || (fused && is_float32(weights.scale))) return kFastRoundoff;
    if (fused) seen.p_mass = 2;  // it has not looked, but it is repeated where that is plausible
    return kScaledRoundoff * weights.scale * seen.p_mass / total(scratch);
}

// Two sums of V numbers, the definition's and ours, and the product with u, each rounding at most
// once per number.
inline double order_error(std::int64_t size) { return (2.0 * size + 16) * 0x1p-53; }

// Sum float32 rows by blocks without a float32 rounding, and other rows in float64.
inline void sum_blocks_exactly(const Weights& weights, const Blocks& blocks, Scratch& scratch,
                               const RowSums& sums, RowCheck& check) {
    const float* p = weights.p.as<float>();
    const float* q = weights.q ? weights.q->as<float>(weights.size()) : nullptr;
    double* out = scratch.block_weights.data();
    if (!p || (weights.q && !q)) {
        sum_blocks<double>(weights, blocks, scratch, sums, out, check);
        return;
    }
    visit_runs(blocks, weights.size(), [&](std::int64_t start, std::int64_t n, int block) {
        if (q) {
            sums.scaled_residual_float32(p + start, q + start, weights.scale, n, out + block,
                                         check);
        } else {
            sums.exact_plain_float32(p + start, n, out + block);
        }
    });
}

// So few weights that blocks would only be in the way; they lie in the scratch.
inline double sum_few(const Weights& weights, Scratch& scratch, RowCheck& check) {
    const int n = static_cast<int>(weights.size());
    double *w = scratch.p64, *q = scratch.q64;
    weights.p.copy(0, n, w);
    if (weights.q) weights.q->copy(0, n, q);
    double sum = 0;
    for (int i = 0; i < n; ++i) {
        check.p_mass += w[i];
        check.sign |= w[i] < 0;
        if (weights.q) {
            check.q_mass += q[i];
            check.sign |= q[i] < 0;
            const double difference = weights.scale * w[i] - q[i];
            w[i] = difference > 0 ? difference : 0;
        }
        sum += w[i];
    }
    return sum;
}

// The definition, with the sum and the weights that sum_few left.
inline Drawn draw_few(std::int64_t n, double u, double total, const Scratch& scratch) {
    if (!(total > 0) || std::isinf(total)) return {-1, total};
    const double* w = scratch.p64;
    const double threshold = u * total;
    double running = 0;
    std::int64_t last_positive = -1;
    for (std::int64_t i = 0; i < n; ++i) {
        running += w[i];
        if (running > threshold) return {i, total};
        if (w[i] != 0) last_positive = i;
    }
    return {last_positive, total};
}

}  // namespace detail

// The sum of a row's weights, whose blocks lie in the scratch until the next one.
struct RowSum {
    double total;
    double error;  // relative, of every partial sum; infinite if they are not to be trusted
    bool narrow;   // float32 rounding is part of it
};

// `check` receives what the pass saw of the row or rows.
inline RowSum sum_row(const Weights& weights, Scratch& scratch, const RowSums& sums,
                      RowCheck& check) {
    using namespace detail;
    if (weights.size() <= kFew) return {sum_few(weights, scratch, check), 0, false};
    const bool fits_float32 = weights.p.dtype != Dtype::float64 &&
                              (!weights.q || weights.q->fits_float32) && weights.scale > 1e-20;
    const Blocks blocks(weights.p);
    scratch.block_weights.resize(blocks.count());
    double rounding = HUGE_VAL;
    if (fits_float32) rounding = sum_blocks_fast(weights, blocks, scratch, sums, check);
    const bool narrow = rounding < 0.01;
    if (!narrow) {
        RowCheck again;
        sum_blocks_exactly(weights, blocks, scratch, sums, fits_float32 ? again : check);
    }
    const double sum = total(scratch);
    if (!(sum > 1e-280 && sum < 1e280)) return {sum, HUGE_VAL, narrow};
    return {sum, order_error(weights.size()) + (narrow ? rounding * 1.01 : 0), narrow};
}

// The sum as the definition makes it, of the weights that each(visit) visits.
template <typename EachBlock>
double mass_in_order(EachBlock each) {
    double mass = 0;
    each([&](std::int64_t, int n, const double* w) {
        for (int i = 0; i < n; ++i) mass += w[i];
        return false;
    });
    return mass;
}

inline double mass_in_order(const Weights& weights, Scratch& scratch, const RowSums& sums) {
    return mass_in_order([&](auto visit) { detail::each_block(weights, scratch, sums, visit); });
}

// The token if it can be told from the row that was summed last, or from sums without a float32
// rounding, where the definition's weights round by as much more of the total; else -1.
inline std::int64_t draw_certified(const Weights& weights, double u, RowSum sum, double rounding,
                                   Scratch& scratch, const RowSums& sums) {
    using namespace detail;
    if (!std::isfinite(sum.error)) return -1;
    const Blocks blocks(weights.p);
    const std::int64_t token =
        draw_by_blocks(weights, blocks, u, sum.total, sum.error + rounding, scratch, sums);
    if (token >= 0 || !sum.narrow) return token;
    RowCheck ignored;
    sum_blocks_exactly(weights, blocks, scratch, sums, ignored);
    return draw_by_blocks(weights, blocks, u, total(scratch),
                          order_error(weights.size()) + rounding, scratch, sums);
}

// Draw one token from the row that was summed last.
inline Drawn draw_summed(const Weights& weights, double u, RowSum sum, Scratch& scratch,
                         const RowSums& sums) {
    using namespace detail;
    if (weights.size() <= kFew) return draw_few(weights.size(), u, sum.total, scratch);
    if (sum.total == 0) return {-1, 0};
    if (std::isinf(sum.error)) return draw_in_order(weights, u, scratch, sums);
    const std::int64_t token = draw_certified(weights, u, sum, 0, scratch, sums);
    return token < 0 ? draw_in_order(weights, u, scratch, sums) : Drawn{token, sum.total};
}

inline Drawn draw(const Weights& weights, double u, Scratch& scratch, const RowSums& sums,
                  RowCheck& check) {
    return draw_summed(weights, u, sum_row(weights, scratch, sums, check), scratch, sums);
}

}  // namespace draftproof
