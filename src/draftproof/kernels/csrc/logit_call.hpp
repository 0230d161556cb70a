// One call's arrays where laws come as logits, beside those that all calls have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "call.hpp"
#include "logit_filters.hpp"
#include "logit_row.hpp"

namespace draftproof {

// What one side, target or draft, does to its logits. Rows are counted in the arrays' order.
struct LogitSide {
    const double *temperature = nullptr, *top_p, *min_p, *typical_p;  // all null: 1, no filter
    const std::int64_t *top_k, *filters, *ties;
    const std::int64_t* edit_from = nullptr;  // [rows + 1], null without edits
    const std::int64_t* edit_ids;             // ascending within a row
    const double* edit_logits;
    const std::uint32_t* masks = nullptr;  // [rows, ceil(V / 32)]

    LogitParams params(std::int64_t b) const {
        if (!temperature) return {1, 0, 1, 0, 1, Filters::sequential, false, false};
        return {temperature[b],  top_k[b],
                top_p[b],        min_p[b],
                typical_p[b],    static_cast<Filters>(filters[b]),
                (ties[b] & 1) != 0, (ties[b] & 2) != 0};
    }

    LogitRow row(const Row& stored, std::int64_t size, std::int64_t index,
                 std::vector<Edit>& edits) const {
        const std::uint32_t* mask = masks ? masks + index * ((size + 31) / 32) : nullptr;
        edits.clear();
        for (std::int64_t e = edit_from ? edit_from[index] : 0;
             edit_from && e < edit_from[index + 1]; ++e) {
            edits.push_back({edit_ids[e], edit_logits[e]});
        }
        return {stored, size, mask, edits.data(), static_cast<std::int64_t>(edits.size())};
    }
};

struct LogitCall : Call {
    LogitSide target_logits, draft_logits;
    bool drafts_have_logits;

    std::int64_t target_index(std::int64_t b, std::int64_t i) const {
        return (packed() ? cu_num_draft[b] + b : b * (max_draft + 1)) + i;
    }
    std::int64_t draft_index(std::int64_t b, std::int64_t i) const { return first(b) + i; }
};

}  // namespace draftproof
