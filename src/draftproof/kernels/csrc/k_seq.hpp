// K-sequential selection at one node: draftproof.reference.siblings.k_seq, number for number.
//
// The bisection for rho compares hit = 1 - (1 - beta)^K with rho beta. A pass at the memory's speed
// bounds beta, and what the siblings leave of p, by way of (p / rho - q)+:
//
//     beta = sum min(p / rho, q) = sum p / rho - sum (p / rho - q)+
//     p - min(p / rho, q) hit / beta = (p / rho - q)+ hit / beta    where hit = rho beta
//
// Where the bound leaves a decision open the sums are repeated in the reference's order.
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
          scratch_(scratch), sums_(sums) {
        wide_q_.fits_float32 = false;
        narrow_ = fits_float32();
        check.sign = true;
        if (p_.size <= kFew) return;
        check = {};
        sum_row({p_, &narrow_q_, 1, Look::draft_mass}, scratch_, sums_, check);
        const auto plausible = [](double mass) { return mass > 0.5 && mass < 2; };
        certifies_ = !check.sign && plausible(check.p_mass) && plausible(check.q_mass);
        if (!certifies_) return;
        RowCheck ignored;
        const Weights weights{p_, nullptr};
        scratch_.block_weights.resize(detail::Blocks(p_).count());
        detail::sum_blocks_exactly(weights, detail::Blocks(p_), scratch_, sums_, ignored);
        p_mass_ = detail::total(scratch_);
    }

    // The reference's k_seq_rho.
    double find_rho() {
        double low = 1, high = is_enough(1) ? 1 : K_;
        for (int i = 0; i < kBisections && low < high; ++i) {
            const double middle = (low + high) / 2;
            (is_enough(middle) ? high : low) = middle;
        }
        double rho = high;
        for (int doubling = 0; doubling < kBisections; ++doubling) {
            rho = high;
            if (is_enough_in_order(rho)) break;
            high += std::ldexp(K_, doubling - kBisections);
        }
        return rho;
    }

    // Draw from what the K siblings leave of p, or from p where that has no mass.
    Choice stop(double rho, double u) {
        const double beta = rho == enough_ ? beta_at_enough_ : beta_in_order(rho);
        RowCheck ignored;
        if (!(beta > 0)) return {-1, draw({p_, nullptr}, u, scratch_, sums_, ignored).token};
        const double hit = 1 - std::pow(1 - beta, K_);
        const std::int64_t token = draw_certified(rho, std::fabs(beta / hit - 1 / rho), u);
        if (token >= 0) return {-1, token};
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
    static constexpr int kBisections = 40;

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

    bool is_enough_in_order(double rho) {
        if (rho == enough_) return true;
        const double beta = beta_in_order(rho);
        const bool enough = 1 - std::pow(1 - beta, K_) <= rho * beta;
        if (enough) {
            enough_ = rho;
            beta_at_enough_ = beta;
        }
        return enough;
    }

    bool is_enough(double rho) {
        while (certifies_) {
            const Bounded left = left_of_p(rho);
            const double beta = p_mass_ / rho - left.value;
            const double gap = rho * beta - (1 - std::pow(1 - beta, K_));
            // Of the gap in beta; what `most` leaves out lies within the factor 1.1.
            const double most = std::min(std::fabs(1 - beta) + left.error, 1.0);
            const double slope = rho + 1.1 * K_ * std::pow(most, K_ - 1);
            const double error = slope * left.error + 0x1p-50 * (rho + K_);
            if (K_ * left.error < 0.05 && std::fabs(gap) > error) return gap > 0;
            if (!narrow_) break;
            narrow_ = false;
        }
        return is_enough_in_order(rho);
    }

    // The mass of (p / rho - q)+; its error is also that of what the reference does with it.
    Bounded left_of_p(double rho) {
        weights_ = {p_, narrow_ ? &narrow_q_ : &wide_q_, 1 / rho, Look::again};
        RowCheck ignored;
        const RowSum sum = sum_row(weights_, scratch_, sums_, ignored);
        const double rounding = detail::order_error(p_.size) * p_mass_ / rho + 0x1p-46;
        return {sum.total, rounding + (sum.total > 1e-200 ? sum.error : 1) * sum.total};
    }

    // The drift is that of what is left, over hit / beta, from (p / rho - q)+, in units of p.
    std::int64_t draw_certified(double rho, double drift, double u) {
        for (narrow_ = fits_float32(); certifies_; narrow_ = false) {
            const Bounded left = left_of_p(rho);
            const double error = (left.error + p_mass_ * drift) / left.value;
            std::int64_t token = -1;
            if (error < 0.01 && u > 4 * error && u < 1) {
                token = detail::draw_by_blocks(weights_, detail::Blocks(p_), u, left.value, error,
                                               scratch_, sums_);
            }
            if (token >= 0 || !narrow_) return token;
        }
        return -1;
    }

    Row p_;
    DraftLaw narrow_q_, wide_q_;  // float32 sums will do, or will not
    double K_;
    Scratch& scratch_;
    const RowSums& sums_;
    bool certifies_ = false, narrow_ = false;
    double p_mass_ = 0;
    double enough_ = 0, beta_at_enough_ = 0;  // of the last rho that was summed in order and is
    Weights weights_{};
};

// Accept the first sibling that passes; what all of them leave of p is the residual.
inline Choice k_seq(NodeRows rows, const Siblings& siblings, double final, Scratch& scratch,
                    const RowSums& sums, RowCheck& check) {
    KSeqLaws laws(rows, siblings.count, scratch, sums, check);
    const double rho = laws.find_rho();
    for (std::int64_t i = 0; i < siblings.count; ++i) {
        const std::int64_t x = siblings.tokens[i];
        if (token_accepts(rows.p[x], rho * rows.q->stored[x], siblings.accept[i])) return {i, x};
    }
    return laws.stop(rho, final);
}

}  // namespace draftproof
