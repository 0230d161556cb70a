// Log-probabilities of emitted tokens and of the likeliest: draftproof.logits.logprobs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "logit_call.hpp"
#include "logit_chain.hpp"
#include "logit_law.hpp"

namespace draftproof {

// What is written, by place b * (K + 1) + i.
struct LogprobTable {
    std::int64_t n;  // alternatives
    bool raw;        // of the logits as given
    double* token_logprobs;
    std::int64_t *token_ranks, *top_token_ids;
    double* top_logprobs;
    bool* is_written;  // not where a row has no law
};

class LogitLogprobs {
   public:
    LogitLogprobs(const LogitCall& call, const LogprobTable& table, LogitScratch& scratch)
        : call_(call), table_(table), s_(scratch), law_(scratch.target) {}

    // Row b, all that it emitted.
    void list(std::int64_t b) {
        for (std::int64_t i = 0; i < call_.num_emitted[b]; ++i) {
            const std::int64_t place = b * (call_.max_draft + 1) + i;
            if (!look_at(b, i)) continue;
            token(call_.token_ids[place], place);
            likeliest(place);
            table_.is_written[place] = true;
        }
    }

   private:
    bool look_at(std::int64_t b, std::int64_t i) {
        const Row stored = call_.target_row(b, i);
        const bool greedy = call_.greedy && call_.greedy[b];
        const LogitRow row =
            table_.raw ? LogitRow{stored, call_.vocabulary, nullptr, nullptr, 0}
                       : call_.target_logits.row(stored, call_.vocabulary,
                                                 call_.target_index(b, i), s_.target_edits);
        const LogitParams params = table_.raw || greedy ? LogitSide{}.params(b)
                                                        : call_.target_logits.params(b);
        is_filtered_ = params.filter();
        if (s_.filters.make(law_, row, params) != LogitLaw::Fault::none) return false;
        law_.refine();
        total_ = law_.log_total();
        return true;
    }

    double logarithm(double z) const { return law_.log_weight(z) - total_; }

    // Logits that differ by less may have the same logarithm.
    double slack(double z) const {
        return 0x1p-50 * (std::fabs(z) + std::fabs(law_.largest()) +
                          law_.temperature() * std::fabs(total_));
    }

    void token(std::int64_t id, std::int64_t place) {
        const double z = law_.row()[id], log = logarithm(z);
        std::int64_t above = 0;
        if (law_.is_list()) {
            for (const Candidate& at : law_.list()) above += logarithm(at.z) > log;
        } else {
            const double surely = z + slack(z);
            law_.visit(z, [&](std::int64_t, int n, const auto* row) {
                int more = 0, surely_more = 0;
                for (int i = 0; i < n; ++i) {
                    more += row[i] > z;
                    surely_more += row[i] > surely;
                }
                for (int i = 0; more > surely_more && i < n; ++i) {
                    surely_more += row[i] > z && row[i] <= surely && logarithm(row[i]) > log;
                }
                above += surely_more;
                return true;
            });
        }
        table_.token_logprobs[place] = log;
        table_.token_ranks[place] = 1 + above;
    }

    void likeliest(std::int64_t place) {
        if (table_.n == 0) return;
        best_.clear();
        if (law_.is_list()) {
            for (const Candidate& at : law_.list()) {
                if (has(at.weight)) {
                    best_.push_back({at.token, logarithm(at.z), 0});
                }
            }
        } else {
            list_from(std::max(law_.kept().low, law_.kth_largest_block(table_.n)));
        }
        const auto n = static_cast<std::ptrdiff_t>(
            std::min(best_.size(), static_cast<std::size_t>(table_.n)));
        std::partial_sort(best_.begin(), best_.begin() + n, best_.end(),
                          [](const Candidate& a, const Candidate& b) {
                              return a.z > b.z || (a.z == b.z && a.token < b.token);
                          });
        for (std::ptrdiff_t k = 0; k < n && best_[k].z > -kInfinity; ++k) {
            table_.top_token_ids[place * table_.n + k] = best_[k].token;
            table_.top_logprobs[place * table_.n + k] = best_[k].z;
        }
    }

    // Whether the law has a token of this weight: a filter has dropped what is too unlikely.
    bool has(double weight) const { return !is_filtered_ || weight / law_.total() > 0; }

    // What is kept, from `least` up; n at least, if there are so many.
    void list_from(double least) {
        least -= std::isfinite(least) ? slack(least) : 0;
        law_.visit(least, [&](std::int64_t start, int n, const auto* z) {
            for (int i = 0; i < n; ++i) {
                if (z[i] >= least && z[i] > -kInfinity && law_.kept().has(z[i], start + i) &&
                    has(law_.weight(z[i]))) {
                    best_.push_back({start + i, logarithm(z[i]), 0});
                }
            }
            return true;
        });
    }

    const LogitCall& call_;
    const LogprobTable& table_;
    LogitScratch& s_;
    LogitLaw& law_;
    double total_ = 0;
    bool is_filtered_ = false;
    std::vector<Candidate> best_;  // z: the logarithm
};

}  // namespace draftproof
