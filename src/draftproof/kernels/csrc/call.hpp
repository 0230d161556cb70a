// One call's arrays, as the binding hands them to the verifiers of chains.
#pragma once

#include <cstdint>

#include "discounts.hpp"
#include "judge.hpp"
#include "laws.hpp"
#include "status.hpp"

namespace draftproof {

enum class Rule { token, exact_match, block, gumbel, greedy_block };

// One call's arrays, in either layout. Row b's drafts are draft_token_ids[first(b) + i].
struct Call {
    Rule rule;
    Validate validate;
    Side target_side, draft_side;
    std::int64_t size, max_draft, vocabulary, drafter_vocabulary;
    const std::int64_t* num_draft;
    const std::int64_t* cu_num_draft;       // null if padded
    const std::int64_t* draft_token_ids;    // in the target's vocabulary
    const std::int64_t* drafter_token_ids;  // in the drafter's
    RowTable target;
    DraftLaw::Kind draft_kind;
    RowTable draft;
    const std::int64_t* sparse_ids;  // beside draft's rows
    const std::int32_t* column_of;
    const double* accept;
    const double* final;
    const std::uint64_t* seeds;     // gumbel's, in place of uniforms
    const std::int64_t* positions;  // of a row's first token in its text
    const bool* greedy;             // null if no row is
    DiscountTable discounts;        // greedy_block's; none for other rules
    std::int64_t* token_ids;
    std::int64_t* num_emitted;
    std::int64_t* status;

    bool packed() const { return cu_num_draft != nullptr; }
    std::int64_t first(std::int64_t b) const { return packed() ? cu_num_draft[b] : b * max_draft; }

    Row target_row(std::int64_t b, std::int64_t i) const {
        return target.row(b, packed() ? cu_num_draft[b] + b : -1, i);
    }
    Row draft_row(std::int64_t b, std::int64_t i) const {
        return draft.row(b, packed() ? cu_num_draft[b] : -1, i);
    }
    const std::int64_t* sparse_ids_row(std::int64_t b, std::int64_t i) const {
        return sparse_ids + (first(b) + i) * draft.size;
    }
};

}  // namespace draftproof
