// Verification of one row's chain of drafts from logits, lazily: draftproof.reference.chain, .block
// and .gumbel on the laws of draftproof.reference.processing.
//
// A row of logits is looked at when its position is reached. What the float32 sums of its law leave
// open is settled in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "judge.hpp"
#include "logit_call.hpp"
#include "logit_draft.hpp"
#include "logit_draw.hpp"
#include "logit_filters.hpp"
#include "logit_law.hpp"
#include "race.hpp"
#include "status.hpp"

namespace draftproof {

// Per thread, reused.
struct LogitScratch {
    Scratch scratch;
    LogitLaw target, draft;
    LogitFilters filters;
    std::vector<Edit> target_edits, draft_edits;
    LogitWeights weights{target};
    std::vector<double> ratios, ratio_errors;
    alignas(64) double block[kLogitBlock];
};

class LogitChainVerifier {
   public:
    LogitChainVerifier(const LogitCall& call, LogitScratch& scratch)
        : call_(call), s_(scratch), p_(scratch.target), weights_(scratch.weights),
          draft_(call, scratch.scratch, scratch.draft, scratch.filters, scratch.draft_edits) {}

    void verify(std::int64_t b) {
        b_ = b;
        looked_at_ = -1;
        draft_.forget();
        std::int64_t* tokens = call_.token_ids + b * (call_.max_draft + 1);
        std::fill(tokens, tokens + call_.max_draft + 1, std::int64_t{-1});
        call_.num_emitted[b] = 0;
        call_.status[b] = judge_shape();
        if (call_.status[b] == status::ok) call_.status[b] = emit();
        if (call_.status[b] > status::zero_residual) return;
        std::copy(drafts_, drafts_ + tau_, tokens);
        tokens[tau_] = last_token_;
        call_.num_emitted[b] = tau_ + 1;
    }

   private:
    static constexpr std::int64_t kUncertain = -1;

    std::int64_t judge_shape() {
        g_ = call_.num_draft[b_];
        if (g_ < 0 || g_ > call_.max_draft) return status::length_out_of_range;
        // Copied, and judged as copies: another thread may write to the caller's arrays meanwhile.
        const std::int64_t at = call_.first(b_);
        auto& ids = s_.scratch.drafts;
        ids.resize(2 * g_);
        drafts_ = ids.data();
        drafter_ids_ = drafts_ + g_;
        std::copy_n(call_.draft_token_ids + at, g_, ids.begin());
        std::copy_n(call_.drafter_token_ids + at, g_, ids.begin() + g_);
        for (std::int64_t i = 0; i < g_; ++i) {
            if (drafter_ids_[i] < 0 || drafter_ids_[i] >= call_.drafter_vocabulary ||
                drafts_[i] < 0 || drafts_[i] >= call_.vocabulary) {
                return status::token_out_of_range;
            }
        }
        return status::ok;
    }

    std::int64_t emit() {
        params_ = call_.target_logits.params(b_);
        if (call_.validate == Validate::full) {
            const std::int64_t fault = judge_every_row();
            if (fault) return fault;
        }
        if (call_.greedy && call_.greedy[b_]) return emit_greedy();
        if (call_.rule == Rule::token) return emit_token();
        if (call_.rule == Rule::exact_match) return emit_exact_match();
        if (call_.rule == Rule::gumbel) return emit_gumbel();
        const std::int64_t outcome = emit_block(false);
        return outcome == kUncertain ? emit_block(true) : outcome;
    }

    std::int64_t judge_every_row() {
        const bool greedy = call_.greedy && call_.greedy[b_];
        for (std::int64_t i = 0; i <= g_; ++i) {
            std::int64_t fault = greedy ? judge_greedy_row(i) : look_at_target(i);
            if (!fault && i < g_) fault = look_at_draft(i);
            if (!fault && i < g_) fault = draft_.judge_row();
            if (!fault && i < g_ && draft_.entry() == 0) fault = status::draft_zero;
            if (fault) return fault;
        }
        return status::ok;
    }

    std::int64_t judge_greedy_row(std::int64_t i) {
        const std::int64_t best = argmax(target_row(i), s_.scratch, p_.row_sums());
        return best < 0 ? status::target_not_finite : status::ok;
    }

    LogitRow target_row(std::int64_t i) {
        return call_.target_logits.row(call_.target_row(b_, i), call_.vocabulary,
                                       call_.target_index(b_, i), s_.target_edits);
    }

    // The target's law at position i, unless it was looked at last.
    std::int64_t look_at_target(std::int64_t i) {
        if (looked_at_ == i) return status::ok;
        looked_at_ = i;
        const LogitLaw::Fault fault = s_.filters.make(p_, target_row(i), params_);
        return fault == LogitLaw::Fault::none ? status::ok : status::target_not_finite;
    }

    std::int64_t look_at_draft(std::int64_t i) {
        return draft_.look_at(b_, i, drafts_[i], drafter_ids_[i]);
    }

    bool is_bad_uniform(double u) const {
        return call_.validate != Validate::off && !is_uniform(u);
    }

    std::int64_t emit_token() {
        const double* accept = call_.accept + call_.first(b_);
        for (tau_ = 0; tau_ < g_; ++tau_) {
            if (is_bad_uniform(accept[tau_])) return status::uniform_out_of_range;
            std::int64_t fault = look_at_target(tau_);
            if (!fault) fault = look_at_draft(tau_);
            if (fault) return fault;
            if (!accepts(drafts_[tau_], accept[tau_])) break;
        }
        const double u = call_.final[b_];
        if (is_bad_uniform(u)) return status::uniform_out_of_range;
        if (tau_ < g_) return recover(1, 0, u);
        const std::int64_t fault = look_at_target(g_);
        if (fault) return fault;
        draw(u);
        return status::ok;
    }

    // p > 0 and (p >= q or u q < p): where p > 0 and u < 1, that is u q < p.
    bool accepts(std::int64_t token, double u) {
        double p = p_.probability(token), q = draft_.entry();
        const double error = 1.01 * (p_.error() + draft_.error()) + 0x1p-50;
        if (!(std::fabs(p - u * q) > error * std::max(p, u * q)) && p > 0) {
            p_.refine();
            draft_.refine();
            look_at_draft(tau_);  // its entry, anew
            p = p_.probability(token);
            q = draft_.entry();
        }
        return p > 0 && (p >= q || u * q < p);
    }

    void draw(double u) {
        weights_.sum(nullptr, 1, 0);
        last_token_ = weights_.draw(u);
        if (last_token_ >= 0) return;
        weights_.refine();
        weights_.sum(nullptr, 1, 0);
        last_token_ = weights_.draw(u);
    }

    // The token after a rejection, from max(0, scale * p - q).
    std::int64_t recover(double scale, double scale_error, double u) {
        weights_.sum(&draft_, scale, scale_error);
        const std::int64_t fault = draft_.judge(weights_.check());
        if (fault) return fault;
        if (!weights_.is_exact()) {
            if (weights_.error() < 0.01 * weights_.total()) {
                last_token_ = weights_.draw(u);
                if (last_token_ >= 0) return status::ok;
            }
            weights_.refine();
            weights_.sum(&draft_, scale, scale_error);
        }
        if (weights_.total() > 0) {
            last_token_ = weights_.draw(u);
            return status::ok;
        }
        draw(u);  // p equals q but for rounding: no epsilon, draw from p
        return status::zero_residual;
    }

    std::int64_t emit_exact_match() {
        for (tau_ = 0;; ++tau_) {
            const bool drafted = tau_ < g_;
            const double u = drafted ? call_.accept[call_.first(b_) + tau_] : call_.final[b_];
            if (is_bad_uniform(u)) return status::uniform_out_of_range;
            const std::int64_t fault = look_at_target(tau_);
            if (fault) return fault;
            draw(u);
            if (!drafted || last_token_ != drafts_[tau_]) return status::ok;
        }
    }

    // Each token's noise is made where it is read.
    std::int64_t emit_gumbel() {
        for (tau_ = 0;; ++tau_) {
            const std::int64_t fault = look_at_target(tau_);
            if (fault) return fault;
            p_.refine();
            const auto position = static_cast<std::uint64_t>(call_.positions[b_] + tau_);
            Race race(call_.seeds[b_], position);
            if (p_.is_list()) {
                for (const Candidate& at : p_.list()) race.enter(at.token, at.weight / p_.total());
            } else {
                for (std::int64_t j = 0; j < p_.num_blocks(); ++j) {
                    p_.write(j, s_.block);
                    race.enter(j * kLogitBlock, s_.block, p_.block_size(j));
                }
            }
            last_token_ = race.winner();
            if (tau_ == g_ || last_token_ != drafts_[tau_]) return status::ok;
        }
    }

    std::int64_t emit_greedy() {
        for (tau_ = 0;; ++tau_) {
            last_token_ = argmax(target_row(tau_), s_.scratch, p_.row_sums());
            if (last_token_ < 0) return status::target_not_finite;
            if (tau_ == g_ || last_token_ != drafts_[tau_]) return status::ok;
        }
    }

    // draftproof.reference.block. kUncertain where the errors of float32 sums leave a test open.
    std::int64_t emit_block(bool exact) {
        const double* accept = call_.accept + call_.first(b_);
        auto &w = s_.ratios, &errors = s_.ratio_errors;
        w.assign(g_ + 1, 1);
        errors.assign(g_ + 1, 0);
        for (std::int64_t i = 0; i < g_; ++i) {
            if (is_bad_uniform(accept[i])) return status::uniform_out_of_range;
            const std::int64_t fault = look_at(i, exact);
            if (fault) return fault;
            const double p = p_.probability(drafts_[i]), q = draft_.entry(), scaled = w[i] * p;
            w[i + 1] = scaled == 0 ? scaled : scaled < q ? scaled / q : 1;
            const double error = exact ? 0 : errors[i] + p_.error() + draft_.error() + 0x1p-50;
            errors[i + 1] = scaled * (1 - error) > q ? 0 : 1.01 * error;
        }
        const double u = call_.final[b_];
        if (is_bad_uniform(u)) return status::uniform_out_of_range;
        tau_ = g_;
        if (g_ == 0 || accept[g_ - 1] < w[g_]) {
            if (g_ > 0 && is_close(accept[g_ - 1], w[g_], errors[g_])) return kUncertain;
            const std::int64_t fault = look_at_target(g_);
            if (fault) return fault;
            draw(u);
            return status::ok;
        }
        if (is_close(accept[g_ - 1], w[g_], errors[g_])) return kUncertain;
        for (tau_ = g_ - 1;; --tau_) {
            if (!(w[tau_] > 0)) continue;
            const std::int64_t fault = look_at(tau_, exact);
            if (fault) return fault;
            if (tau_ == 0 || w[tau_] >= 1) {
                if (errors[tau_] > 0) return kUncertain;
                return recover(w[tau_], 0, u);
            }
            weights_.sum(&draft_, w[tau_], errors[tau_]);
            const std::int64_t bad = draft_.judge(weights_.check());
            if (bad) return bad;
            const double z = weights_.total(), test = accept[tau_ - 1],
                         bound = test * (z + (1 - w[tau_])),
                         error = 2 * (weights_.error() + errors[tau_]);
            if (!exact && !(std::fabs(z - bound) > error)) return kUncertain;
            if (test * (z + (1 - w[tau_])) < z) return recover(w[tau_], errors[tau_], u);
        }
    }

    static bool is_close(double u, double w, double error) {
        return error > 0 && !(std::fabs(u - w) > error * w);
    }

    std::int64_t look_at(std::int64_t i, bool exact) {
        std::int64_t fault = look_at_target(i);
        if (!fault) fault = look_at_draft(i);
        if (fault || !exact) return fault;
        p_.refine();
        draft_.refine();
        return look_at_draft(i);
    }

    const LogitCall& call_;
    LogitScratch& s_;
    LogitLaw& p_;
    LogitWeights& weights_;
    LogitDraft draft_;
    LogitParams params_{};
    std::int64_t b_ = 0, g_ = 0, tau_ = 0, last_token_ = -1, looked_at_ = -1;
    const std::int64_t* drafts_ = nullptr;       // in the target's vocabulary
    const std::int64_t* drafter_ids_ = nullptr;  // in the drafter's
};

}  // namespace draftproof
