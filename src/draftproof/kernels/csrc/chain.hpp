// Verification of one row's chain of drafts: draftproof.reference.chain, lazily.
//
// Only the drafted entries up to the first rejection and the one or two rows of the last draw are
// read. What is read is judged on the way (draftproof.validation says what, and in which order).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "argmax.hpp"
#include "call.hpp"
#include "draft_rows.hpp"
#include "draw.hpp"
#include "judge.hpp"
#include "laws.hpp"
#include "race.hpp"
#include "row_sums.hpp"
#include "status.hpp"

namespace draftproof {

// Verifies rows one at a time; one for each thread.
class ChainVerifier {
   public:
    // ahead: rows before this one may be asked for in advance.
    ChainVerifier(const Call& call, Scratch& scratch, std::int64_t ahead)
        : call_(call), ahead_(ahead), scratch_(scratch), sums_(*best_instruction_set().sums),
          draft_(call, scratch.entries) {}

    void verify(std::int64_t b) {
        b_ = b;
        std::int64_t* tokens = call_.token_ids + b * (call_.max_draft + 1);
        std::fill(tokens, tokens + call_.max_draft + 1, std::int64_t{-1});
        call_.num_emitted[b] = 0;
        call_.status[b] = judge_shape();
        if (call_.status[b] == status::ok) call_.status[b] = emit();
        if (call_.status[b] > status::zero_residual) {
            if (call_.rule == Rule::greedy_block) Discounts::keep(call_.discounts, b);
            return;
        }
        std::copy(drafts_, drafts_ + tau_, tokens);
        tokens[tau_] = last_token_;
        call_.num_emitted[b] = tau_ + 1;
    }

    // Ask for the numbers that the accept tests of row b will read: they lie far apart, and each
    // would be waited for in turn.
    void prefetch_entries(std::int64_t b) const {
        if (b >= ahead_) return;
        const std::int64_t g = std::clamp<std::int64_t>(call_.num_draft[b], 0, call_.max_draft);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(g, kPrefetched); ++i) {
            const std::int64_t at = call_.first(b) + i;
            const std::int64_t token = call_.draft_token_ids[at];
            if (token < 0 || token >= call_.vocabulary) continue;
            const Row p = call_.target_row(b, i);
            __builtin_prefetch(p.data + token * p.stride);
            if (call_.draft_kind != DraftLaw::Kind::dense || token >= call_.draft.size) continue;
            const Row q = call_.draft_row(b, i);
            __builtin_prefetch(q.data + token * q.stride);
        }
    }

   private:
    // Ask for the beginnings of the rows that row b will be drawn from, its entries being at hand:
    // the hardware follows a row only once the reading is under way.
    void prefetch_rows(std::int64_t b) const {
        if (b >= ahead_ || call_.draft_kind != DraftLaw::Kind::dense) return;
        const std::int64_t g = std::clamp<std::int64_t>(call_.num_draft[b], 0, call_.max_draft);
        std::int64_t i = 0;
        for (; i < g; ++i) {
            const std::int64_t at = call_.first(b) + i, token = call_.draft_token_ids[at];
            if (token < 0 || token >= std::min(call_.vocabulary, call_.draft.size)) return;
            const double p = call_.target_row(b, i)[token], q = call_.draft_row(b, i)[token];
            if (!(p > 0 && (p >= q || call_.accept[at] * q < p))) break;
        }
        prefetch_halves(call_.target_row(b, i));
        if (i < g) prefetch_halves(call_.draft_row(b, i));
    }

    // A sum reads both halves of a row side by side.
    static void prefetch_halves(const Row& row) {
        constexpr int kLine = 64, kLines = 4;
        for (const std::int64_t start : {std::int64_t{0}, row.size / kBlock / 2 * kBlock}) {
            const char* at = row.data + start * row.stride;
            for (int line = 0; line < kLines; ++line) __builtin_prefetch(at + line * kLine);
        }
    }

    std::int64_t judge_shape() {
        g_ = call_.num_draft[b_];
        const bool discounted = !(call_.greedy && call_.greedy[b_]);
        const std::int64_t least = discounted ? call_.discounts.least_draft(b_) : 0;
        if (g_ < least || g_ > call_.max_draft) return status::length_out_of_range;
        // Copied, and judged as copies: another thread may write to the caller's arrays meanwhile.
        const std::int64_t at = call_.first(b_);
        scratch_.drafts.resize(2 * g_);
        drafts_ = scratch_.drafts.data();
        drafter_ids_ = drafts_ + g_;
        std::copy_n(call_.draft_token_ids + at, g_, scratch_.drafts.begin());
        std::copy_n(call_.drafter_token_ids + at, g_, scratch_.drafts.begin() + g_);
        for (std::int64_t i = 0; i < g_; ++i) {
            if (drafter_ids_[i] < 0 || drafter_ids_[i] >= call_.drafter_vocabulary ||
                drafts_[i] < 0 || drafts_[i] >= call_.vocabulary) {
                return status::token_out_of_range;
            }
        }
        return status::ok;
    }

    std::int64_t emit() {
        if (call_.validate == Validate::full) {
            const std::int64_t fault = judge_every_number();
            if (fault) return fault;
        }
        if (call_.greedy && call_.greedy[b_]) return emit_greedy();
        switch (call_.rule) {
            case Rule::token: return emit_token();
            case Rule::exact_match: return emit_exact_match();
            case Rule::gumbel: return emit_gumbel(call_.validate != Validate::off);
            case Rule::greedy_block: return emit_greedy_block(call_.validate != Validate::off);
            default: return emit_block(call_.validate != Validate::off);
        }
    }

    std::int64_t emit_token() {
        const bool judged = call_.validate != Validate::off;
        const double* accept = call_.accept + call_.first(b_);
        bool suspicious = false;
        for (tau_ = 0; tau_ < g_; ++tau_) {
            const double p = target_entry(tau_), q = draft_entry(tau_), u = accept[tau_];
            suspicious |= !(u >= 0 && u < 1 && p >= 0 && q >= 0 && p <= kLargest && q <= kLargest);
            if (!(p > 0 && (p >= q || u * q < p))) break;
        }
        const bool recovered = tau_ < g_;
        const double u = call_.final[b_];
        suspicious |= !(u >= 0 && u < 1);
        if (judged && suspicious) {
            const std::int64_t fault = judge_entries();
            if (fault) return fault;
        }
        const Row p = call_.target_row(b_, tau_);
        DraftLaw law;
        RowCheck check;
        Drawn drawn;
        std::int64_t outcome = status::ok;
        if (recovered) {
            law = draft_law(tau_);
            suspicious |= draft_.is_suspicious();
            drawn = draw_last({p, &law}, u, check);
            const bool dense = law.kind == DraftLaw::Kind::dense ||
                               law.kind == DraftLaw::Kind::mapped;
            suspicious |= dense && call_.draft_side.is_off(check.q_mass);
            if (drawn.total == 0) {  // p equals q but for rounding: no epsilon, draw from p
                outcome = status::zero_residual;
                drawn = draw({p, nullptr}, u, scratch_, sums_, check = {});
            }
        } else {
            drawn = draw_last({p, nullptr}, u, check);
        }
        suspicious |= check.sign || call_.target_side.is_off(check.p_mass);
        last_token_ = drawn.token;
        if ((judged && suspicious) || last_token_ < 0) {
            std::int64_t fault = judge_entries();
            if (!fault) fault = judge_row(p, call_.target_side);
            if (!fault && recovered) fault = judge_draft_row(tau_);
            if (!fault && last_token_ < 0) fault = call_.target_side.mass;
            if (fault) return fault;
        }
        return outcome;
    }

    Drawn draw_last(const Weights& weights, double u, RowCheck& check) {
        const RowSum sum = sum_row(weights, scratch_, sums_, check);
        prefetch_rows(b_ + 1);
        return draw_summed(weights, u, sum, scratch_, sums_);
    }

    // draftproof.reference.block.
    std::int64_t emit_block(bool judged) {
        const double* accept = call_.accept + call_.first(b_);
        auto& w = scratch_.ratios;
        w.assign(g_ + 1, 1);
        bool suspicious = !is_uniform(call_.final[b_]);
        for (std::int64_t i = 0; i < g_; ++i) {
            const double p = target_entry(i), q = draft_entry(i), scaled = w[i] * p;
            suspicious |= !(is_uniform(accept[i]) && p >= 0 && q >= 0 && p <= kLargest &&
                            q <= kLargest);
            w[i + 1] = scaled == 0 ? scaled : scaled < q ? scaled / q : 1;
        }
        tau_ = g_;
        if (judged && suspicious) {
            const std::int64_t fault = judge_entries();
            if (fault) return fault;
        }
        return emit_scanned(judged);
    }

    // draftproof.reference.greedy_block: block without the cap, on what earlier rounds have left.
    std::int64_t emit_greedy_block(bool judged) {
        const double* accept = call_.accept + call_.first(b_);
        bool suspicious = !is_uniform(call_.final[b_]);
        for (std::int64_t i = 0; i < g_; ++i) {
            const double p = target_entry(i), q = draft_entry(i);
            suspicious |= !(is_uniform(accept[i]) && p >= 0 && q >= 0 && p <= kLargest &&
                            q <= kLargest);
        }
        tau_ = g_;
        if (judged && suspicious) {
            const std::int64_t fault = judge_entries();
            if (fault) return fault;
        }
        Discounts& discounts = scratch_.discounts;
        discounts.start(call_.discounts, b_, g_);
        auto& r = scratch_.ratios;
        r.assign(g_ + 1, 0);
        r[0] = 1;
        for (std::int64_t i = 0; i < g_ && r[i] != 0; ++i) {
            if (discounts.hold(i)) {
                const DraftLaw law = draft_law(i);
                RowCheck check;
                widen(i, law, check);
                const std::int64_t fault = judged ? judge_laws(i, &law, check) : status::ok;
                if (fault) return fault;
                discounts.measure(i, scratch_.p_row.data(), scratch_.q_row.data(),
                                  call_.vocabulary);
            }
            const double q = draft_entry(i), p = discounts.advance(i, target_entry(i), q);
            r[i + 1] = p == 0 ? 0 : q > 0 ? r[i] * (p / q) : HUGE_VAL;
        }
        return emit_scanned(judged);
    }

    // The scan for the drafts to keep, from the last one down, by the ratios in the scratch: rows
    // that it does not keep are read too.
    std::int64_t emit_scanned(bool judged) {
        const double* accept = call_.accept + call_.first(b_);
        const auto& ratios = scratch_.ratios;
        const bool recovered = g_ > 0 && !(accept[g_ - 1] < ratios[g_]);
        const double u = call_.final[b_];
        DraftLaw law{}, wide_law{};
        Weights weights{call_.target_row(b_, tau_), nullptr};
        RowSum sum;
        for (tau_ -= recovered;; --tau_) {
            RowCheck check, ignored;
            bool widened = false;
            if (recovered) {
                if (!(ratios[tau_] > 0)) continue;
                law = draft_law(tau_);
                weights = {call_.target_row(b_, tau_), &law, ratios[tau_]};
                if (call_.rule == Rule::greedy_block) {
                    const bool discounted = scratch_.discounts.hold(tau_);
                    if (ratios[tau_] > 1 && !discounted && emit_above(law, check)) {
                        const std::int64_t fault =
                            judged ? judge_laws(tau_, &law, check) : status::ok;
                        if (!fault) hand_on(law);
                        return fault;
                    }
                    widened = discounted || ratios[tau_] > 1;
                    if (widened) weights = weigh_wide(law, wide_law, check = {});
                }
            }
            sum = sum_row(weights, scratch_, sums_, widened ? ignored : check);
            if (judged) {
                const std::int64_t fault = judge_laws(tau_, recovered ? &law : nullptr, check);
                if (fault) return fault;
            }
            if (!recovered || tau_ == 0 || ratios[tau_] >= 1 ||
                keeps(weights, sum, accept[tau_ - 1])) {
                break;
            }
        }
        Drawn drawn = draw_summed(weights, u, sum, scratch_, sums_);
        std::int64_t outcome = status::ok;
        if (recovered && drawn.total == 0) {  // p equals q but for rounding: no epsilon, draw from p
            outcome = status::zero_residual;
            RowCheck ignored;
            drawn = draw({weights.p, nullptr}, u, scratch_, sums_, ignored);
        }
        last_token_ = drawn.token;
        if (last_token_ >= 0) {
            if (recovered && call_.rule == Rule::greedy_block) hand_on(law);
            return outcome;
        }
        if (judged) return call_.target_side.mass;
        return call_.rule == Rule::block ? emit_block(true) : emit_greedy_block(true);
    }

    // Draw greedy block's last token where the ratio is above 1, from r p - q in place of p - q/r:
    // whether their roundings leave the token open is the answer.
    bool emit_above(const DraftLaw& law, RowCheck& check) {
        const double r = scratch_.ratios[tau_];
        if (call_.vocabulary <= kFew || !(r < 1e6)) return false;
        const Weights weights{call_.target_row(b_, tau_), &law, r};
        const RowSum sum = sum_row(weights, scratch_, sums_, check);
        const double rounding = 0x1p-50 * (1 + r) / sum.total;  // the masses are below 2
        const bool plausible = !check.sign && check.p_mass < 2 && check.q_mass < 2;
        const double u = call_.final[b_];
        if (!plausible || !(rounding < 0.01 && u > 4 * (sum.error + rounding))) return false;
        last_token_ = draw_certified(weights, u, sum, rounding, scratch_, sums_);
        return last_token_ >= 0;
    }

    // The weights of greedy block's last token behind tau_ drafts, in float64 rows of the scratch:
    // those of r p - q where the ratio is below 1, else of p - q/r, which cannot overflow.
    Weights weigh_wide(const DraftLaw& law, DraftLaw& wide_law, RowCheck& check) {
        widen(tau_, law, check);
        auto &p = scratch_.p_row, &q = scratch_.q_row;
        if (scratch_.discounts.hold(tau_)) {
            scratch_.discounts.take_off(tau_, p.data(), q.data(), call_.vocabulary);
        }
        const double r = scratch_.ratios[tau_];
        if (r > 1) {
            for (double& number : q) number /= r;
        }
        wide_law = {DraftLaw::Kind::dense, wide_row(q), nullptr, nullptr, false};
        return {wide_row(p), &wide_law, std::min(r, 1.0)};
    }

    // Lay the laws at position i out in the scratch.
    void widen(std::int64_t i, const DraftLaw& law, RowCheck& check) {
        auto &p = scratch_.p_row, &q = scratch_.q_row;
        p.resize(call_.vocabulary);
        q.resize(call_.vocabulary);
        const Row row = call_.target_row(b_, i);
        RowCheck q_check;
        for (std::int64_t start = 0; start < row.size; start += kBlock) {
            const int n = static_cast<int>(std::min<std::int64_t>(kBlock, row.size - start));
            double ignored;
            row.copy(start, n, &p[start]);
            law.copy(start, n, &q[start]);
            sums_.plain(&p[start], n, &ignored, check);
            sums_.plain(&q[start], n, &ignored, q_check);
        }
        check.q_mass += q_check.p_mass;
        check.sign |= q_check.sign;
    }

    static Row wide_row(const std::vector<double>& numbers) {
        return {reinterpret_cast<const char*>(numbers.data()), sizeof(double),
                static_cast<std::int64_t>(numbers.size()), Dtype::float64};
    }

    // Hand the discounts behind the last token on, with that of the drafts that were rejected.
    void hand_on(const DraftLaw& law) {
        double q;
        law.copy(last_token_, 1, &q);
        Discounts& discounts = scratch_.discounts;
        const double p =
            discounts.advance(tau_, call_.target_row(b_, tau_)[last_token_], q);
        discounts.hand_on(call_.discounts, b_, g_, tau_, q / (scratch_.ratios[tau_] * p));
    }

    // Whether tau_ drafts are kept, tau_ > 0. Where the error of the sum leaves that open, the
    // definition's own sum decides.
    bool keeps(const Weights& weights, const RowSum& sum, double u) {
        const double w = weights.scale;
        double z = sum.total;
        const double bound = u * (z + (1 - w));
        if (!(std::fabs(z - bound) > 2 * (sum.error + 0x1p-51) * std::max(z, bound))) {
            z = mass_in_order(weights, scratch_, sums_);
        }
        return u * (z + (1 - w)) < z;
    }

    std::int64_t emit_exact_match() {
        const bool judged = call_.validate != Validate::off;
        for (tau_ = 0;; ++tau_) {
            const bool drafted = tau_ < g_;
            const double u = drafted ? call_.accept[call_.first(b_) + tau_] : call_.final[b_];
            const Row p = call_.target_row(b_, tau_);
            if (judged && !(u >= 0 && u < 1)) return status::uniform_out_of_range;
            RowCheck check;
            last_token_ = draw({p, nullptr}, u, scratch_, sums_, check).token;
            const bool suspicious = check.sign || call_.target_side.is_off(check.p_mass);
            if ((judged && suspicious) || last_token_ < 0) {
                std::int64_t fault = judge_row(p, call_.target_side);
                if (!fault && last_token_ < 0) fault = call_.target_side.mass;
                if (fault) return fault;
            }
            if (!drafted || last_token_ != drafts_[tau_]) return status::ok;
        }
    }

    // draftproof.reference.gumbel; each token's noise is made where it is read.
    std::int64_t emit_gumbel(bool judged) {
        for (tau_ = 0;; ++tau_) {
            const Row p = call_.target_row(b_, tau_);
            RowCheck check;
            if (judged) sum_row({p, nullptr}, scratch_, sums_, check);
            if (judged && (check.sign || call_.target_side.is_off(check.p_mass))) {
                const std::int64_t fault = judge_row(p, call_.target_side);
                if (fault) return fault;
            }
            const auto position = static_cast<std::uint64_t>(call_.positions[b_] + tau_);
            last_token_ = Race(call_.seeds[b_], position).winner(p, scratch_);
            if (last_token_ < 0) return judged ? call_.target_side.mass : emit_gumbel(true);
            if (tau_ == g_ || last_token_ != drafts_[tau_]) return status::ok;
        }
    }

    std::int64_t emit_greedy() {
        for (tau_ = 0;; ++tau_) {
            last_token_ = argmax(call_.target_row(b_, tau_), scratch_, sums_);
            if (last_token_ < 0) return status::target_not_finite;
            if (tau_ == g_ || last_token_ != drafts_[tau_]) return status::ok;
        }
    }

    double target_entry(std::int64_t i) const { return call_.target_row(b_, i)[drafts_[i]]; }

    double draft_entry(std::int64_t i) const {
        return draft_.entry(b_, i, drafts_[i], drafter_ids_[i]);
    }
    DraftLaw draft_law(std::int64_t i) { return draft_.law(b_, i, drafts_[i]); }

    std::int64_t judge_entries() const {
        if (call_.rule == Rule::exact_match) return status::ok;
        for (std::int64_t i = 0; i < g_ && i <= tau_; ++i) {
            if (!is_uniform(call_.accept[call_.first(b_) + i])) return status::uniform_out_of_range;
            std::int64_t fault = judge_number(target_entry(i), call_.target_side);
            if (!fault) fault = judge_number(draft_entry(i), call_.draft_side);
            if (fault) return fault;
        }
        return is_uniform(call_.final[b_]) ? status::ok : status::uniform_out_of_range;
    }

    std::int64_t judge_every_number() {
        for (std::int64_t i = 0; i <= g_; ++i) {
            std::int64_t fault = judge_row(call_.target_row(b_, i), call_.target_side);
            if (!fault && i < g_ && call_.draft_kind != DraftLaw::Kind::point_mass) {
                fault = judge_draft_row(i);
                if (!fault && draft_entry(i) == 0) fault = status::draft_zero;
            }
            if (fault) return fault;
        }
        return status::ok;
    }

    // Judge whole laws that a pass has checked, p's and then q's if it was read.
    std::int64_t judge_laws(std::int64_t i, const DraftLaw* law, const RowCheck& check) const {
        bool suspicious = check.sign || call_.target_side.is_off(check.p_mass);
        if (law) {
            const bool dense =
                law->kind == DraftLaw::Kind::dense || law->kind == DraftLaw::Kind::mapped;
            suspicious |= draft_.is_suspicious() ||
                          (dense && call_.draft_side.is_off(check.q_mass));
        }
        if (!suspicious) return status::ok;
        const std::int64_t fault = judge_row(call_.target_row(b_, i), call_.target_side);
        return fault || !law ? fault : judge_draft_row(i);
    }

    std::int64_t judge_draft_row(std::int64_t i) const { return draft_.judge(b_, i); }

    static constexpr std::int64_t kPrefetched = 8;
    static constexpr double kLargest = std::numeric_limits<double>::max();

    const Call& call_;
    const std::int64_t ahead_;
    Scratch& scratch_;
    const RowSums& sums_;
    DraftRows draft_;
    std::int64_t b_ = 0, g_ = 0, tau_ = 0, last_token_ = -1;
    const std::int64_t* drafts_ = nullptr;       // in the target's vocabulary
    const std::int64_t* drafter_ids_ = nullptr;  // in the drafter's
};

}  // namespace draftproof
