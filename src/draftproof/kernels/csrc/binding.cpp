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
#include "logit_short.hpp"
#include "logit_tree_binding.hpp"
#include "numpy_arrays.hpp"
#include "philox.hpp"
#include "row_sums.hpp"
#include "short_call.hpp"
#include "short_way.hpp"
#include "thread_pool.hpp"
#include "tree_binding.hpp"

namespace nb = nanobind;
using namespace draftproof;

namespace {

void run(const Call& call, int threads) {
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
}

// accept, final: uniforms; for gumbel the rows' seeds and first positions.
// target_tolerance, draft_tolerance: how far from 1 a row's mass may lie.
// token_ids, num_emitted, status: written.
// remaining, factor: greedy-block's state, and where the next one is written (zeros); else None.
void verify_chain(nb::handle draft_token_ids, nb::handle drafter_token_ids,
                  nb::handle draft_probs, nb::handle sparse_ids, nb::handle column_of,
                  nb::handle target_probs, nb::handle num_draft, nb::handle cu_num_draft,
                  nb::handle greedy, nb::handle accept, nb::handle final, std::int64_t max_draft,
                  std::int64_t drafter_vocabulary, int rule, int validate,
                  double target_tolerance, double draft_tolerance, nb::handle most_threads,
                  nb::handle available_threads, nb::handle token_ids, nb::handle num_emitted,
                  nb::handle status_bits, nb::handle remaining, nb::handle factor,
                  nb::handle remaining_after, nb::handle factor_after) {
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
    run(call, num_threads(looks, call.vocabulary, call.target.dtype, most_threads,
                          available_threads));
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
    Call call{};
    ShortCall way(call);
    if (!way.read_options(generator, rule, validate, on_bad_row, backend, most_threads) ||
        !way.read_arrays(draft_token_ids, draft_probs, target_probs, num_draft)) {
        return nb::none();
    }
    static thread_local Tolerance target_tolerance, draft_tolerance;
    const nb::handle tolerance = surroundings.mass_tolerance;
    call.target_side = target_side(
        target_tolerance(tolerance, target_probs, call.target.dtype, call.vocabulary));
    call.draft_side =
        draft_side(draft_probs.is_none() ? 0
                                         : draft_tolerance(tolerance, draft_probs,
                                                           call.draft.dtype, call.vocabulary));
    way.begin(generator);
    run(call, num_threads(call, most_threads, surroundings.available_threads));
    return way.end();
}

template <auto kFunction>
PyMethodDef short_way_of(const char* name) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&vectorcall<kFunction>)),
            METH_FASTCALL, nullptr};
}

PyMethodDef short_ways[] = {
    short_way_of<&verify_plain>("verify_plain"),
    short_way_of<&verify_logits_plain>("verify_logits_plain"),
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
