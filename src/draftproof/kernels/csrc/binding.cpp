// draftproof._native: the C++ kernels behind NumPy arrays.
//
// Shapes and dtypes were checked in Python. Arrays come in through the buffer protocol, which
// serves strided and read-only ones without a copy; the GIL is released while rows are verified.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cfenv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "chain.hpp"
#include "philox.hpp"
#include "row_sums.hpp"
#include "thread_pool.hpp"

namespace nb = nanobind;
using namespace draftproof;

namespace {

// An array held for the duration of a call.
class Buffer {
   public:
    explicit Buffer(nb::handle array, int flags = PyBUF_STRIDED_RO | PyBUF_FORMAT) {
        if (PyObject_GetBuffer(array.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    template <typename T>
    T* as() const {
        return static_cast<T*>(view_.buf);
    }
    const char* data() const { return static_cast<const char*>(view_.buf); }
    std::int64_t size(int axis) const { return view_.shape[axis]; }
    std::int64_t stride(int axis) const { return view_.strides[axis]; }
    int rank() const { return view_.ndim; }

    Dtype dtype() const {
        switch (view_.format[std::strlen(view_.format) - 1]) {  // behind a mark of alignment
            case 'd': return Dtype::float64;
            case 'f': return Dtype::float32;
            case 'e': return Dtype::float16;
            default: return Dtype::bfloat16;  // uint16 words
        }
    }

    // Native float64, float32 or float16: one letter, without a mark of alignment or byte order.
    bool is_float() const {
        return view_.format[1] == '\0' && std::strchr("dfe", view_.format[0]) != nullptr;
    }
    bool is_row_of_int64(int rank) const {
        return view_.ndim == rank && view_.itemsize == 8 && view_.format[1] == '\0' &&
               std::strchr("lq", view_.format[0]) != nullptr &&
               PyBuffer_IsContiguous(&view_, 'C');
    }

    // The rows of [B, R, W] or, packed, of [N, W].
    RowTable table() const {
        const int last = rank() - 1;
        return {data(),       last == 2 ? stride(0) : 0, stride(last - 1),
                stride(last), size(last),                dtype()};
    }

   private:
    Py_buffer view_;
};

std::optional<Buffer> optional_buffer(nb::handle array) {
    if (array.is_none()) return std::nullopt;
    return std::optional<Buffer>(std::in_place, array);
}

template <typename T>
const T* data_or_null(const std::optional<Buffer>& buffer) {
    return buffer ? buffer->as<const T>() : nullptr;
}

constexpr int kWritable = PyBUF_STRIDED | PyBUF_FORMAT;

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

Scratch& thread_scratch() {
    thread_local Scratch scratch;
    return scratch;
}

// (B, K, V) if the arrays are as the kernel reads them, so that no check or conversion is left to do;
// else None, and draftproof.batch looks closer.
nb::object plain_shape(nb::handle draft_token_ids, nb::handle draft_probs, nb::handle target_probs,
                       nb::handle num_draft) {
    const Buffer ids(draft_token_ids), target(target_probs);
    const auto draft = optional_buffer(draft_probs), lengths = optional_buffer(num_draft);
    const auto is_law = [](const Buffer& law, std::int64_t size, std::int64_t rows) {
        return law.rank() == 3 && law.is_float() && law.size(0) == size && law.size(1) == rows;
    };
    if (!ids.is_row_of_int64(2)) return nb::none();
    const std::int64_t size = ids.size(0), longest = ids.size(1);
    if (!is_law(target, size, longest + 1) || target.size(2) < 1) return nb::none();
    if (draft && !(is_law(*draft, size, longest) && draft->size(2) == target.size(2))) {
        return nb::none();
    }
    if (lengths && !(lengths->is_row_of_int64(1) && lengths->size(0) == size)) return nb::none();
    return nb::make_tuple(size, longest, target.size(2));
}

// target_tolerance, draft_tolerance: how far from 1 a row's mass may lie.
// token_ids, num_emitted, status: written. Returns the bits of all rows together.
std::int64_t verify_chain(nb::handle draft_token_ids, nb::handle drafter_token_ids, nb::handle draft_probs,
                  nb::handle sparse_ids, nb::handle column_of, nb::handle target_probs,
                  nb::handle num_draft, nb::handle cu_num_draft, nb::handle greedy,
                  nb::handle accept, nb::handle final, std::int64_t max_draft,
                  std::int64_t drafter_vocabulary, bool exact_match, int validate,
                  double target_tolerance, double draft_tolerance, int num_threads,
                  nb::handle token_ids, nb::handle num_emitted, nb::handle status_bits) {
    const Buffer ids(draft_token_ids), own_ids(drafter_token_ids), target(target_probs),
        lengths(num_draft), accept_uniforms(accept), final_uniforms(final);
    const auto draft = optional_buffer(draft_probs), sparse = optional_buffer(sparse_ids),
               columns = optional_buffer(column_of), offsets = optional_buffer(cu_num_draft),
               greedy_rows = optional_buffer(greedy);
    const Buffer out_tokens(token_ids, kWritable), out_emitted(num_emitted, kWritable),
        out_status(status_bits, kWritable);

    Call call{};
    call.rule = exact_match ? Rule::exact_match : Rule::token;
    call.validate = static_cast<Validate>(validate);
    call.target_side = {status::target_not_finite, status::target_negative, status::target_mass,
                        target_tolerance};
    call.draft_side = {status::draft_not_finite, status::draft_negative, status::draft_mass,
                       draft_tolerance};
    call.size = lengths.size(0);
    call.max_draft = max_draft;
    call.vocabulary = target.size(target.rank() - 1);
    call.drafter_vocabulary = drafter_vocabulary;
    call.num_draft = lengths.as<const std::int64_t>();
    call.cu_num_draft = data_or_null<std::int64_t>(offsets);
    call.draft_token_ids = ids.as<const std::int64_t>();
    call.drafter_token_ids = own_ids.as<const std::int64_t>();
    call.target = target.table();
    call.draft_kind = !draft    ? DraftLaw::Kind::point_mass
                      : sparse  ? DraftLaw::Kind::sparse
                      : columns ? DraftLaw::Kind::mapped
                                : DraftLaw::Kind::dense;
    if (draft) call.draft = draft->table();
    call.sparse_ids = data_or_null<std::int64_t>(sparse);
    call.column_of = data_or_null<std::int32_t>(columns);
    call.accept = accept_uniforms.as<const double>();
    call.final = final_uniforms.as<const double>();
    call.greedy = data_or_null<bool>(greedy_rows);
    call.token_ids = out_tokens.as<std::int64_t>();
    call.num_emitted = out_emitted.as<std::int64_t>();
    call.status = out_status.as<std::int64_t>();

    nb::gil_scoped_release release;
    // A piece of work is worth the waking of a thread: a few hundred kilobytes of rows.
    constexpr std::int64_t kGrainBytes = 1 << 18;
    const std::int64_t row_bytes = (call.vocabulary + 16) * itemsize(call.target.dtype);
    const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / row_bytes);
    ThreadPool::instance().run(
        call.size, grain, num_threads, [&call](std::int64_t begin, std::int64_t end) {
            const DefaultFloatEnvironment environment;
            const bool scattered = call.vocabulary > kFew;
            ChainVerifier verifier(call, thread_scratch());
            for (std::int64_t b = begin; b < end; ++b) {
                if (scattered && b + 1 < end) verifier.prefetch(b + 1);
                verifier.verify(b);
            }
        });
    std::int64_t bits = 0;
    for (std::int64_t b = 0; b < call.size; ++b) bits |= call.status[b];
    return bits;
}

// Contiguous arrays of one length; out is written.
void fill_uniforms(nb::handle seeds, nb::handle positions, std::uint32_t stream, nb::handle index,
                   nb::handle out) {
    const Buffer seed(seeds), position(positions), idx(index), uniforms(out, kWritable);
    const auto* s = seed.as<const std::uint64_t>();
    const auto* t = position.as<const std::uint64_t>();
    const auto* i = idx.as<const std::uint32_t>();
    auto* u = uniforms.as<double>();
    const std::int64_t count = uniforms.size(0);
    nb::gil_scoped_release release;
    for (std::int64_t n = 0; n < count; ++n) {
        const PhiloxWords words = noise_words(s[n], t[n], stream, i[n]);
        u[n] = to_uniform(words[0], words[1]);
    }
}

// One row of noise for each (seed, position); out [n, V] is written.
void fill_token_uniforms(nb::handle seeds, nb::handle positions, std::uint32_t stream,
                         nb::handle out) {
    const Buffer seed(seeds), position(positions), uniforms(out, kWritable);
    const auto* s = seed.as<const std::uint64_t>();
    const auto* t = position.as<const std::uint64_t>();
    auto* u = uniforms.as<double>();
    const std::int64_t count = uniforms.size(0), vocabulary = uniforms.size(1);
    nb::gil_scoped_release release;
    for (std::int64_t n = 0; n < count; ++n) {
        for (std::int64_t v = 0; v < vocabulary; v += 2) {
            const PhiloxWords words =
                noise_words(s[n], t[n], stream, static_cast<std::uint32_t>(v >> 1));
            u[n * vocabulary + v] = to_uniform(words[0], words[1]);
            if (v + 1 < vocabulary) u[n * vocabulary + v + 1] = to_uniform(words[2], words[3]);
        }
    }
}

std::vector<std::uint32_t> philox(const std::vector<std::uint32_t>& counter,
                                  const std::vector<std::uint32_t>& key) {
    const PhiloxWords words = philox4x32(
        {counter.at(0), counter.at(1), counter.at(2), counter.at(3)}, key.at(0), key.at(1));
    return {words.begin(), words.end()};
}

}  // namespace

NB_MODULE(_native, module) {
    using namespace nb::literals;
    module.def("plain_shape", &plain_shape, "draft_token_ids"_a, "draft_probs"_a.none(),
               "target_probs"_a, "num_draft"_a.none());
    module.def("verify_chain", &verify_chain, "draft_token_ids"_a, "drafter_token_ids"_a, "draft_probs"_a.none(),
               "sparse_ids"_a.none(), "column_of"_a.none(), "target_probs"_a, "num_draft"_a,
               "cu_num_draft"_a.none(), "greedy"_a.none(), "accept"_a, "final"_a, "max_draft"_a,
               "drafter_vocabulary"_a, "exact_match"_a, "validate"_a, "target_tolerance"_a,
               "draft_tolerance"_a, "num_threads"_a, "token_ids"_a, "num_emitted"_a, "status"_a);
    module.def("fill_uniforms", &fill_uniforms);
    module.def("fill_token_uniforms", &fill_token_uniforms);
    module.def("philox4x32", &philox);
    module.def("instruction_set", [] { return std::string(best_instruction_set().name); });
}
