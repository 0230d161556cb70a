// Temperature 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "draw.hpp"
#include "laws.hpp"
#include "row_sums.hpp"

namespace draftproof {

template <typename T>
std::int64_t argmax_in(const Row& row, Scratch& scratch, const RowSums& sums) {
    const T* direct = row.as<T>();
    T best = -std::numeric_limits<T>::infinity();
    std::int64_t token = -1;
    for (std::int64_t start = 0; start < row.size; start += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, row.size - start));
        const T* block = direct ? direct + start : scratch.p_block(T{});
        if (!direct) row.copy(start, n, scratch.p_block(T{}));
        const T largest = sums.largest(block, n);
        if (largest > best) {
            best = largest;
            token = start + (std::find(block, block + n, largest) - block);
        }
    }
    return token;
}

// The lowest id of the largest entry, or -1 if nothing exceeds -inf. NaN never wins.
inline std::int64_t argmax(const Row& row, Scratch& scratch, const RowSums& sums) {
    return row.dtype == Dtype::float64 ? argmax_in<double>(row, scratch, sums)
                                       : argmax_in<float>(row, scratch, sums);
}

}  // namespace draftproof
