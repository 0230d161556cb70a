// What filters keep of a row: the logits between two edges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "exponentials.hpp"

namespace draftproof {

// Tokens z with low < z < high, and of those on an edge the ids up to its last one.
struct Kept {
    static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

    double low = -std::numeric_limits<double>::infinity();
    std::int64_t low_last = kAll;
    double high = std::numeric_limits<double>::infinity();
    std::int64_t high_last = kAll;

    // Without a branch: half of the tokens near an edge are kept.
    bool has(double z, std::int64_t token) const {
        return ((z > low) | ((z == low) & (token <= low_last))) &
               ((z < high) | ((z == high) & (token <= high_last)));
    }
    bool operator==(const Kept& other) const {
        return low == other.low && low_last == other.low_last && high == other.high &&
               high_last == other.high_last;
    }
    bool has_every() const { return low < -kMost && high > kMost; }

    void raise(double edge, std::int64_t last) {
        if (edge > low) {
            low = edge;
            low_last = last;
        } else if (edge == low) {
            low_last = std::min(low_last, last);
        }
    }

    // Zero the weights of a block that are not kept.
    template <typename Z, typename W>
    void apply(const Z* z, std::int64_t start, int n, W* weights,
               const Exponentials& exps) const {
        if (has_every()) return;
        const int low_ties = ties(start, n, low_last), high_ties = ties(start, n, high_last);
        const int first = std::min(low_ties, high_ties), second = std::max(low_ties, high_ties);
        const int cuts[] = {0, first, second, n};
        for (int part = 0; part < 3; ++part) {
            const Z least = least_kept<Z>(low, cuts[part + 1] <= low_ties);
            const Z most = -least_kept<Z>(-high, cuts[part + 1] <= high_ties);
            const int from = cuts[part], count = cuts[part + 1] - from;
            if constexpr (std::is_same_v<Z, W>) {
                exps.keep(z + from, count, least, most, weights + from);
            } else {
                for (int i = from; i < from + count; ++i) {
                    weights[i] = z[i] >= least && z[i] <= most ? weights[i] : W{0};
                }
            }
        }
    }

   private:
    static constexpr double kMost = std::numeric_limits<double>::max();

    static int ties(std::int64_t start, int n, std::int64_t last) {
        return last == kAll ? n : static_cast<int>(std::clamp<std::int64_t>(last + 1 - start, 0, n));
    }

    // The least number of T that lies above an edge, or on it if ties are kept.
    template <typename T>
    static T least_kept(double edge, bool ties_too) {
        constexpr T infinity = std::numeric_limits<T>::infinity();
        T least = static_cast<T>(edge);
        if (least < edge || (least == edge && !ties_too)) least = std::nextafter(least, infinity);
        return least;
    }
};

}  // namespace draftproof
