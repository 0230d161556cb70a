// The laws p and q at one node of a tree while its children are rejected, as the references have
// them, number for number:
//
//     p <- norm (w p - q)+    q <- norm (q without x)
//
// ExactLaws repeats the references' arithmetic, rejection after rejection, on each block that it
// reads. It keeps no row, but its sums run in token order. CertifiedLaws reads a row once for each
// rejection, at the memory's speed: with D the product of the masses that p was divided by, N that
// of q's, and the w of each step,
//
//     D p_k = (p - c_k q)+    c_{k+1} = c_k + D_k / (w_k N_k)    D_{k+1} = mass of (p - c_{k+1} q)+
//
// since a rejected x has w p(x) < q(x) and so no residual. It bounds how far these numbers can be
// from the references' rounded ones, and raises a doubt where that leaves a decision open.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bounded.hpp"
#include "draw.hpp"
#include "laws.hpp"
#include "row_sums.hpp"

namespace draftproof {

// u q < p, without a division and without a rounding where p = q.
inline bool token_accepts(double p, double q, double u) {
    return p > 0 && (p >= q || u * q < p);
}

// The rows of p and q at a node; q is null for a rule that does not read it.
struct NodeRows {
    Row p;
    const DraftLaw* q;
};

class ExactLaws {
 public:
    using Number = double;

    ExactLaws(NodeRows rows, Scratch& scratch, const RowSums& sums, bool&)
        : rows_(rows), scratch_(scratch), sums_(sums) {}

    bool accepts(std::int64_t x, double u) const {
        const auto [p, q] = entries(x);
        return token_accepts(p, q, u);
    }

    // What is left of w after x, as draftproof.reference.block has it.
    double weight_after(double w, std::int64_t x) const {
        const auto [p, q] = entries(x);
        const double scaled = w * p;
        return scaled == 0 ? scaled : scaled < q ? scaled / q : 1;
    }

    static bool passes(double u, double w) { return u < w; }
    static bool is_positive(double mass) { return mass > 0; }

    // Reject x; the mass of (w p - q)+. Where there is none p stays.
    double reject(double w, std::int64_t x, bool replaced) {
        Step step{w, 0, 0, -1};
        step.residual_mass = mass([&](double p, double q) { return positive(w * p - q); });
        if (!replaced) {
            step.token = x;
            drop(step);
        } else {
            steps_.push_back(step);
        }
        return step.residual_mass;
    }

    // Take tokens out of q and normalise it.
    void remove(const std::int64_t* tokens, std::int64_t count) {
        for (std::int64_t i = 0; i + 1 < count; ++i) steps_.push_back({0, 0, 0, tokens[i]});
        drop({0, 0, 0, count ? tokens[count - 1] : -1});
    }

    bool has_draft_mass() const {
        const double left = steps_.back().draft_mass;
        return left > 0 && left < HUGE_VAL;
    }

    Drawn draw(double u) {
        if (steps_.empty()) {
            RowCheck ignored;
            return draftproof::draw({rows_.p, nullptr}, u, scratch_, sums_, ignored);
        }
        return detail::draw_in_order([&](auto visit) { each(visit, [](double p, double) { return p; }); },
                             u);
    }

    Drawn draw_residual(double u) {
        return detail::draw_in_order(
            [&](auto visit) { each(visit, [](double p, double q) { return positive(p - q); }); },
            u);
    }

 private:
    struct Step {
        double w, residual_mass, draft_mass;
        std::int64_t token;
    };
    struct Entries {
        double p, q;
    };

    static double positive(double difference) { return difference > 0 ? difference : 0; }

    void drop(Step step) {
        steps_.push_back(step);
        steps_.back().draft_mass = mass([](double, double q) { return q; });
    }

    void follow(std::int64_t start, int n, double* p, double* q) const {
        for (const Step& step : steps_) {
            if (step.residual_mass > 0) {
                for (int i = 0; i < n; ++i) {
                    p[i] = positive(step.w * p[i] - q[i]) / step.residual_mass;
                }
            }
            if (step.token >= start && step.token < start + n) q[step.token - start] = 0;
            if (step.draft_mass > 0) {
                for (int i = 0; i < n; ++i) q[i] /= step.draft_mass;
            }
        }
    }

    Entries entries(std::int64_t x) const {
        Entries at{rows_.p[x], rows_.q->stored[x]};
        follow(x, 1, &at.p, &at.q);
        return at;
    }

    template <typename Visit, typename Weight>
    void each(Visit visit, Weight weight) const {
        double *p = scratch_.p64, *q = scratch_.q64;
        for (std::int64_t start = 0; start < rows_.p.size; start += kBlock) {
            const int n = static_cast<int>(std::min<std::int64_t>(kBlock, rows_.p.size - start));
            rows_.p.copy(start, n, p);
            rows_.q->copy(start, n, q);
            follow(start, n, p, q);
            for (int i = 0; i < n; ++i) p[i] = weight(p[i], q[i]);
            if (visit(start, n, p)) return;
        }
    }

    template <typename Weight>
    double mass(Weight weight) const {
        return mass_in_order([&](auto visit) { each(visit, weight); });
    }

    NodeRows rows_;
    Scratch& scratch_;
    const RowSums& sums_;
    std::vector<Step> steps_;
};

class CertifiedLaws {
 public:
    using Number = Bounded;

    // `doubt` is set where a decision is open: what follows is then of no account.
    CertifiedLaws(NodeRows rows, Scratch& scratch, const RowSums& sums, bool& doubt)
        : rows_(rows), scratch_(scratch), sums_(sums), doubt_(doubt) {}

    bool accepts(std::int64_t x, double u) const {
        if (!rejections_) return token_accepts(rows_.p[x], rows_.q->stored[x], u);
        return passes(target(x), Bounded{u} * draft(x), u);
    }

    Bounded weight_after(Bounded w, std::int64_t x) const {
        const Bounded scaled = w * target(x);
        if (scaled.is(0)) return {0};
        const Bounded ratio = scaled / draft(x);
        doubt_ |= !(ratio.error < 1);
        if (ratio.value - ratio.error >= 1) return {1};
        return {std::min(ratio.value, 1.0), ratio.error};
    }

    bool passes(double u, Bounded w) const { return passes(w, {u}, u); }
    static bool is_positive(Bounded mass) { return mass.value > 0; }

    Bounded reject(Bounded w, std::int64_t x, bool replaced) {
        if (w.is(0)) return {0};  // and so are the weights of all below
        c_ = c_ + D_ / (w * N_);
        ++rejections_;
        weights_ = {rows_.p, rows_.q, 1 / c_.value};
        RowCheck seen;
        sum_ = sum_row(weights_, scratch_, sums_, seen);
        if (rejections_ == 1) {
            check_ = seen;
            const auto plausible = [](double mass) { return mass > 0.5 && mass < 2; };
            doubt_ |= seen.sign || !plausible(seen.p_mass) || !plausible(seen.q_mass);
        }
        // Of a number in units of p(v) <= 2: each step of the references rounds it a few times and
        // q a time more than the last one did.
        const double elementwise = rejections_ * (rejections_ + 16.0) * Bounded::kRoundoff;
        const double D = sum_.total * c_.value;
        const Bounded mass{D, 2 * (c_.error + (1 + c_.value) * elementwise) +
                                  (sum_.error + order_error()) * D};
        doubt_ |= !(mass.value > 2 * mass.error && mass.value > 1e-200);
        const Bounded residual = w * mass / D_;
        D_ = mass;
        if (!replaced) {
            rejected_ += rows_.q->stored[x];
            N_ = {check_.q_mass - rejected_, 2 * (rejections_ + 1) * order_error()};
        }
        return residual;
    }

    bool has_draft_mass() const {
        doubt_ |= !(N_.value > 2 * N_.error);
        return true;
    }

    // From p as the last rejection left it, whose sums are still at hand.
    Drawn draw(double u) {
        if (!rejections_) {
            return draftproof::draw({rows_.p, nullptr}, u, scratch_, sums_, check_);
        }
        const double error = D_.error / D_.value + order_error();
        std::int64_t token = -1;
        if (!doubt_ && u > 4 * error) {
            token = detail::draw_by_blocks(weights_, detail::Blocks(rows_.p), u, sum_.total, error,
                                           scratch_, sums_);
        }
        doubt_ |= token < 0;
        return {token, 1};
    }

    // What the first pass over the rows saw, and whether there was one.
    const RowCheck& check() const { return check_; }
    bool has_read_rows() const { return rejections_ > 0; }

 private:
    // In units of D.
    Bounded target(std::int64_t x) const {
        const double p = rows_.p[x];
        if (!rejections_) return {p};
        Bounded left = Bounded{p} - c_ * Bounded{rows_.q->stored[x]};
        left.error += rejections_ * (rejections_ + 16.0) * Bounded::kRoundoff * p + 1e-290;
        if (left.value + left.error <= 0) return {0};
        return {std::max(left.value, 0.0), left.error};
    }
    Bounded draft(std::int64_t x) const {
        const double q = rows_.q->stored[x];
        if (!rejections_) return {q};
        return Bounded{q} * D_ / N_;
    }

    bool passes(Bounded p, Bounded threshold, double u) const {
        const bool below = threshold.certainly_below(p);
        doubt_ |= !(u >= 0 && u < 1) || !(below || p.certainly_below(threshold) || p.is(0) ||
                                          (p.error == 0 && threshold.error == 0));
        return below;
    }

    double order_error() const { return (2.0 * rows_.p.size + 64) * 0x1p-53; }

    NodeRows rows_;
    Scratch& scratch_;
    const RowSums& sums_;
    bool& doubt_;
    int rejections_ = 0;
    double rejected_ = 0;  // q at the rejected tokens
    Bounded c_{0}, D_{1}, N_{1};
    Weights weights_{};
    RowSum sum_{};
    RowCheck check_;
};

}  // namespace draftproof
