// draftproof._native: the C++ kernels behind NumPy arrays.
//
// Shapes and dtypes were checked in Python. Arrays come in through the buffer protocol, which
// serves strided and read-only ones without a copy; the GIL is released while rows are verified.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call_binding.hpp"
#include "chain.hpp"
#include "chain_few.hpp"
#include "logit_binding.hpp"
#include "logit_tree_binding.hpp"
#include "numpy_arrays.hpp"
#include "philox.hpp"
#include "row_sums.hpp"
#include "short_way.hpp"
#include "thread_pool.hpp"
#include "tree_binding.hpp"

namespace nb = nanobind;
using namespace draftproof;

namespace {

// Verify all rows; the status bits of all of them together.
std::int64_t run(const Call& call, int threads) {
    nb::gil_scoped_release release;
    // A piece of work is worth the waking of a thread: a few hundred kilobytes of rows.
    constexpr std::int64_t kGrainBytes = 1 << 18;
    const std::int64_t row_bytes = (call.vocabulary + 16) * itemsize(call.target.dtype);
    const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / row_bytes);
    const VerifyFew few = verify_few_for(call);
    ThreadPool::instance().run(
        call.size, grain, threads, [&call, few](std::int64_t begin, std::int64_t end) {
            const DefaultFloatEnvironment environment;
            const std::int64_t ahead = call.vocabulary > kFew ? end : begin;
            ChainVerifier verifier(call, thread_scratch(), ahead);
            verifier.prefetch_entries(begin);
            for (std::int64_t b = begin; b < end; ++b) {
                verifier.prefetch_entries(b + 1);
                if (!few || !few(call, b)) verifier.verify(b);
            }
        });
    std::int64_t bits = 0;
    for (std::int64_t b = 0; b < call.size; ++b) bits |= call.status[b];
    return bits;
}

// accept, final: uniforms; for gumbel the rows' seeds and first positions.
// target_tolerance, draft_tolerance: how far from 1 a row's mass may lie.
// token_ids, num_emitted, status: written. Returns the bits of all rows together.
// remaining, factor: greedy-block's state, and where the next one is written (zeros); else None.
std::int64_t verify_chain(nb::handle draft_token_ids, nb::handle drafter_token_ids,
                          nb::handle draft_probs, nb::handle sparse_ids, nb::handle column_of,
                          nb::handle target_probs, nb::handle num_draft, nb::handle cu_num_draft,
                          nb::handle greedy, nb::handle accept, nb::handle final,
                          std::int64_t max_draft, std::int64_t drafter_vocabulary,
                          int rule, int validate, double target_tolerance,
                          double draft_tolerance, nb::handle most_threads,
                          nb::handle available_threads, nb::handle token_ids,
                          nb::handle num_emitted, nb::handle status_bits, nb::handle remaining,
                          nb::handle factor, nb::handle remaining_after,
                          nb::handle factor_after) {
    Call call{};
    call.rule = static_cast<Rule>(rule);
    call.validate = static_cast<Validate>(validate);
    call.target_side = target_side(target_tolerance);
    call.draft_side = draft_side(draft_tolerance);
    call.max_draft = max_draft;
    call.drafter_vocabulary = drafter_vocabulary;
    read_laws(call, target_probs, draft_probs, sparse_ids, column_of);
    read_drafts(call, draft_token_ids, drafter_token_ids, num_draft, cu_num_draft, greedy);
    read_results(call, accept, final, token_ids, num_emitted, status_bits);
    if (call.rule == Rule::greedy_block) {
        read_discounts(call, remaining, factor, remaining_after, factor_after);
    }
    std::int64_t looks = call.size;
    if (call.rule == Rule::gumbel) {
        call.seeds = Array(accept).as<const std::uint64_t>();
        call.positions = Array(final).as<const std::int64_t>();
        looks *= 16;  // noise costs more than a sum
    }
    return run(call, num_threads(looks, call.vocabulary, call.target.dtype, most_threads,
                                 available_threads));
}

Surroundings surroundings;

void set_surroundings(nb::handle result_type, nb::handle generator_type, nb::handle mass_tolerance,
                      nb::handle available_threads, nb::handle rules, nb::handle levels) {
    surroundings = {result_type, generator_type, mass_tolerance, available_threads, rules, levels};
    surroundings.keep();
}

// A named tuple of two fields, and attributes beside them; the others keep their class' defaults.
nb::object make_result(nb::handle token_ids, nb::handle num_emitted, nb::handle num_draft,
                       nb::handle status_bits) {
    static PyObject *const num_draft_name = PyUnicode_InternFromString("num_draft"),
                    *const status_name = PyUnicode_InternFromString("status"),
                    *const backend_name = PyUnicode_InternFromString("backend"),
                    *const native = PyUnicode_InternFromString("native");
    auto* type = reinterpret_cast<PyTypeObject*>(surroundings.result_type.ptr());
    const nb::tuple fields = nb::make_tuple(nb::make_tuple(token_ids, num_emitted));
    const nb::object result = nb::steal(PyTuple_Type.tp_new(type, fields.ptr(), nullptr));
    if (!result.is_valid()) throw nb::python_error();
    if (PyObject_SetAttr(result.ptr(), num_draft_name, num_draft.ptr()) ||
        PyObject_SetAttr(result.ptr(), status_name, status_bits.ptr()) ||
        PyObject_SetAttr(result.ptr(), backend_name, native)) {
        throw nb::python_error();
    }
    return result;
}

// draftproof.verify with a generator and common options.
//
// Returns a VerifyResult; or None, with the generator as it was, if the long way has to be taken;
// or (status, uniforms), those of all accept tests and then those of all last tokens, if a bad row
// is to be raised.
nb::object verify_plain(nb::handle draft_token_ids, nb::handle draft_probs,
                        nb::handle target_probs, nb::handle num_draft, nb::handle generator,
                        nb::handle uniforms, nb::handle seeds, nb::handle positions,
                        nb::handle rule, nb::handle greedy, nb::handle draft_to_target,
                        nb::handle state, nb::handle validate, nb::handle on_bad_row,
                        nb::handle backend, nb::handle most_threads, nb::handle return_trace) {
    if (!uniforms.is_none() || !seeds.is_none() || !positions.is_none() || !greedy.is_none() ||
        !draft_to_target.is_none() || !state.is_none() || return_trace.ptr() != Py_False) {
        return nb::none();
    }
    const auto options = Options::read(surroundings, generator, rule, validate, on_bad_row,
                                       backend, most_threads);
    if (!options) return nb::none();
    const bool has_draft = !draft_probs.is_none(), has_lengths = !num_draft.is_none();
    if (!Array::is_one(draft_token_ids) || !Array::is_one(target_probs) ||
        (has_draft && !Array::is_one(draft_probs)) || (has_lengths && !Array::is_one(num_draft))) {
        return nb::none();
    }
    const Array ids(draft_token_ids), target(target_probs);
    if (!ids.is_int64(2)) return nb::none();
    const std::int64_t size = ids.size(0), longest = ids.size(1);
    const auto is_law = [size](const Array& law, std::int64_t rows) {
        return law.rank() == 3 && law.is_float() && law.size(0) == size && law.size(1) == rows;
    };
    if (!is_law(target, longest + 1) || target.size(2) < 1) return nb::none();
    const std::int64_t vocabulary = target.size(2);
    Call call{};
    if (has_draft) {
        const Array draft(draft_probs);
        if (!is_law(draft, longest) || draft.size(2) != vocabulary) return nb::none();
        static thread_local Tolerance tolerance;
        call.draft = draft.table();
        call.draft_kind = DraftLaw::Kind::dense;
        call.draft_side = draft_side(tolerance(surroundings.mass_tolerance, draft_probs,
                                               call.draft.dtype, vocabulary));
    } else {
        call.draft_kind = DraftLaw::Kind::point_mass;
        call.draft_side = draft_side(0);
    }
    nb::object lengths;
    if (has_lengths) {
        const Array given(num_draft);
        if (!given.is_int64(1) || given.size(0) != size) return nb::none();
        lengths = copy_of(num_draft);  // the result keeps it
    } else {
        lengths = new_array(NPY_INT64, {size});
        std::fill_n(Array(lengths).as<std::int64_t>(), size, longest);
    }
    static thread_local Tolerance tolerance;
    call.rule = static_cast<Rule>(options->rule);
    call.validate = static_cast<Validate>(options->level);
    call.target = target.table();
    call.target_side = target_side(tolerance(surroundings.mass_tolerance, target_probs,
                                             call.target.dtype, vocabulary));
    call.size = size;
    call.max_draft = longest;
    call.vocabulary = call.drafter_vocabulary = vocabulary;
    call.num_draft = Array(lengths).as<const std::int64_t>();
    call.draft_token_ids = call.drafter_token_ids = ids.as<const std::int64_t>();
    static thread_local std::vector<double> drawn;
    drawn.resize(size * (longest + 1));
    draw_uniforms(generator, drawn.data(), size * (longest + 1));
    call.accept = drawn.data();
    call.final = call.accept + size * longest;
    const nb::object token_ids = new_array(NPY_INT64, {size, longest + 1}),
                     num_emitted = new_array(NPY_INT64, {size}),
                     status_bits = new_array(NPY_INT64, {size});
    call.token_ids = Array(token_ids).as<std::int64_t>();
    call.num_emitted = Array(num_emitted).as<std::int64_t>();
    call.status = Array(status_bits).as<std::int64_t>();
    const std::int64_t bits =
        run(call, num_threads(call, most_threads, surroundings.available_threads));
    if (options->raises && bits > status::zero_residual) {
        const nb::object read = new_array(NPY_DOUBLE, {size * (longest + 1)});
        std::copy(drawn.begin(), drawn.end(), Array(read).as<double>());
        return nb::make_tuple(status_bits, read);
    }
    return make_result(token_ids, num_emitted, lengths, status_bits);
}

template <auto kFunction>
PyMethodDef short_way_of(const char* name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&vectorcall<kFunction>)),
            METH_FASTCALL, nullptr};
}

PyMethodDef short_ways[] = {
    short_way_of<&verify_plain>("verify_plain"),
    short_way_of<&verify_tree_plain>("verify_tree_plain"),
    {nullptr, nullptr, 0, nullptr},
};

// Contiguous arrays of one length; out is written.
void fill_uniforms(nb::handle seeds, nb::handle positions, std::uint32_t stream, nb::handle index,
                   nb::handle out) {
    const Array seed(seeds), position(positions), idx(index), uniforms(out);
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
    const Array seed(seeds), position(positions), uniforms(out);
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
    if (_import_array() < 0) throw nb::python_error();
    if (PyModule_AddFunctions(module.ptr(), short_ways) < 0) throw nb::python_error();
    module.def("set_surroundings", &set_surroundings);
    module.def("set_tree_surroundings", &set_tree_surroundings);
    module.def("verify_chain", &verify_chain, "draft_token_ids"_a, "drafter_token_ids"_a,
               "draft_probs"_a.none(), "sparse_ids"_a.none(), "column_of"_a.none(),
               "target_probs"_a, "num_draft"_a, "cu_num_draft"_a.none(), "greedy"_a.none(),
               "accept"_a, "final"_a, "max_draft"_a, "drafter_vocabulary"_a, "rule"_a,
               "validate"_a, "target_tolerance"_a, "draft_tolerance"_a, "most_threads"_a.none(),
               "available_threads"_a, "token_ids"_a, "num_emitted"_a, "status"_a,
               "remaining"_a.none(), "factor"_a.none(), "remaining_after"_a.none(),
               "factor_after"_a.none());
    module.def("verify_logits", &verify_logits, "draft_token_ids"_a, "drafter_token_ids"_a,
               "draft_laws"_a.none(), "sparse_ids"_a.none(), "column_of"_a.none(),
               "target_logits"_a, "target"_a, "draft"_a.none(), "num_draft"_a,
               "cu_num_draft"_a.none(), "greedy"_a.none(), "accept"_a, "final"_a, "max_draft"_a,
               "drafter_vocabulary"_a, "rule"_a, "validate"_a, "draft_tolerance"_a,
               "most_threads"_a.none(), "available_threads"_a, "token_ids"_a, "num_emitted"_a,
               "status"_a);
    module.def("list_logprobs", &list_logprobs, "target_logits"_a, "target"_a, "num_draft"_a,
               "cu_num_draft"_a.none(), "greedy"_a.none(), "max_draft"_a, "token_ids"_a,
               "num_emitted"_a, "raw"_a, "most_threads"_a.none(), "available_threads"_a,
               "token_logprobs"_a, "token_ranks"_a, "top_token_ids"_a, "top_logprobs"_a,
               "is_written"_a);
    module.def("forest_depth", &forest_depth);
    module.def("verify_forest", &verify_forest, "num_nodes"_a, "token_ids"_a, "parents"_a,
               "draw_order"_a.none(), "draft_probs"_a.none(), "sparse_ids"_a.none(),
               "target_probs"_a, "greedy"_a.none(), "accept"_a, "final"_a, "rule"_a, "validate"_a, "siblings_differ"_a,
               "target_tolerance"_a, "draft_tolerance"_a, "most_threads"_a.none(),
               "available_threads"_a, "path"_a, "emitted"_a, "num_emitted"_a, "status"_a);
    module.def("verify_logit_forest", &verify_logit_forest, "num_nodes"_a, "token_ids"_a,
               "parents"_a, "draw_order"_a.none(), "draft_laws"_a.none(), "sparse_ids"_a.none(),
               "target_logits"_a, "target"_a, "draft"_a.none(), "greedy"_a.none(), "accept"_a,
               "final"_a, "rule"_a, "validate"_a, "siblings_differ"_a, "target_tolerance"_a,
               "draft_tolerance"_a, "most_threads"_a.none(), "available_threads"_a, "path"_a,
               "emitted"_a, "num_emitted"_a, "status"_a);
    module.def("fill_uniforms", &fill_uniforms);
    module.def("fill_token_uniforms", &fill_token_uniforms);
    module.def("philox4x32", &philox);
    module.def("instruction_set", [] { return std::string(best_instruction_set().name); });
}
