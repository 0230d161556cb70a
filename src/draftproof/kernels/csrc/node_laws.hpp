// The laws p and q at one node of a tree while its children are rejected, as the references have
// them, number for number. For the top-down rules w = 1; in traversal it is the node's weight:
//
//     S = mass of (w p - q)+    p <- (w p - q)+ / S    q <- norm (q without x)    w <- S / (S + 1 - w)
//
// ExactLaws repeats the references' arithmetic, rejection after rejection, on each block that it
// reads. It keeps no row, but its sums run in token order. CertifiedLaws reads a row once for each
// rejection, at the memory's speed: with N the mass that q_0 has off the rejected tokens,
//
//     w p = (w_0 p_0 - C q_0)+ / E    w = M / E    C <- C + E / N
//     M = mass of (w_0 p_0 - C q_0)+    E = M + 1 - w_0
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
#include "judge.hpp"
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
    ExactLaws(NodeRows rows, Scratch& scratch, const RowSums& sums, bool&)
        : rows_(rows), scratch_(scratch), sums_(sums) {}

    bool accepts(std::int64_t x, double u) const {
        const auto [p, q] = entries(x);
        return token_accepts(p, q, u);
    }

    void enter(double w) { w_ = w; }
    bool passes(double u) const { return u < w_; }

    // The weight of the child x, as draftproof.reference.block has it.
    double weight_of(std::int64_t x) const {
        const auto [p, q] = entries(x);
        const double scaled = w_ * p;
        return scaled == 0 ? scaled : scaled < q ? scaled / q : 1;
    }

    // Reject x; whether that leaves a residual. Where it leaves none p stays. Siblings drawn with
    // replacement leave q as it is.
    bool reject(std::int64_t x, bool replaced) {
        Step step{w_, 0, 0, -1};
        const double left = mass([&](double p, double q) { return positive(w_ * p - q); });
        step.residual_mass = left;
        if (replaced) {
            steps_.push_back(step);
        } else {
            step.token = x;
            drop(step);
        }
        if (w_ < 1) w_ = left / (left + (1 - w_));
        return left > 0;
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
    double w_ = 1;
    std::vector<Step> steps_;
};

class CertifiedLaws {
 public:
    // `doubt` is set where a decision is open: what follows is then of no account.
    CertifiedLaws(NodeRows rows, Scratch& scratch, const RowSums& sums, bool& doubt)
        : rows_(rows), scratch_(scratch), sums_(sums), doubt_(doubt) {}

    bool accepts(std::int64_t x, double u) {
        if (!rejections_) return token_accepts(rows_.p[x], rows_.q->stored[x], u);
        const Bounded left = weighted(x), threshold = Bounded{u} * draft(x);
        if (is_due_ && is_uniform(u)) {  // M never grows: its last value may decide
            if (left.is(0)) return false;
            if ((threshold * Bounded{E_.value, 4 * E_.error}).certainly_below(left)) return true;
        }
        if (is_due_) sum();
        return decide(left, threshold * E_, u);
    }

    void enter(Bounded w) { w_ = first_w_ = w; }
    bool passes(double u) const { return decide(w_, {u}, u); }

    Bounded weight_of(std::int64_t x) {
        if (is_due_) sum();
        const Bounded scaled = weighted(x);
        if (scaled.is(0)) return {0};
        const Bounded ratio = scaled / (draft(x) * E_);
        doubt_ |= !(ratio.error < 1);
        if (ratio.value - ratio.error >= 1) return {1};
        return {std::min(ratio.value, 1.0), ratio.error};
    }

    bool reject(std::int64_t x, bool replaced) {
        if (first_w_.is(0)) return false;  // and so are the weights of all below
        if (is_due_) sum();
        C_ = C_ + E_ / N_;
        ++rejections_;
        is_due_ = true;
        if (rejections_ == 1 || !first_w_.is(1)) sum();  // the rows are judged, and w is asked for
        if (!replaced) {
            rejected_ += rows_.q->stored[x];
            const double rounding = rows_.q->fits_float32 ? kMassRoundoff * check_.q_mass : 0;
            N_ = {check_.q_mass - rejected_, rounding + 2 * (rejections_ + 1) * order_error()};
        }
        return true;
    }

    bool has_draft_mass() const {
        doubt_ |= !is_certainly_positive(N_);
        return true;
    }

    // From p as the last rejection left it, whose sums are still at hand.
    Drawn draw(double u) {
        if (!rejections_) {
            return draftproof::draw({rows_.p, nullptr}, u, scratch_, sums_, check_);
        }
        if (is_due_) sum();
        const double error = M_.error / M_.value + order_error();
        std::int64_t token = -1;
        if (!doubt_ && is_certainly_positive(M_) && u > 4 * error) {
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
    // A pass for M, and for what hangs on it.
    void sum() {
        is_due_ = false;
        double scale = first_w_.value / C_.value;
        if (rows_.q->fits_float32 && scale > 1e-20) scale = static_cast<float>(scale);
        weights_ = {rows_.p, rows_.q, scale, look()};
        RowCheck seen;
        sum_ = sum_row(weights_, scratch_, sums_, seen);
        if (rejections_ == 1) {
            check_ = seen;
            const auto plausible = [](double mass) { return mass > 0.5 && mass < 2; };
            doubt_ |= seen.sign || !plausible(seen.p_mass) || !plausible(seen.q_mass);
        }
        const double at = first_w_.value / scale, mass = sum_.total * at;
        const Fall fall{at, mass, mass > 0 ? (sum_.error + order_error()) * mass : 0};
        M_ = {mass, slope_error(fall) + 2 * (1 + at) * elementwise() + fall.error};
        fallen_ = fall;
        E_ = M_ + (Bounded{1} - first_w_);
        E_.error += 4 * rejections_ * Bounded::kRoundoff;
        if (first_w_.is(1)) {
            doubt_ |= !is_certainly_positive(M_);
        } else {
            w_ = M_ / E_;
        }
    }

    // E w p(x).
    Bounded weighted(std::int64_t x) const {
        const double p = rows_.p[x];
        if (!rejections_) return first_w_ * Bounded{p};
        Bounded left = first_w_ * Bounded{p} - C_ * Bounded{rows_.q->stored[x]};
        left.error += elementwise() * p + 1e-290;
        if (left.value + left.error <= 0) return {0};
        return {std::max(left.value, 0.0), left.error};
    }
    Bounded draft(std::int64_t x) const { return Bounded{rows_.q->stored[x]} / N_; }

    // Whether the threshold, which u is a factor of, lies below.
    bool decide(Bounded number, Bounded threshold, double u) const {
        const bool below = threshold.certainly_below(number);
        const bool exact = number.error == 0 && threshold.error == 0;
        doubt_ |= !is_uniform(u) ||
                  !(below || number.certainly_below(threshold) || number.is(0) || exact);
        return below;
    }

    static bool is_certainly_positive(Bounded number) {
        return number.value > 2 * number.error && number.value > 1e-200;
    }

    Look look() const {
        if (rejections_ == 1) return Look::draft_mass;
        return rejections_ % 2 ? Look::again : Look::again_backwards;
    }

    // The mass of (w_0 p - C q)+ at some C, as a pass has summed it.
    struct Fall {
        double C, mass, error;
    };

    // What M may differ by where w_0 and C do: no further than the masses of p and q where
    // w p > C q. M is convex: it falls no faster in C than it has until here.
    double slope_error(const Fall& here) const {
        const double p_mass = check_.p_mass;
        const double off = C_.error + std::fabs(here.C - C_.value), ran = here.C - fallen_.C;
        double slope = std::min(check_.q_mass, first_w_.value * p_mass / here.C);
        if (rejections_ > 1 && ran > 1e3 * off) {
            slope = std::min(slope, (fallen_.mass - here.mass + fallen_.error + here.error) / ran);
        }
        return 1.01 * (p_mass * first_w_.error + slope * off);
    }

    // Relative to p(v): each rejection rounds it a few times, and q a time more than the last did.
    double elementwise() const {
        return rejections_ * (rejections_ + 16.0) * Bounded::kRoundoff;
    }
    double order_error() const { return (2.0 * rows_.p.size + 64) * 0x1p-53; }

    NodeRows rows_;
    Scratch& scratch_;
    const RowSums& sums_;
    bool& doubt_;
    int rejections_ = 0;
    bool is_due_ = false;  // M, for the last rejection
    double rejected_ = 0;  // q at the rejected tokens
    Bounded w_{1}, first_w_{1}, C_{0}, M_{1}, E_{1}, N_{1};
    Fall fallen_{};  // where M was summed last
    Weights weights_{};
    RowSum sum_{};
    RowCheck check_;
};

}  // namespace draftproof
