// draftproof._native.verify_logit_forest.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>

#include "logit_binding.hpp"
#include "logit_tree.hpp"
#include "tree_binding.hpp"

namespace draftproof {

// (repetition, presence, frequency, window, min_tokens, prompt_sizes, bias_comes_last,
// repetition_sees_prompt, additive_sees_prompt), each [B]; text_from [B+1], texts; bias_from,
// bias_ids, biases; ends_from, ends. Or None.
inline EditTable read_edits(nb::handle columns) {
    EditTable table{};
    if (columns.is_none()) return table;
    const auto at = [&columns](int i) { return Array(nb::object(columns[i])); };
    table.repetition = at(0).as<const double>();
    table.presence = at(1).as<const double>();
    table.frequency = at(2).as<const double>();
    table.window = at(3).as<const std::int64_t>();
    table.min_tokens = at(4).as<const std::int64_t>();
    table.prompt_sizes = at(5).as<const std::int64_t>();
    table.bias_comes_last = at(6).as<const bool>();
    table.repetition_sees_prompt = at(7).as<const bool>();
    table.additive_sees_prompt = at(8).as<const bool>();
    table.text_from = at(9).as<const std::int64_t>();
    table.texts = at(10).as<const std::int64_t>();
    table.bias_from = at(11).as<const std::int64_t>();
    table.bias_ids = at(12).as<const std::int64_t>();
    table.biases = at(13).as<const double>();
    table.ends_from = at(14).as<const std::int64_t>();
    table.ends = at(15).as<const std::int64_t>();
    return table;
}

// Booleans or words of bits, over the vocabulary and perhaps the contexts, or None.
inline Mask read_mask(nb::handle object) {
    if (object.is_none()) return {};
    const Array mask(object);
    const int last = mask.rank() - 1;
    return {mask.as<const char>(), last > 0 ? mask.stride(last - 1) : 0, mask.stride(last),
            mask.itemsize() == 4};
}

// One for the batch, or None; and by request lists of those that allow and that ban, or None.
inline MaskTable read_masks(nb::handle batch, nb::handle allowed, nb::handle banned) {
    MaskTable table{read_mask(batch), batch.is_none() ? 0 : Array(batch).stride(0), {}, {}};
    if (allowed.is_none()) return table;
    for (nb::handle mask : allowed) table.allowed.push_back(read_mask(mask));
    for (nb::handle mask : banned) table.banned.push_back(read_mask(mask));
    return table;
}

// (params, edits, (batch's mask, allowed, banned)).
inline LogitContexts read_contexts(nb::handle logits, nb::handle side) {
    const nb::object masks(side[2]);
    return {Array(logits).table(), read_logit_side(side[0], nb::none(), nb::none()),
            read_edits(nb::object(side[1])),
            read_masks(nb::object(masks[0]), nb::object(masks[1]), nb::object(masks[2]))};
}

// Arguments are verify_forest's, of which the laws are logits where `target` and `draft` say what
// becomes of them; draft is None where draft_laws holds probabilities.
inline void verify_logit_forest(nb::handle num_nodes, nb::handle token_ids, nb::handle parents,
                                nb::handle draw_order, nb::handle draft_laws,
                                nb::handle sparse_ids, nb::handle target_logits,
                                nb::handle target, nb::handle draft, nb::handle greedy,
                                nb::handle accept, nb::handle final, int rule, int validate,
                                bool siblings_differ, double target_tolerance,
                                double draft_tolerance, nb::handle most_threads,
                                nb::handle available_threads, nb::handle path,
                                nb::handle emitted, nb::handle num_emitted,
                                nb::handle status_bits) {
    LogitForest forest{};
    read_judging(forest, rule, validate, siblings_differ, target_tolerance, draft_tolerance,
                 greedy, accept, final);
    read_trees(forest, num_nodes, token_ids, parents, draw_order,
               draft.is_none() ? draft_laws : nb::none(), sparse_ids, target_logits);
    forest.target_logits = read_contexts(target_logits, target);
    if (!draft.is_none()) forest.draft_logits = read_contexts(draft_laws, draft);
    read_tree_results(forest, path, emitted, num_emitted, status_bits);
    // A path reads some rows more than its length, and an exponential costs more than a sum.
    const int threads = num_threads(4 * forest.size * (forest.max_depth + 1), forest.vocabulary,
                                    forest.target.dtype, most_threads, available_threads);
    nb::gil_scoped_release release;
    ThreadPool::instance().run(forest.size, 1, threads,
                               [&forest](std::int64_t begin, std::int64_t end) {
                                   const DefaultFloatEnvironment environment;
                                   LogitTreeRows rows(forest, thread_logit_scratch());
                                   TreeVerifier verifier(forest, thread_scratch(), &rows);
                                   for (std::int64_t b = begin; b < end; ++b) verifier.verify(b);
                               });
}

}  // namespace draftproof
