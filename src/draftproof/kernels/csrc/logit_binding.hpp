// draftproof._native.verify_logits and list_logprobs.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "call_binding.hpp"
#include "logit_chain.hpp"
#include "logit_logprobs.hpp"
#include "numpy_arrays.hpp"
#include "thread_pool.hpp"

namespace draftproof {

// (temperature, top_p, min_p, typical_p, top_k, filters, ties), each [B], or None; (edit_from [R+1],
// edit_ids, edit_logits) over the R rows, or None; masks [R, ceil(V / 32)] or None.
inline LogitSide read_logit_side(nb::handle params, nb::handle edits, nb::handle masks) {
    LogitSide side{};
    if (!params.is_none()) {
        side.temperature = Array(params[0]).as<const double>();
        side.top_p = Array(params[1]).as<const double>();
        side.min_p = Array(params[2]).as<const double>();
        side.typical_p = Array(params[3]).as<const double>();
        side.top_k = Array(params[4]).as<const std::int64_t>();
        side.filters = Array(params[5]).as<const std::int64_t>();
        side.ties = Array(params[6]).as<const std::int64_t>();
    }
    if (!edits.is_none()) {
        side.edit_from = Array(edits[0]).as<const std::int64_t>();
        side.edit_ids = Array(edits[1]).as<const std::int64_t>();
        side.edit_logits = Array(edits[2]).as<const double>();
    }
    side.masks = data_or_null<std::uint32_t>(optional_array(masks));
    return side;
}

inline LogitScratch& thread_logit_scratch() {
    thread_local const auto scratch = std::make_unique<LogitScratch>();
    return *scratch;
}

// Call f(begin, end, scratch) for the requests of a call, with the GIL released.
template <typename Function>
void for_requests(const LogitCall& call, nb::handle most_threads,
                  nb::handle available_threads, Function f) {
    // A request looks at some rows; an exponential costs more than a sum, and noise yet more.
    const std::int64_t looks = call.rule == Rule::gumbel ? 16 : 4;
    const int threads = num_threads(looks * call.size, call.vocabulary, call.target.dtype,
                                    most_threads, available_threads);
    nb::gil_scoped_release release;
    constexpr std::int64_t kGrain = 1 << 16;  // logits
    const std::int64_t grain = std::max<std::int64_t>(1, kGrain / (call.vocabulary + 64));
    ThreadPool::instance().run(call.size, grain, threads,
                               [&f](std::int64_t begin, std::int64_t end) {
                                   const DefaultFloatEnvironment environment;
                                   f(begin, end, thread_logit_scratch());
                               });
}

inline void run(const LogitCall& call, nb::handle most_threads, nb::handle available_threads) {
    for_requests(call, most_threads, available_threads,
                 [&call](std::int64_t begin, std::int64_t end, LogitScratch& scratch) {
                     LogitChainVerifier verifier(call, scratch);
                     for (std::int64_t b = begin; b < end; ++b) verifier.verify(b);
                 });
}

// target, draft: (params, edits, masks), and draft None where draft_laws holds probabilities.
// accept, final: uniforms; for gumbel the rows' seeds and first positions.
// token_ids, num_emitted and status are written.
inline void verify_logits(nb::handle draft_token_ids, nb::handle drafter_token_ids,
                          nb::handle draft_laws, nb::handle sparse_ids, nb::handle column_of,
                          nb::handle target_logits, nb::handle target, nb::handle draft,
                          nb::handle num_draft, nb::handle cu_num_draft, nb::handle greedy,
                          nb::handle accept, nb::handle final, std::int64_t max_draft,
                          std::int64_t drafter_vocabulary, int rule, int validate,
                          double draft_tolerance, nb::handle most_threads,
                          nb::handle available_threads, nb::handle token_ids,
                          nb::handle num_emitted, nb::handle status_bits) {
    LogitCall call{};
    call.rule = static_cast<Rule>(rule);
    call.validate = static_cast<Validate>(validate);
    call.target_side = target_side(0);
    call.draft_side = draft_side(draft_tolerance);
    call.max_draft = max_draft;
    call.drafter_vocabulary = drafter_vocabulary;
    read_laws(call, target_logits, draft_laws, sparse_ids, column_of);
    read_drafts(call, draft_token_ids, drafter_token_ids, num_draft, cu_num_draft, greedy);
    read_results(call, accept, final, token_ids, num_emitted, status_bits);
    if (call.rule == Rule::gumbel) {
        call.seeds = Array(accept).as<const std::uint64_t>();
        call.positions = Array(final).as<const std::int64_t>();
    }
    call.target_logits = read_logit_side(target[0], target[1], target[2]);
    call.drafts_have_logits = !draft.is_none();
    if (call.drafts_have_logits) {
        call.draft_logits = read_logit_side(draft[0], draft[1], draft[2]);
    }
    run(call, most_threads, available_threads);
}

// Of each emitted token, and of the n likeliest; the tables [B, K+1] and [B, K+1, n] are written.
inline void list_logprobs(nb::handle target_logits, nb::handle target, nb::handle num_draft,
                          nb::handle cu_num_draft, nb::handle greedy, std::int64_t max_draft,
                          nb::handle token_ids, nb::handle num_emitted, bool raw,
                          nb::handle most_threads, nb::handle available_threads,
                          nb::handle token_logprobs, nb::handle token_ranks,
                          nb::handle top_token_ids, nb::handle top_logprobs,
                          nb::handle is_written) {
    const Array lengths(num_draft), top(top_token_ids);
    LogitCall call{};
    call.max_draft = max_draft;
    call.size = lengths.size(0);
    call.num_draft = lengths.as<const std::int64_t>();
    call.cu_num_draft = data_or_null<std::int64_t>(optional_array(cu_num_draft));
    call.greedy = data_or_null<bool>(optional_array(greedy));
    read_laws(call, target_logits, nb::none(), nb::none(), nb::none());
    call.target_logits = read_logit_side(target[0], target[1], target[2]);
    call.token_ids = Array(token_ids).as<std::int64_t>();
    call.num_emitted = Array(num_emitted).as<std::int64_t>();
    const LogprobTable table{top.size(2),
                             raw,
                             Array(token_logprobs).as<double>(),
                             Array(token_ranks).as<std::int64_t>(),
                             top.as<std::int64_t>(),
                             Array(top_logprobs).as<double>(),
                             Array(is_written).as<bool>()};
    for_requests(call, most_threads, available_threads,
                 [&](std::int64_t begin, std::int64_t end, LogitScratch& scratch) {
                     LogitLogprobs logprobs(call, table, scratch);
                     for (std::int64_t b = begin; b < end; ++b) logprobs.list(b);
                 });
}

}  // namespace draftproof
