// draftproof._native.verify_logits_plain.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include "call_binding.hpp"
#include "logit_binding.hpp"
#include "numpy_arrays.hpp"
#include "short_call.hpp"

namespace draftproof {

// draftproof.verify_logits with a generator, one set of parameters, and common options.
//
// plain_side(params, B) -> (params, greedy) as the kernel reads them, or None if the long way has to
// be taken. Returns what verify_plain does.
inline nb::object verify_logits_plain(nb::handle draft_token_ids, nb::handle draft_logits,
                                      nb::handle target_logits, nb::handle num_draft,
                                      nb::handle generator, nb::handle params,
                                      nb::handle rule, nb::handle validate,
                                      nb::handle on_bad_row, nb::handle backend,
                                      nb::handle most_threads, nb::handle plain_side) {
    LogitCall call{};
    ShortCall way(call);
    if (!way.read_options(generator, rule, validate, on_bad_row, backend, most_threads) ||
        !way.read_arrays(draft_token_ids, draft_logits, target_logits, num_draft)) {
        return nb::none();
    }
    nb::object side;  // keeps the arrays that are read from it
    if (!params.is_none()) {
        side = plain_side(params, call.size);
        if (side.is_none()) return nb::none();
        call.target_logits = read_logit_side(side[0], nb::none(), nb::none());
        call.greedy = data_or_null<bool>(optional_array(nb::object(side[1])));
    }
    call.drafts_have_logits = !draft_logits.is_none();
    call.draft_logits = call.target_logits;
    call.target_side = target_side(0);
    call.draft_side = draft_side(0);
    way.begin(generator);
    run(call, most_threads, surroundings.available_threads);
    return way.end();
}

}  // namespace draftproof
