// Rows of p and q as they lie in the caller's arrays: any dtype, any strides, never copied whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "numbers.hpp"

namespace draftproof {

// One row of numbers in memory.
struct Row {
    const char* data;
    std::int64_t stride;  // bytes
    std::int64_t size;
    Dtype dtype;

    double operator[](std::int64_t i) const { return load_widened(data + i * stride, dtype); }

    // The row itself if it already is an aligned array of T, else null.
    template <typename T>
    const T* as() const {
        const bool same = dtype == (sizeof(T) == 8 ? Dtype::float64 : Dtype::float32);
        const bool contiguous = stride == static_cast<std::int64_t>(sizeof(T)) || size == 1;
        const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
        return same && contiguous && aligned ? reinterpret_cast<const T*>(data) : nullptr;
    }

    template <typename T>
    void copy(std::int64_t start, int n, T* out) const {
        const char* at = data + start * stride;
        if (stride == 2 && dtype == Dtype::float16) {
            for (int i = 0; i < n; ++i) out[i] = widen_float16(load<std::uint16_t>(at + 2 * i));
        } else if (stride == 2 && dtype == Dtype::bfloat16) {
            for (int i = 0; i < n; ++i) out[i] = widen_bfloat16(load<std::uint16_t>(at + 2 * i));
        } else if (stride == 8 && dtype == Dtype::float64) {
            for (int i = 0; i < n; ++i) out[i] = static_cast<T>(load<double>(at + 8 * i));
        } else if (stride == 4 && dtype == Dtype::float32) {
            for (int i = 0; i < n; ++i) out[i] = load<float>(at + 4 * i);
        } else {
            for (int i = 0; i < n; ++i) {
                out[i] = static_cast<T>(load_widened(at + i * stride, dtype));
            }
        }
    }
};

// Where row (b, i) of an array lies, in either layout.
struct RowTable {
    const char* data;
    std::int64_t batch_stride;     // bytes from b to b + 1; unused if packed
    std::int64_t position_stride;  // bytes from i to i + 1
    std::int64_t stride;
    std::int64_t size;
    Dtype dtype;

    // `first` is the row's first index if packed, else negative.
    Row row(std::int64_t b, std::int64_t first, std::int64_t i) const {
        const std::int64_t offset = first < 0 ? b * batch_stride : first * position_stride;
        return {data + offset + i * position_stride, stride, size, dtype};
    }
};

struct SparseEntry {
    std::int64_t token;
    double probability;
};

// One row of the draft law over the target's vocabulary. A token that it does not list has q = 0.
struct DraftLaw {
    enum class Kind { point_mass, dense, mapped, sparse };

    Kind kind;
    Row stored;                         // unless a point mass
    const std::int32_t* column_of;      // mapped: [V], the column of each target id or -1
    std::vector<SparseEntry>* entries;  // point mass, sparse: by token, each token once
    bool fits_float32;                  // every q(x) is a float32 number

    bool listed_within(std::int64_t start, std::int64_t n) const {
        if (kind == Kind::dense) return start < stored.size;
        if (kind == Kind::mapped) return true;
        const auto at = first_entry(start);
        return at != entries->end() && at->token < start + n;
    }

    // q as an array of T over the whole vocabulary, if it lies so in memory.
    template <typename T>
    const T* as(std::int64_t vocabulary) const {
        return kind == Kind::dense && stored.size == vocabulary ? stored.as<T>() : nullptr;
    }

    template <typename T>
    void copy(std::int64_t start, int n, T* out) const {
        if (kind == Kind::dense) {
            const auto known = std::clamp<std::int64_t>(stored.size - start, 0, n);
            stored.copy(start, static_cast<int>(known), out);
            std::fill(out + known, out + n, T{0});
        } else if (kind == Kind::mapped) {
            for (int i = 0; i < n; ++i) {
                const std::int32_t column = column_of[start + i];
                out[i] = column < 0 ? T{0} : static_cast<T>(stored[column]);
            }
        } else {
            std::fill(out, out + n, T{0});
            for (auto at = first_entry(start); at != entries->end() && at->token < start + n; ++at) {
                out[at->token - start] = static_cast<T>(at->probability);
            }
        }
    }

   private:
    std::vector<SparseEntry>::const_iterator first_entry(std::int64_t token) const {
        return std::lower_bound(
            entries->begin(), entries->end(), token,
            [](const SparseEntry& entry, std::int64_t value) { return entry.token < value; });
    }
};

}  // namespace draftproof
