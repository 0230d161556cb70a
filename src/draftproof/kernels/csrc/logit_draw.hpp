// Draws from a LogitLaw and from what a draft leaves of it: by block sums within their error, else
// in float64. The definition's tokens, but for a uniform within rounding of a token's edge.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "draw.hpp"
#include "logit_draft.hpp"
#include "logit_law.hpp"

namespace draftproof {

// Weights max(0, scale * p - q), or p without a draft, summed by blocks or by the tokens of a list.
class LogitWeights {
   public:
    explicit LogitWeights(LogitLaw& law) : law_(law) {}

    // Sum the weights; q is what `draft` looked at last.
    void sum(LogitDraft* draft, double scale, double scale_error) {
        draft_ = draft;
        scale_ = scale;
        check_ = {};
        is_checked_ = false;
        if (draft) draft->load();
        is_sparse_ = draft && !law_.is_list() && draft->is_sparse();
        if (law_.is_list()) {
            sum_list(scale_error);
        } else if (!draft) {
            sums_ = law_.block_sums();
            unit_ = law_.total();
            total_ = unit_;
            error_ = law_.error() * unit_;
        } else if (is_sparse_) {
            sum_all_but_few(scale_error);
        } else {
            sum_differences(scale_error);
        }
    }

    // In units of probability, and the absolute error of every partial sum.
    double total() const { return total_ / unit_; }
    double error() const { return error_ / unit_; }
    // What a pass over a dense q has seen, if there was one.
    const RowCheck* check() const { return is_checked_ ? &check_ : nullptr; }

    // The first token whose running sum exceeds u times the total; -1 if the error leaves it open.
    std::int64_t draw(double u) {
        const double threshold = u * total_, margin = 2 * error_;
        const bool exact = is_exact();
        double below = 0;
        if (law_.is_list()) {
            const auto count = static_cast<std::int64_t>(sums_.size());
            const std::int64_t at = detail::find_crossing(sums_.data(), count, threshold, below);
            if (exact) return at < count ? law_.list()[at].token : last_positive();
            if (at == count) return -1;
            return is_certain(below, sums_[at], threshold, margin) ? law_.list()[at].token : -1;
        }
        const auto count = static_cast<std::int64_t>(sums_.size());
        for (std::int64_t j = detail::find_crossing(sums_.data(), count, threshold, below); j < count; ++j) {
            const int n = law_.block_size(j);
            write(j, block_);
            const std::int64_t i = detail::find_crossing(block_, n, threshold, below);
            if (i < n && (exact || is_certain(below, block_[i], threshold, margin))) {
                return j * kLogitBlock + i;
            }
            if (!exact) return -1;
        }
        return exact ? last_positive() : -1;
    }

    bool is_exact() const {
        return law_.is_exact() && (!draft_ || draft_->error() < kExactError);
    }
    void refine() {
        law_.refine();
        if (draft_) draft_->refine();
    }

   private:
    static constexpr double kExactError = 1e-9;

    static bool is_certain(double below, double w, double threshold, double margin) {
        return below + margin <= threshold && below + w >= threshold + margin;
    }

    void sum_list(double scale_error) {
        sums_.clear();
        unit_ = 1;
        total_ = 0;
        double p_mass = 0;
        for (const Candidate& at : law_.list()) {
            const double p = scale_ * (at.weight / law_.total());
            double w = p;
            if (draft_) w = std::max(p - draft_->probability(at.token), 0.0);
            sums_.push_back(w);
            total_ += w;
            p_mass += p;
        }
        error_ = (law_.error() + scale_error) * p_mass + (draft_ ? draft_->error() : 0);
    }

    // All blocks are the law's own, but for those in which q has a token.
    void sum_all_but_few(double scale_error) {
        sums_ = law_.block_sums();
        unit_ = law_.total();
        if (scale_ != 1) {
            for (double& sum : sums_) sum *= scale_;
        }
        const auto& entries = draft_->entries();
        for (std::size_t e = 0; e < entries.size();) {
            const std::int64_t j = entries[e].token / kLogitBlock;
            if (j >= law_.num_blocks()) break;  // beyond the vocabulary: judged elsewhere
            write(j, block_);
            sums_[j] = law_.sum(block_, law_.block_size(j));
            while (e < entries.size() && entries[e].token / kLogitBlock == j) ++e;
        }
        total_ = 0;
        for (double sum : sums_) total_ += sum;
        error_ = (law_.error() + scale_error + draft_->error()) * 2 * unit_;
    }

    void sum_differences(double scale_error) {
        unit_ = 1;
        total_ = 0;
        sums_.resize(law_.num_blocks());
        const bool exact = is_exact();
        for (std::int64_t j = 0; j < law_.num_blocks(); ++j) {
            const int n = law_.block_size(j);
            if (exact) {
                write(j, block_);
                sums_[j] = law_.sum(block_, n);
            } else {
                law_.write(j, p_);
                draft_->write(j, n, q_);
                double pair[2] = {};
                law_.row_sums().residual(p_, q_, scale_, Look::suspicion, n, pair, check_);
                sums_[j] = pair[0] + pair[1];
            }
            total_ += sums_[j];
        }
        is_checked_ = !exact;
        error_ = exact ? 2 * law_.error() + draft_->error()
                       : scale_ * (law_.written_error() + scale_error) + draft_->written_error() +
                             kScaledRoundoff;
    }

    // The weights of a block, in units.
    void write(std::int64_t j, double* out) {
        const int n = law_.block_size(j);
        const std::int64_t start = j * kLogitBlock;
        if (!draft_) {
            law_.write_weights(j, out);
            return;
        }
        if (is_sparse_) {
            law_.write_weights(j, out);
            for (int i = 0; scale_ != 1 && i < n; ++i) out[i] *= scale_;
            const auto& entries = draft_->entries();
            auto entry = std::lower_bound(
                entries.begin(), entries.end(), start,
                [](const SparseEntry& at, std::int64_t token) { return at.token < token; });
            for (; entry != entries.end() && entry->token < start + n; ++entry) {
                double& w = out[entry->token - start];
                w = std::max(w - entry->probability * unit_, 0.0);
            }
            return;
        }
        law_.write(j, out);
        draft_->write(j, n, q64_);
        for (int i = 0; i < n; ++i) out[i] = std::max(scale_ * out[i] - q64_[i], 0.0);
    }

    std::int64_t last_positive() {
        for (auto j = static_cast<std::int64_t>(sums_.size()) - 1; j >= 0; --j) {
            if (!(sums_[j] > 0)) continue;
            if (law_.is_list()) return law_.list()[j].token;
            write(j, block_);
            for (int i = law_.block_size(j) - 1; i >= 0; --i) {
                if (block_[i] > 0) return j * kLogitBlock + i;
            }
        }
        return -1;
    }

    LogitLaw& law_;
    LogitDraft* draft_ = nullptr;
    double scale_ = 1, unit_ = 1, total_ = 0, error_ = 0;
    RowCheck check_;
    bool is_checked_ = false, is_sparse_ = false;
    std::vector<double> sums_;
    alignas(64) float p_[kLogitBlock], q_[kLogitBlock];
    alignas(64) double block_[kLogitBlock], q64_[kLogitBlock];
};

}  // namespace draftproof
