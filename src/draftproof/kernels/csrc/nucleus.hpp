// Where the likeliest tokens of a row reach a mass: a histogram of masses, then one bin in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kept.hpp"
#include "logit_law.hpp"

namespace draftproof {

// The last token that is kept, and whether the error of the sums could have chosen another.
struct Crossing {
    double z;
    std::int64_t token;
    bool certain;
};

class Nucleus {
   public:
    // Raise `kept`, what the law is made of, to the fewest largest logits of mass p.
    void find(LogitLaw& law, double p, bool keep_ties, Kept& kept) {
        law_ = &law;
        if (!law.suits_float32()) {
            const Crossing crossing = cross_at(kInfinity, p);
            kept.raise(crossing.z, keep_ties ? Kept::kAll : crossing.token);
            return;
        }
        const double total = law.total();
        // A token whose weight is below the rest's mean is not needed; and if most are nearly
        // equal, few lie deeper than a multiple of their mean depth (Markov).
        const double deepest = std::log2(law.size() / ((1 - p) * total)) + 1;
        const double unevenness = 12 * (1 - total / law.size());
        double depth = unevenness < 0.9 ? std::max(-std::log2(1 - unevenness), 1e-6) : deepest;
        Crossing crossing = cross_at(std::min(depth, deepest), p);
        if (is_too_deep_) crossing = cross_at(deepest, p);
        if (is_too_deep_) crossing = cross_at(kInfinity, p);
        kept.raise(crossing.z, keep_ties ? Kept::kAll : crossing.token);
    }

    // Where the running sum, largest first and lowest ids first among equals, reaches the target
    // from `below`: the last candidate before which it is less. The candidates are reordered.
    Crossing cross(std::vector<Candidate>& candidates, double below, double target,
                   double margin) {
        auto first = candidates.begin(), last = candidates.end();
        while (last - first > kSorted) {
            const double pivot = median(first->z, (first + (last - first) / 2)->z, (last - 1)->z);
            const auto equal = std::stable_partition(
                first, last, [pivot](const Candidate& at) { return at.z > pivot; });
            const auto less = std::stable_partition(
                equal, last, [pivot](const Candidate& at) { return at.z == pivot; });
            const double above = mass(first, equal), ties = mass(equal, less);
            if (below + above >= target) {
                last = equal;
            } else if (below + above + ties >= target || less == last) {
                below += above;
                first = equal;
                last = less;
                break;
            } else {
                below += above + ties;
                first = less;
            }
        }
        std::stable_sort(first, last,
                         [](const Candidate& a, const Candidate& b) { return a.z > b.z; });
        for (; last - first > 1 && below + first->weight < target; ++first) {
            below += first->weight;
        }
        const bool certain =
            target - below > margin && below + first->weight - target > margin;
        return {first->z, first->token, certain};
    }

   private:
    static constexpr int kBins = 512, kCopies = 4, kLast = kBins - 1;
    static constexpr std::ptrdiff_t kSorted = 256;
    static constexpr int kChunk = 16;

    using At = std::vector<Candidate>::iterator;

    static double median(double a, double b, double c) {
        return std::max(std::min(a, b), std::min(std::max(a, b), c));
    }
    static double mass(At first, At last) {
        double sum = 0;
        for (; first != last; ++first) sum += first->weight;
        return sum;
    }

    // The histogram's bins reach down to `depth`, in powers of two; the last one holds the rest.
    Crossing cross_at(double depth, double p) {
        per_ = static_cast<float>(kLast / depth * law_->scale());
        add_masses();
        const double total = law_->total(), target = p * total;
        const double margin = 3 * law_->error() * total;
        double below = 0;
        int low = 0;
        while (low < kLast && below + masses_[0][low] + margin < target) {
            below += masses_[0][low++];
        }
        double up_to = below + masses_[0][low];
        int high = low;
        while (high < kLast && up_to - margin < target) up_to += masses_[0][++high];
        is_too_deep_ = high == kLast && depth < kInfinity;
        if (is_too_deep_) return {};
        list_candidates(low, high);
        Crossing crossing = cross(candidates_, below, target, margin);
        if (!crossing.certain && !law_->is_exact()) {
            below = 0;
            law_->refine([&](std::int64_t j, double* weights) { below += above(j, low, weights); });
            for (Candidate& candidate : candidates_) candidate.weight = law_->weight(candidate.z);
            crossing = cross(candidates_, below, p * law_->total(), 0);
        }
        return crossing;
    }

    // In float64 at once where the tokens are many and alike: float32 sums would tell none apart.
    void add_masses() {
        for (auto& copy : masses_) std::fill(copy, copy + kBins, 0.0);
        if (!law_->is_exact() && law_->total() * 256 > static_cast<double>(law_->size())) {
            law_->refine([&](std::int64_t j, double* weights) { add_block(j, weights); });
        } else {
            for (std::int64_t j = 0; j < law_->num_blocks(); ++j) {
                if (law_->is_exact()) {
                    law_->write_weights(j, exact_);
                    add_block(j, exact_);
                } else {
                    law_->write_weights(j, weights_);
                    add_block(j, weights_);
                }
            }
        }
        for (int bin = 0; bin < kBins; ++bin) {
            for (int copy = 1; copy < kCopies; ++copy) masses_[0][bin] += masses_[copy][bin];
        }
    }

    // Four copies, since an addition waits for the one before to the same place.
    template <typename T>
    void add_block(std::int64_t j, const T* weights) {
        const int n = law_->block_size(j);
        law_->write_bins(j, per_, kLast, bins_);
        int i = 0;
        for (; i + kCopies <= n; i += kCopies) {
            for (int copy = 0; copy < kCopies; ++copy) {
                masses_[copy][bins_[i + copy]] += weights[i + copy];
            }
        }
        for (; i < n; ++i) masses_[0][bins_[i]] += weights[i];
    }

    void list_candidates(int low, int high) {
        candidates_.clear();
        for (std::int64_t j = 0; j < law_->num_blocks(); ++j) {
            std::fill(bins_ + law_->block_size(j), bins_ + kLogitBlock, kLast + 1);
            law_->write_bins(j, per_, kLast, bins_);
            const std::int64_t start = j * kLogitBlock;
            for (int i = 0; i < law_->block_size(j); ++i) {
                if (i % kChunk == 0 && !any_within(bins_ + i, low, high)) i += kChunk - 1;
                if (bins_[i] < low || bins_[i] > high) continue;
                const double z = law_->row()[start + i];
                if (z == -kInfinity || !law_->kept().has(z, start + i)) continue;
                candidates_.push_back({start + i, z, law_->weight(z)});
            }
        }
    }

    static bool any_within(const std::int32_t* bins, int low, int high) {
        int any = 0;
        for (int i = 0; i < kChunk; ++i) any |= (bins[i] >= low) & (bins[i] <= high);
        return any;
    }

    // The mass of a block's bins above `low`.
    double above(std::int64_t j, int low, double* weights) {
        const int n = law_->block_size(j);
        law_->write_bins(j, per_, kLast, bins_);
        for (int i = 0; i < n; ++i) weights[i] = bins_[i] < low ? weights[i] : 0;
        return law_->sum(weights, n);
    }

    LogitLaw* law_ = nullptr;
    float per_ = 0;
    bool is_too_deep_ = false;
    double masses_[kCopies][kBins];
    std::vector<Candidate> candidates_;
    alignas(64) float weights_[kLogitBlock];
    alignas(64) double exact_[kLogitBlock];
    alignas(64) std::int32_t bins_[kLogitBlock];
};

}  // namespace draftproof
