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

#include "laws.hpp"
#include "row_sums.hpp"

namespace draftproof {

// The weights of a last draw: max(0, p - q), or p where there is no q.
struct Weights {
    Row p;
    const DraftLaw* q;

    std::int64_t size() const { return p.size; }
};

// Per thread, reused: O(V / kBlock) numbers and two blocks.
struct Scratch {
    std::vector<double> block_weights;
    std::vector<SparseEntry> entries;
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

// Sum the weights by blocks, in T.
template <typename T>
void sum_blocks(const Weights& weights, const Blocks& blocks, Scratch& scratch,
                const RowSums& sums, double* block_weights, RowCheck& check) {
    const T* p = weights.p.as<T>();
    const T* q = weights.q ? weights.q->as<T>(weights.size()) : nullptr;
    if (p && (!weights.q || q)) {
        const auto sum = [&](std::int64_t start, std::int64_t n, double* out) {
            if (q) {
                sums.residual(p + start, q + start, n, out, check);
            } else {
                sums.plain(p + start, n, out, check);
            }
        };
        const int first = blocks.size(0);
        sum(0, first, block_weights);
        sum(first, weights.size() - first, block_weights + 1);
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
            sums.residual(p_block, q_block, size, block_weights++, check);
        } else {
            sums.plain(p_block, size, block_weights++, check);
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
        sums.differences_float32(p + start, q + start, n, w);
        return w;
    }
    weights.p.copy(start, n, w);
    if (weights.q && weights.q->listed_within(start, n)) {
        weights.q->copy(start, n, scratch.q64);
        for (int i = 0; i < n; ++i) {
            const double difference = w[i] - scratch.q64[i];
            w[i] = difference > 0 ? difference : 0;
        }
    }
    return w;
}

// The definition.
inline Drawn draw_in_order(const Weights& weights, double u, Scratch& scratch,
                           const RowSums& sums) {
    double total = 0;
    const auto each_block = [&](auto&& visit) {
        for (std::int64_t start = 0; start < weights.size(); start += kBlock) {
            const int n = static_cast<int>(std::min<std::int64_t>(kBlock, weights.size() - start));
            if (visit(start, n, exact_weights(weights, start, n, scratch, sums))) return;
        }
    };
    std::int64_t last_positive = -1;
    each_block([&](std::int64_t start, int n, const double* w) {
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
    each_block([&](std::int64_t start, int n, const double* w) {
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
// -1 if the error leaves its identity open.
inline std::int64_t draw_by_blocks(const Weights& weights, const Blocks& blocks, double u,
                                   double total, double relative_error, Scratch& scratch,
                                   const RowSums& sums) {
    const double margin = 2 * relative_error * total, threshold = u * total;
    double below = 0;
    const std::int64_t j =
        find_crossing(scratch.block_weights.data(), blocks.count(), threshold, below);
    if (j == blocks.count()) return -1;
    const int n = blocks.size(j);
    const double* w = exact_weights(weights, blocks.start(j), n, scratch, sums);
    const std::int64_t i = find_crossing(w, n, threshold, below);
    if (i == n) return -1;
    const bool certain = (below == 0 || below + margin <= threshold) &&
                         below + w[i] >= threshold + margin;
    return certain ? blocks.start(j) + i : -1;
}

template <typename T>
double total_by_blocks(const Weights& weights, const Blocks& blocks, Scratch& scratch,
                       const RowSums& sums, RowCheck& check) {
    scratch.block_weights.resize(blocks.count());
    sum_blocks<T>(weights, blocks, scratch, sums, scratch.block_weights.data(), check);
    return std::accumulate(scratch.block_weights.begin(), scratch.block_weights.end(), 0.0);
}

// The weights of float32 rows summed without a float32 rounding.
inline double exact_total_by_blocks(const Weights& weights, const Blocks& blocks,
                                    Scratch& scratch, const RowSums& sums) {
    const float* p = weights.p.as<float>();
    const float* q = weights.q ? weights.q->as<float>(weights.size()) : nullptr;
    if (!p || (weights.q && !q)) {
        RowCheck ignored;
        return total_by_blocks<double>(weights, blocks, scratch, sums, ignored);
    }
    const auto sum = [&](std::int64_t start, std::int64_t n, double* out) {
        if (q) {
            sums.exact_residual_float32(p + start, q + start, n, out);
        } else {
            sums.exact_plain_float32(p + start, n, out);
        }
    };
    const int first = blocks.size(0);
    sum(0, first, scratch.block_weights.data());
    sum(first, weights.size() - first, scratch.block_weights.data() + 1);
    return std::accumulate(scratch.block_weights.begin(), scratch.block_weights.end(), 0.0);
}

// The definition in one pass, for so few tokens that blocks would only be in the way.
inline Drawn draw_few(const Weights& weights, double u, Scratch& scratch, RowCheck& check) {
    const int n = static_cast<int>(weights.size());
    double *w = scratch.p64, *q = scratch.q64;
    weights.p.copy(0, n, w);
    if (weights.q) weights.q->copy(0, n, q);
    double total = 0;
    std::int64_t last_positive = -1;
    for (int i = 0; i < n; ++i) {
        check.p_mass += w[i];
        check.sign |= w[i] < 0;
        if (weights.q) {
            check.q_mass += q[i];
            check.sign |= q[i] < 0;
            w[i] = w[i] - q[i] > 0 ? w[i] - q[i] : 0;
        }
        total += w[i];
        if (w[i] != 0) last_positive = i;
    }
    if (!(total > 0) || std::isinf(total)) return {-1, total};
    const double threshold = u * total;
    double running = 0;
    for (int i = 0; i < n; ++i) {
        running += w[i];
        if (running > threshold) return {i, total};
    }
    return {last_positive, total};
}

}  // namespace detail

// Draw one token. `check` receives what the pass saw of the row or rows.
inline Drawn draw(const Weights& weights, double u, Scratch& scratch, const RowSums& sums,
                  RowCheck& check) {
    using namespace detail;
    if (weights.size() <= kFew) return draw_few(weights, u, scratch, check);
    // Two sums of V numbers, theirs and ours, and the product with u, each rounding at most once
    // per number.
    const double order_error = (2.0 * weights.size() + 16) * 0x1p-53;
    const auto trusted = [](double total) { return total > 1e-280 && total < 1e280; };
    const bool narrow =
        weights.p.dtype != Dtype::float64 && (!weights.q || weights.q->fits_float32);
    const Blocks blocks(weights.p);
    double total;
    std::int64_t token = -1;
    if (narrow) {
        total = total_by_blocks<float>(weights, blocks, scratch, sums, check);
        const double error = order_error + kFastRoundoff * 1.01;
        if (trusted(total)) {
            token = draw_by_blocks(weights, blocks, u, total, error, scratch, sums);
        }
        if (token < 0 && trusted(total)) {
            const double repeated = exact_total_by_blocks(weights, blocks, scratch, sums);
            token = draw_by_blocks(weights, blocks, u, repeated, order_error, scratch, sums);
        }
    } else {
        total = total_by_blocks<double>(weights, blocks, scratch, sums, check);
        if (trusted(total)) {
            token = draw_by_blocks(weights, blocks, u, total, order_error, scratch, sums);
        }
    }
    if (token < 0 && total != 0) return draw_in_order(weights, u, scratch, sums);
    return {token, total};
}

}  // namespace draftproof
