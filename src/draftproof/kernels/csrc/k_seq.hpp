// K-sequential selection at one node: draftproof.reference.siblings.k_seq, number for number.
//
// rho is 2^18 / m, and m the largest whole number at which hit = 1 - (1 - beta)^K is no more than
// rho beta. With s = 1 / rho, a pass at the memory's speed bounds beta, and what the siblings leave
// of p, by way of L(s) = sum (s p - q)+:
//
//     beta = sum min(s p, q) = s sum p - L(s)
//     p - min(s p, q) hit / beta = (1 - s hit / beta) p + (hit / beta) (s p - q)+
//
// A sibling's test asks whether rho lies below p / (u q), which one pass at that rho answers. Only
// the last draw needs rho itself: L is nearly a power of s between two values that are known, which
// leads to m in a few passes. Where a bound leaves a decision open the sums are repeated in the
// reference's order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bounded.hpp"
#include "draw.hpp"
#include "laws.hpp"
#include "node_laws.hpp"
#include "row_sums.hpp"
#include "sibling_rules.hpp"

namespace draftproof {

class KSeqLaws {
 public:
    // `check` receives what was seen of the rows; they are to be judged if its sign is set.
    KSeqLaws(NodeRows rows, std::int64_t K, Scratch& scratch, const RowSums& sums, RowCheck& check)
        : p_(rows.p), narrow_q_(*rows.q), wide_q_(*rows.q), K_(static_cast<double>(K)),
          scratch_(scratch), sums_(sums), count_(K == 1 ? 1 : kSteps - kSteps / K + 1),
          passing_(count_) {
        wide_q_.fits_float32 = false;
        check.sign = true;
        if (p_.size <= kFew) return;
        check = {};
        const Weights weights{p_, &narrow_q_, 1, Look::draft_mass};
        const RowSum at_one = sum_row(weights, scratch_, sums_, check);
        const auto plausible = [](double mass) { return mass > 0.5 && mass < 2; };
        certifies_ = !check.sign && plausible(check.p_mass) && plausible(check.q_mass);
        if (!certifies_) return;
        p_mass_ = {check.p_mass, 0x1p-17};
        last_ = bound(1, at_one);
        const double most = beta_of(last_).value + beta_of(last_).error;
        if (!(last_.mass.value > 1e-9) || !(most < 1)) return;
        is_monotone_ = true;  // for beta is below 1 throughout
        note(0, verdict(last_));
        const double least = (p_mass_.value - p_mass_.error - last_.mass.value) / K_;
        if (K_ * least - hit(least) > 0.001) note(count_ - 1, Verdict::enough);
    }

    // The test of a sibling with these entries.
    bool accepts(double p, double q, double u) {
        const auto passes = [&](std::int64_t step) {
            return token_accepts(p, rho_at(step) * q, u);
        };
        if (!rho_ && K_ > 1 && is_monotone_ && passing_ < count_) {
            if (passes(passing_)) return true;
            if (!passes(failing_ + 1)) return false;
            std::int64_t low = failing_ + 1, high = passing_;
            while (high - low > 1) {
                const std::int64_t middle = (low + high) / 2;
                (passes(middle) ? low : high) = middle;
            }
            const Verdict verdict = judge(low);
            if (verdict != Verdict::open) return verdict == Verdict::enough;
        }
        return token_accepts(p, rho() * q, u);
    }

    // The reference's k_seq_rho.
    double rho() {
        if (rho_) return rho_;
        if (certifies_ && K_ > 1) approach();
        std::int64_t low = 0, high = K_ > 1 ? count_ : 0;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            const bool enough = middle > failing_ && (middle >= passing_ || is_enough(middle));
            (enough ? high : low) = enough ? middle : middle + 1;
        }
        s_ = s_at(low);
        return rho_ = rho_at(low);
    }

    // Draw from what the K siblings leave of p, or from p where that has no mass.
    Choice stop(double u) {
        const double rho = this->rho();
        for (const bool narrow : {true, false}) {
            if (!certifies_ || (narrow && !fits_float32())) continue;
            const std::int64_t token = draw_certified(narrow, u);
            if (token >= 0) return {-1, token};
        }
        RowCheck ignored;
        const double beta = beta_in_order(rho);
        if (!(beta > 0)) return {-1, draw({p_, nullptr}, u, scratch_, sums_, ignored).token};
        const double hit = 1 - std::pow(1 - beta, K_);
        const auto each = [&](auto visit) {
            each_block(rho, [&](std::int64_t start, int n, double* p, double* kept) {
                p_.copy(start, n, p);
                for (int i = 0; i < n; ++i) {
                    const double left = p[i] - kept[i] * hit / beta;
                    p[i] = left > 0 ? left : 0;
                }
                return visit(start, n, p);
            });
        };
        const Drawn drawn = detail::draw_in_order(each, u);
        if (drawn.total > 0) return {-1, drawn.token};
        return {-1, draw({p_, nullptr}, u, scratch_, sums_, ignored).token, true};
    }

 private:
    static constexpr std::int64_t kSteps = 1 << 18;  // s is a float32 number

    enum class Verdict { enough, not_enough, open };

    // What a pass knows of L(s); its error is also that of what the reference does with it.
    struct Left {
        double s;
        Bounded mass;
        bool narrow;
    };

    // The steps are counted from rho = 1 upwards.
    static double s_at(std::int64_t step) { return static_cast<double>(kSteps - step) / kSteps; }
    static double rho_at(std::int64_t step) {
        return static_cast<double>(kSteps) / static_cast<double>(kSteps - step);
    }
    bool fits_float32() const { return narrow_q_.fits_float32 && p_.dtype != Dtype::float64; }

    // Call visit(start, n, scratch, min(p / rho, q)) block by block, until it returns true.
    template <typename Visit>
    void each_block(double rho, Visit visit) {
        double *p = scratch_.p64, *q = scratch_.q64;
        for (std::int64_t start = 0; start < p_.size; start += kBlock) {
            const int n = static_cast<int>(std::min<std::int64_t>(kBlock, p_.size - start));
            p_.copy(start, n, p);
            wide_q_.copy(start, n, q);
            for (int i = 0; i < n; ++i) {
                const double scaled = p[i] / rho;
                q[i] = (scaled < q[i]) | (scaled != scaled) ? scaled : q[i];  // keeps NaN
            }
            if (visit(start, n, p, q)) return;
        }
    }

    double beta_in_order(double rho) {
        double beta = 0;
        each_block(rho, [&](std::int64_t, int n, const double*, const double* kept) {
            for (int i = 0; i < n; ++i) beta += kept[i];
            return false;
        });
        return beta;
    }

    double hit(double beta) const { return 1 - std::pow(1 - beta, K_); }

    bool is_enough(std::int64_t step) {
        const Verdict verdict = certifies_ ? judge(step) : Verdict::open;
        if (verdict != Verdict::open) return verdict == Verdict::enough;
        const double rho = rho_at(step), beta = beta_in_order(rho);
        return hit(beta) <= rho * beta;
    }

    // Narrow the bracket down by passes, as far as they decide.
    void approach() {
        if (!is_monotone_) return;
        refine_mass();
        double power = (1 + last_.mass.value) / (2 * last_.mass.value);  // if ln (p/q) is symmetric
        for (int turn = 0; turn < kTurns && passing_ - failing_ > 1; ++turn) {
            const Left before = last_;
            const std::int64_t guess = turn < kTurns / 2 ? guess_step(power)
                                                         : (failing_ + passing_) / 2;
            if (judge(std::clamp(guess, failing_ + 1, passing_ - 1)) == Verdict::open) return;
            if (!(last_.mass.value > 1e-9)) return;
            power = std::log(last_.mass.value / before.mass.value) / std::log(last_.s / before.s);
        }
    }

    // The first step that is enough if L goes on from where it is as a power of s.
    std::int64_t guess_step(double power) const {
        std::int64_t low = failing_ + 1, high = passing_;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            const double s = s_at(middle), left = last_.mass.value * std::pow(s / last_.s, power);
            const double beta = s * p_mass_.value - left;
            const bool enough = hit(beta) * s <= beta;
            (enough ? high : low) = enough ? middle : middle + 1;
        }
        return low;
    }

    Verdict judge(std::int64_t step) {
        Verdict found = Verdict::open;
        for (const bool narrow : {true, false}) {
            if (found != Verdict::open || (narrow && !fits_float32())) continue;
            pass(s_at(step), narrow);
            found = verdict(last_);
            if (found == Verdict::open && refine_mass()) found = verdict(last_);
        }
        return note(step, found);
    }

    Verdict note(std::int64_t step, Verdict verdict) {
        if (!is_monotone_) return verdict;
        if (verdict == Verdict::enough) passing_ = std::min(passing_, step);
        if (verdict == Verdict::not_enough) failing_ = std::max(failing_, step);
        return verdict;
    }

    Bounded beta_of(const Left& left) const {
        const double error = left.mass.error + left.s * p_mass_.error;
        return {left.s * p_mass_.value - left.mass.value, error};
    }

    // Whether the reference finds hit <= rho beta here, and as much of the like on that side of it.
    Verdict verdict(const Left& left) const {
        const auto [beta, error] = beta_of(left);
        const double rho = 1 / left.s;
        const double gap = rho * beta - hit(beta);
        // Of the gap in beta; what `most` leaves out lies within the factor 1.1.
        const double most = std::min(std::fabs(1 - beta) + error, 1.0);
        const double slope = rho + 1.1 * K_ * std::pow(most, K_ - 1);
        const double elsewhere = 4.2 * K_ * (2 * detail::order_error(p_.size) + 0x1p-46);
        const bool decides = K_ * error < 0.05 && std::fabs(gap) > slope * error + elsewhere;
        return !decides ? Verdict::open : gap > 0 ? Verdict::enough : Verdict::not_enough;
    }

    Left bound(double s, const RowSum& sum) const {
        const double rounding = 2 * detail::order_error(p_.size) * s + 0x1p-46;
        const double error = rounding + (sum.total > 1e-200 ? sum.error : 1) * sum.total;
        return {s, {sum.total, error}, fits_float32()};
    }

    // Its block sums lie in the scratch until the next one.
    void pass(double s, bool narrow) {
        look_ = look_ == Look::again ? Look::again_backwards : Look::again;
        RowCheck ignored;
        const Weights weights{p_, narrow ? &narrow_q_ : &wide_q_, s, look_};
        last_ = bound(s, sum_row(weights, scratch_, sums_, ignored));
        last_.narrow = narrow;
        has_sums_ = true;
    }

    // The mass of p without a float32 rounding, and its block sums; whether that is news.
    bool refine_mass() {
        if (p_mass_.error == 0) return false;
        has_sums_ = false;
        RowCheck ignored;
        detail::sum_blocks_exactly({p_, nullptr}, detail::Blocks(p_), scratch_, sums_, ignored);
        p_mass_ = {detail::total(scratch_)};
        scratch_.p_row.assign(scratch_.block_weights.begin(), scratch_.block_weights.end());
        return true;
    }

    std::int64_t draw_certified(bool narrow, double u) {
        refine_mass();
        if (!has_sums_ || last_.s != s_ || last_.narrow != narrow) pass(s_, narrow);
        has_sums_ = false;
        const Bounded beta = beta_of(last_);
        const Bounded ratio = Bounded{hit(beta.value), K_ * beta.error + 0x1p-46} / beta;
        const double kept = std::max(0.0, 1 - s_ * ratio.value);
        auto& blocks = scratch_.block_weights;
        for (std::size_t j = 0; j < blocks.size(); ++j) {
            blocks[j] = kept * scratch_.p_row[j] + ratio.value * blocks[j];
        }
        const double total = kept * p_mass_.value + ratio.value * last_.mass.value;
        const double error = (ratio.value * last_.mass.error + ratio.error * beta.value + 0x1p-46) /
                                 total + detail::order_error(p_.size);
        if (!(error < 0.01 && u > 4 * error && u < 1)) return -1;
        const auto weights = [&](std::int64_t start, int n) {
            double *p = scratch_.p64, *q = scratch_.q64;
            p_.copy(start, n, p);
            wide_q_.copy(start, n, q);
            for (int i = 0; i < n; ++i) p[i] -= std::min(s_ * p[i], q[i]) * ratio.value;
            return p;
        };
        return detail::draw_by_blocks(weights, detail::Blocks(p_), u, total, error, scratch_);
    }

    static constexpr int kTurns = 12;

    Row p_;
    DraftLaw narrow_q_, wide_q_;  // float32 sums will do, or will not
    double K_;
    Scratch& scratch_;
    const RowSums& sums_;
    bool certifies_ = false, is_monotone_ = false, has_sums_ = false;
    Bounded p_mass_{0};
    double rho_ = 0, s_ = 1;  // rho, once it is known, and 1 / rho
    std::int64_t count_, failing_ = -1, passing_;  // all up to this step fail, or from it on pass
    Left last_{};
    Look look_ = Look::again;
};

// Accept the first sibling that passes; what all of them leave of p is the residual.
inline Choice k_seq(NodeRows rows, const Siblings& siblings, double final, Scratch& scratch,
                    const RowSums& sums, RowCheck& check) {
    KSeqLaws laws(rows, siblings.count, scratch, sums, check);
    for (std::int64_t i = 0; i < siblings.count; ++i) {
        const std::int64_t x = siblings.tokens[i];
        if (laws.accepts(rows.p[x], rows.q->stored[x], siblings.accept[i])) return {i, x};
    }
    return laws.stop(final);
}

}  // namespace draftproof
