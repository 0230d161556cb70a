// A guess at where the likeliest tokens of a row reach a mass, from a few thousand of its logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "logit_law.hpp"

namespace draftproof {

// The last token that is kept lies within least..most, in all likelihood.
struct Edges {
    float least = -std::numeric_limits<float>::infinity();
    float most = std::numeric_limits<float>::infinity();
    double share = 1;   // of the tokens, from `least` up
    double weight = 0;  // of a token at `least`
};

class MassSample {
   public:
    // At most one of so many logits is looked at.
    static constexpr std::int64_t kSparse = 16, kDense = 8;

    // Where the tokens below the edge have about the mass 1 - p of the law of a whole row.
    Edges guess(LogitLaw& law, double p, std::int64_t sparsity) {
        if (!law.suits_float32() || !law.kept().has_every()) return {};
        // Weights here are relative to the largest.
        const double raised = std::exp2((law.shift() - law.largest()) * law.scale());
        const double rest = (1 - p) * law.total() * raised;
        const auto size = static_cast<double>(law.size());
        // A token whose weight is below the rest's mean is not needed.
        const double deepest = (std::log2(size / rest) + 1) / law.scale();
        const auto top = static_cast<float>(law.largest());
        const int n = take(law, sparsity);
        float least = top;
#pragma omp simd reduction(min : least)
        for (int i = 0; i < n; ++i) least = std::min(least, z_[i]);
        const double depth = std::max(std::min<double>(top - least, deepest),
                                      0x1p-20 * (1 + std::fabs(top)));
        add(law, n, top, depth);
        const double each = size / n, width = depth / kLast;
        double mass = 0, square = 0, most = 0;
        int bin = kLast;
        const auto spread = [&](double unseen) {
            return kDeviations * each * std::sqrt(square + unseen * unseen);
        };
        const double step = std::exp2(width * law.scale());
        for (double w = std::exp2(-depth * law.scale()); bin > 0; --bin, w *= step) {
            mass += each * bins_[bin].mass;
            square += bins_[bin].square;
            if (mass + spread(w) > rest) break;
        }
        Edges edges;
        const double below = bin == kLast ? deepest : (bin + 1) * width;
        edges.least = static_cast<float>(law.largest() - below);
        edges.weight = std::exp2(-below * law.scale());
        for (int i = 0; i <= bin; ++i) most += bins_[i].count;
        edges.share = most / n;
        for (; bin > 0 && mass - spread(0) < rest; --bin) {
            mass += each * bins_[bin - 1].mass;
            square += bins_[bin - 1].square;
        }
        if (bin > 0) edges.most = static_cast<float>(law.largest() - bin * width);
        return edges;
    }

   private:
    static constexpr int kRun = 16, kMost = 1 << 14, kLast = 255;
    static constexpr double kDeviations = 4;

    // Runs of neighbours, evenly spaced.
    int take(LogitLaw& law, std::int64_t sparsity) {
        const std::int64_t runs = law.size() / kRun, most = kMost / kRun * kDense / sparsity,
                           taken = std::clamp<std::int64_t>(runs / sparsity, 1, most);
        for (std::int64_t r = 0; r < taken; ++r) {
            law.copy(r * runs / taken * kRun, kRun, z_ + r * kRun);
        }
        return static_cast<int>(taken * kRun);
    }

    void add(LogitLaw& law, int n, float top, double depth) {
        law.exps().bins_float32(z_, n, top, static_cast<float>(kLast / depth), kLast, places_);
        const double raised = std::exp2(law.whole() - law.largest() * law.scale());
        law.exps().float32(z_, n, law.whole(), static_cast<float>(law.scale()),
                           static_cast<float>(raised), weights_);
        std::fill(bins_, bins_ + kLast + 1, Bin{});
        for (int i = 0; i < n; ++i) {
            const double w = weights_[i];
            Bin& bin = bins_[places_[i]];
            bin.mass += w;
            bin.square += w * w;
            ++bin.count;
        }
    }

    struct Bin {
        double mass, square, count;
    };

    alignas(64) float z_[kMost], weights_[kMost];
    alignas(64) std::int32_t places_[kMost];
    Bin bins_[kLast + 1];
};

}  // namespace draftproof
