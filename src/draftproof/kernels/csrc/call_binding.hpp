// What every binding needs: arrays read into a call, and how many threads it is worth.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <limits>

#include "call.hpp"
#include "draw.hpp"
#include "numpy_arrays.hpp"
#include "status.hpp"

namespace draftproof {

// The default rounding and no flushing of denormals, whatever the calling thread uses: a pool's
// thread and its caller must agree.
class DefaultFloatEnvironment {
   public:
    DefaultFloatEnvironment() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }

   private:
    std::fenv_t saved_;
};

inline Scratch& thread_scratch() {
    thread_local Scratch scratch;
    return scratch;
}

inline Side target_side(double tolerance) {
    return {status::target_not_finite, status::target_negative, status::target_mass, tolerance};
}
inline Side draft_side(double tolerance) {
    return {status::draft_not_finite, status::draft_negative, status::draft_mass, tolerance};
}

// A Python int of any size, or the nearest that there is.
inline std::int64_t clamped(nb::handle number) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (value == -1 && !overflow && PyErr_Occurred()) throw nb::python_error();
    if (!overflow) return value;
    using Limits = std::numeric_limits<std::int64_t>;
    return overflow > 0 ? Limits::max() : Limits::min();
}

// As many threads as are worth waking, and no more than `most` or, if that is None, than there are.
// To wake one costs about as much as a few megabytes; a row costs some bytes beside its own.
inline int num_threads(std::int64_t rows, std::int64_t vocabulary, Dtype dtype, nb::handle most,
                       nb::handle available) {
    constexpr std::int64_t kBytesPerThread = 1 << 22, kBytesPerRow = 512;
    const std::int64_t row_bytes = vocabulary * itemsize(dtype) + kBytesPerRow;
    const std::int64_t worthwhile = rows * row_bytes / kBytesPerThread;
    if (worthwhile < 2) return 1;
    const nb::object limit = most.is_none() ? available() : nb::borrow(most);
    return static_cast<int>(std::min(clamped(limit), worthwhile));
}

inline int num_threads(const Call& call, nb::handle most, nb::handle available) {
    return num_threads(call.size, call.vocabulary, call.target.dtype, most, available);
}

inline void read_laws(Call& call, nb::handle target, nb::handle draft, nb::handle sparse_ids,
                      nb::handle column_of) {
    const Array rows(target);
    const auto laws = optional_array(draft), sparse = optional_array(sparse_ids),
               columns = optional_array(column_of);
    call.target = rows.table();
    call.vocabulary = rows.size(rows.rank() - 1);
    call.draft_kind = !laws     ? DraftLaw::Kind::point_mass
                      : sparse  ? DraftLaw::Kind::sparse
                      : columns ? DraftLaw::Kind::mapped
                                : DraftLaw::Kind::dense;
    if (laws) call.draft = laws->table();
    call.sparse_ids = data_or_null<std::int64_t>(sparse);
    call.column_of = data_or_null<std::int32_t>(columns);
}

inline void read_drafts(Call& call, nb::handle draft_token_ids, nb::handle drafter_token_ids,
                        nb::handle num_draft, nb::handle cu_num_draft, nb::handle greedy) {
    const Array lengths(num_draft);
    call.size = lengths.size(0);
    call.num_draft = lengths.as<const std::int64_t>();
    call.cu_num_draft = data_or_null<std::int64_t>(optional_array(cu_num_draft));
    call.draft_token_ids = Array(draft_token_ids).as<const std::int64_t>();
    call.drafter_token_ids = Array(drafter_token_ids).as<const std::int64_t>();
    call.greedy = data_or_null<bool>(optional_array(greedy));
}

// Contiguous [B, L]; those that are written [B, L + 1].
inline void read_discounts(Call& call, nb::handle remaining, nb::handle factor,
                           nb::handle remaining_after, nb::handle factor_after) {
    const Array places(remaining);
    call.discounts = {places.size(1), places.as<const std::int64_t>(),
                      Array(factor).as<const double>(), Array(remaining_after).as<std::int64_t>(),
                      Array(factor_after).as<double>()};
}

inline void read_results(Call& call, nb::handle accept, nb::handle final, nb::handle token_ids,
                         nb::handle num_emitted, nb::handle status_bits) {
    call.accept = Array(accept).as<const double>();
    call.final = Array(final).as<const double>();
    call.token_ids = Array(token_ids).as<std::int64_t>();
    call.num_emitted = Array(num_emitted).as<std::int64_t>();
    call.status = Array(status_bits).as<std::int64_t>();
}

}  // namespace draftproof
