// The state of rule greedy-block: what the earlier rounds of a text have left of its target.
//
// For as many tokens as remain, a discount turns the target's row p into norm (p - d q)+; d becomes
// d q/p with each token, where p is the target below that discount. Formulas and roundings are those
// of draftproof.reference.greedy_block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace draftproof {

// A call's discounts, `places` of them for each row, of which one with a 0 is none; and where those
// of the next round are written, one more for each row.
struct DiscountTable {
    std::int64_t places;
    const std::int64_t* remaining;
    const double* factor;
    std::int64_t* remaining_after;
    double* factor_after;

    // How many drafts row b needs.
    std::int64_t least_draft(std::int64_t b) const {
        std::int64_t least = 0;
        for (std::int64_t at = b * places; at < (b + 1) * places; ++at) {
            if (factor[at] > 0) least = std::max(least, remaining[at]);
        }
        return least;
    }
};

// One row's discounts along its drafts; memory is reused from row to row.
class Discounts {
   public:
    void start(const DiscountTable& table, std::int64_t b, std::int64_t g) {
        places_ = table.places;
        remaining_ = table.remaining + b * places_;
        factor_.assign((g + 1) * places_, 0);
        total_.assign(g * places_, 0);
        std::copy_n(table.factor + b * places_, places_, factor_.begin());
    }

    // Whether any discount holds at position i.
    bool hold(std::int64_t i) const {
        for (std::int64_t k = 0; k < places_; ++k) {
            if (holds(i, k)) return true;
        }
        return false;
    }

    // Take the discounts at position i off a row of n numbers, for the first time.
    void measure(std::int64_t i, double* p, const double* q, std::int64_t n) {
        for (std::int64_t k = 0; k < places_; ++k) {
            const double d = factor_[i * places_ + k];
            if (!holds(i, k) || !(d < 1)) continue;
            double total = 0;
            for (std::int64_t v = 0; v < n; ++v) total += left(p[v], d * q[v]);
            total_[i * places_ + k] = total;
            divide_left(p, q, n, d, total);
        }
    }

    // The same, measured before.
    void take_off(std::int64_t i, double* p, const double* q, std::int64_t n) const {
        for (std::int64_t k = 0; k < places_; ++k) {
            divide_left(p, q, n, factor_[i * places_ + k], total_[i * places_ + k]);
        }
    }

    // Move on from position i, which was measured if discounts hold there, by a token; its p below
    // all of them.
    double advance(std::int64_t i, double p, double q) {
        for (std::int64_t k = 0; k < places_; ++k) {
            const double d = factor_[i * places_ + k], total = total_[i * places_ + k];
            double& after = factor_[(i + 1) * places_ + k];
            after = d;
            if (!holds(i, k)) continue;
            after = p > 0 ? d * q / p : 1;
            if (total > 0) p = left(p, d * q) / total;
        }
        return p;
    }

    // Hand on what holds behind the first i + 1 tokens of a row of g drafts, and a new discount.
    void hand_on(const DiscountTable& table, std::int64_t b, std::int64_t g, std::int64_t i,
                 double factor) const {
        std::int64_t* remaining = table.remaining_after + b * (places_ + 1);
        for (std::int64_t k = 0; k < places_; ++k) {
            remaining[k] = std::max(remaining_[k], i + 1) - i - 1;
        }
        remaining[places_] = g - i - 1;
        double* factors = table.factor_after + b * (places_ + 1);
        std::copy_n(factor_.begin() + (i + 1) * places_, places_, factors);
        factors[places_] = factor;
    }

    // Hand on what row b came with.
    static void keep(const DiscountTable& table, std::int64_t b) {
        const std::int64_t from = b * table.places, to = b * (table.places + 1);
        std::copy_n(table.remaining + from, table.places, table.remaining_after + to);
        std::copy_n(table.factor + from, table.places, table.factor_after + to);
    }

   private:
    bool holds(std::int64_t i, std::int64_t k) const {
        return remaining_[k] > i && factor_[i * places_ + k] > 0;
    }

    static double left(double p, double q) { return p - q > 0 ? p - q : 0; }

    static void divide_left(double* p, const double* q, std::int64_t n, double d, double total) {
        if (!(total > 0)) return;
        for (std::int64_t v = 0; v < n; ++v) p[v] = left(p[v], d * q[v]) / total;
    }

    std::int64_t places_ = 0;
    const std::int64_t* remaining_ = nullptr;
    std::vector<double> factor_;  // [g + 1, places], at each position
    std::vector<double> total_;   // [g, places], of what a discount leaves; 0 if it takes nothing
};

}  // namespace draftproof
