// A closer look at numbers, in the order in which draftproof.validation judges them.
#pragma once

#include <cmath>
#include <cstdint>

#include "laws.hpp"
#include "status.hpp"

namespace draftproof {

enum class Validate { touched, full, off };

inline bool is_uniform(double u) { return u >= 0 && u < 1; }

inline std::int64_t judge_number(double number, const Side& side) {
    return !std::isfinite(number) ? side.not_finite : number < 0 ? side.negative : status::ok;
}

// `ids` are those of a sparse row: a negative one is padding.
inline std::int64_t judge_row(const Row& row, const Side& side,
                              const std::int64_t* ids = nullptr) {
    double mass = 0;
    bool finite = true, negative = false;
    for (std::int64_t v = 0; v < row.size; ++v) {
        if (ids && ids[v] < 0) continue;
        const double number = row[v];
        finite &= std::isfinite(number);
        negative |= number < 0;
        mass += number;
    }
    if (!finite) return side.not_finite;
    if (negative) return side.negative;
    return std::fabs(mass - 1) <= side.tolerance ? status::ok : side.mass;
}

}  // namespace draftproof
