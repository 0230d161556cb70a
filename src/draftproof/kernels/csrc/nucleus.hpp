// Where the likeliest tokens of a row reach a mass: of all but those near the edge only the sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kept.hpp"
#include "logit_law.hpp"
#include "mass_sample.hpp"

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
        const Edges rough = sample_.guess(law, p, MassSample::kSparse);
        const double margin = kMarginErrors * law.error();
        const bool few = rough.share < kFewShare && rough.weight > 4 * margin * law.total();
        if (!(few && look_at_few(rough.least, p, margin))) {
            const Edges edges = sample_.guess(law, p, MassSample::kDense);
            bool found = look(edges.least, edges.most, p, kQuickMargin);
            if (found && !crossing_.certain) found = look(edges.least, edges.most, p, 0);
            if (!found) look_at_all(p);
        }
        kept.raise(crossing_.z, keep_ties ? Kept::kAll : crossing_.token);
        kept_ = kept;
    }

    void forget() { law_ = nullptr; }
    // Whether the sums of what is kept are known, if `find` was asked last.
    bool knows(const Kept& kept) const { return law_ && kept_ == kept; }

    // Make a law that was looked at the law of what is kept.
    void keep(LogitLaw& law) {
        const double low = kept_.low;
        const std::int64_t last = kept_.low_last;
        for (std::size_t k = 0; k < count_;) {
            const std::int64_t block = tokens_[k] / kLogitBlock, end = (block + 1) * kLogitBlock;
            double sum = 0;
            for (; k < count_ && tokens_[k] < end; ++k) {
                sum += weights_[k] * ((z_[k] > low) | ((z_[k] == low) & (tokens_[k] <= last)));
            }
            above_[block] += sum;
        }
        law.keep(kept_, above_, shift_, error_);
    }
    // List all that is kept, by token, if that is known to be no more than `most`.
    bool list(std::vector<Candidate>& out, std::size_t most) const {
        out.clear();
        if (!has_every_) return false;
        for (std::size_t k = 0; k < count_; ++k) {
            if (!kept_.has(z_[k], tokens_[k])) continue;
            if (out.size() == most) return false;
            out.push_back(candidate(k));
        }
        return true;
    }

    // Where the running sum, largest first and lowest ids first among equals, reaches the target
    // from `below`: the last candidate before which it is less. The candidates are reordered.
    Crossing cross(std::vector<Candidate>& candidates, double below, double target,
                   double margin) {
        auto first = candidates.begin(), last = candidates.end();
        bool is_plateau = false;
        while (!is_plateau && last - first > kSorted) {
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
                is_plateau = true;
            } else {
                below += above + ties;
                first = less;
            }
        }
        if (!is_plateau) {
            std::stable_sort(first, last,
                             [](const Candidate& a, const Candidate& b) { return a.z > b.z; });
        }
        for (; last - first > 1 && below + first->weight < target; ++first) {
            below += first->weight;
        }
        return crossing(*first, below, target, margin);
    }

   private:
    static constexpr std::ptrdiff_t kSorted = 256;
    static constexpr double kMarginErrors = 3, kFewShare = 1.0 / 16;
    static constexpr double kQuickMargin = 4 * kQuickError;
    static constexpr int kLast = 255;

    using At = std::vector<Candidate>::iterator;

    static double median(double a, double b, double c) {
        return std::max(std::min(a, b), std::min(std::max(a, b), c));
    }
    static double mass(At first, At last) {
        double sum = 0;
        for (; first != last; ++first) sum += first->weight;
        return sum;
    }

    static Crossing crossing(const Candidate& at, double below, double target, double margin) {
        return {at.z, at.token,
                target - below > margin && below + at.weight - target > margin};
    }

    // List all from `least` up, and trust the float32 total; whether that settles it.
    bool look_at_few(float least, double p, double margin) {
        start(true, law_->shift(), 0);
        law_->visit(least, [&](std::int64_t at, int n, const auto* z) {
            add(at, n, z, least, std::numeric_limits<float>::infinity());
            return true;
        });
        const double total = law_->total(), target = p * total, between = weigh();
        if (between - margin * total < target) return false;
        crossing_ = cross_listed(0, target, margin * total);
        return crossing_.certain;
    }

    // List those within least..most, sum all within an error; whether the edge lies among them.
    bool look(float least, float most, double p, double error) {
        if (least == -std::numeric_limits<float>::infinity()) return false;
        // Where all is exact, equal logits have weights of 1: a plateau's edge survives rounding.
        start(most == std::numeric_limits<float>::infinity(),
              error > 0 ? law_->whole() / law_->scale() : law_->largest(), error);
        double total = 0, above = 0;
        law_->visit(-kInfinity, [&](std::int64_t at, int n, const auto* z) {
            double& block = above_[at / kLogitBlock];
            total += sum(z, n, most, block);
            above += block;
            add(at, n, z, least, most);
            return true;
        });
        const double target = p * total;
        if (above + weigh() < target || (above > 0 && above >= target)) return false;
        crossing_ = cross_listed(above, target, error * total);
        return true;
    }

    void look_at_all(double p) {
        start(true, law_->largest(), 0);
        constexpr float infinity = std::numeric_limits<float>::infinity();
        law_->visit(law_->kept().low, [&](std::int64_t at, int n, const auto* z) {
            const std::size_t before = count_;
            add(at, n, z, -infinity, infinity);
            count_ = before;
            for (int i = 0; i < n; ++i) {
                z_[count_] = z[i];
                tokens_[count_] = at + i;
                count_ += z[i] > -kInfinity && law_->kept().has(z[i], at + i);
            }
            return true;
        });
        crossing_ = cross_listed(0, p * weigh(), 0);
    }

    // List anew; weights are to be relative to a logit, and sums within an error.
    void start(bool has_every, double shift, double error) {
        has_every_ = has_every;
        shift_ = shift;
        error_ = error;
        count_ = 0;
        above_.assign(law_->num_blocks(), 0);
    }

    double sum(const float* z, int n, float edge, double& above) {
        if (error_ > 0) {
            return law_->exps().quick_sum_float32(z, n, law_->whole(), law_->scale(), edge, above);
        }
        std::copy_n(z, n, wide_);
        return sum(wide_, n, edge, above);
    }
    double sum(const double* z, int n, float edge, double& above) {
        law_->exps().float64(z, n, shift_, law_->scale(), 1, block_);
        const double all = law_->sum(block_, n);
        for (int i = 0; i < n; ++i) block_[i] = z[i] > edge ? block_[i] : 0;
        above = law_->sum(block_, n);
        return all;
    }

    // List what lies within least..most, of a block that starts at a token.
    void add(std::int64_t start, int n, const float* z, float least, float most) {
        add_places(start, law_->exps().find_float32(z, n, least, most, places_), z);
    }
    void add(std::int64_t start, int n, const double* z, float least, float most) {
        int count = 0;
        for (int i = 0; i < n; ++i) {
            places_[count] = i;
            count += z[i] >= least && z[i] <= most;
        }
        add_places(start, count, z);
    }
    template <typename T>
    void add_places(std::int64_t start, int count, const T* z) {
        if (count_ + count > z_.size()) {
            z_.resize(2 * z_.size() + kLogitBlock);
            tokens_.resize(z_.size());
        }
        for (int k = 0; k < count; ++k) {
            z_[count_ + k] = z[places_[k]];
            tokens_[count_ + k] = start + places_[k];
        }
        count_ += count;
    }
    Candidate candidate(std::size_t k) const { return {tokens_[k], z_[k], weights_[k]}; }

    // Weigh what is listed; the sum.
    double weigh() {
        weights_.resize(z_.size());
        const auto count = static_cast<std::int64_t>(count_);
        law_->exps().float64(z_.data(), count, shift_, law_->scale(), 1, weights_.data());
        double sum = 0;
        for (std::size_t k = 0; k < count_; ++k) sum += weights_[k];
        return sum;
    }

    // The list's crossing: by a histogram of its masses, then by order within one bin.
    Crossing cross_listed(double below, double target, double margin) {
        double least = z_[0], top = z_[0];
#pragma omp simd reduction(min : least) reduction(max : top)
        for (std::size_t k = 0; k < count_; ++k) {
            least = std::min(least, z_[k]);
            top = std::max(top, z_[k]);
        }
        if (least == top) {
            std::size_t k = 0;
            for (; k + 1 < count_ && below + weights_[k] < target; ++k) below += weights_[k];
            return crossing(candidate(k), below, target, margin);
        }
        const double per = kLast / (top - least);
        if (!(0 < per && per < kInfinity)) {  // the range is beyond double's, or denormal
            near_.clear();
            for (std::size_t k = 0; k < count_; ++k) near_.push_back(candidate(k));
            return cross(near_, below, target, margin);
        }
        std::fill(bins_, bins_ + kLast + 1, 0.0);
        const auto bin = [&](double z) { return static_cast<int>((top - z) * per); };
        for (std::size_t k = 0; k < count_; ++k) bins_[bin(z_[k])] += weights_[k];
        int at = 0;
        for (const int last = bin(least); at < last && below + bins_[at] < target; ++at) {
            below += bins_[at];
        }
        near_.clear();
        for (std::size_t k = 0; k < count_; ++k) {
            if (bin(z_[k]) == at) near_.push_back(candidate(k));
        }
        return cross(near_, below, target, margin);
    }

    LogitLaw* law_ = nullptr;
    Kept kept_;
    bool has_every_ = false;
    Crossing crossing_{};
    MassSample sample_;
    double shift_ = 0, error_ = 0;
    std::size_t count_ = 0;  // of candidates, by token
    std::vector<double> z_, weights_;
    std::vector<std::int64_t> tokens_;
    std::vector<double> above_;  // the candidates: the sums, by block
    std::vector<Candidate> near_;
    double bins_[kLast + 1];
    alignas(64) double block_[kLogitBlock], wide_[kLogitBlock];
    alignas(64) std::int32_t places_[kLogitBlock];
};

}  // namespace draftproof
