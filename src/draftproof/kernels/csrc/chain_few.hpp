// The token rule for a tiny vocabulary, where finding a row costs more than reading it.
//
// It knows the plain case alone: dense laws of one dtype, contiguous, good numbers. Whatever else a
// row holds it leaves, untouched, to ChainVerifier, which decides this case alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "chain.hpp"

namespace draftproof {

// Whether the row was decided.
using VerifyFew = bool (*)(const Call&, std::int64_t b);

template <typename T>
bool verify_few(const Call& call, std::int64_t b) {
    const std::int64_t g = call.num_draft[b], size = call.vocabulary, first = call.first(b);
    if (g < 0 || g > call.max_draft) return false;
    const std::int64_t* drafts = call.draft_token_ids + first;
    const double* accept = call.accept + first;
    for (std::int64_t i = 0; i < g; ++i) {
        if (static_cast<std::uint64_t>(drafts[i]) >= static_cast<std::uint64_t>(size)) return false;
    }
    const auto good = [](double u, double p, double q) {
        constexpr double largest = std::numeric_limits<double>::max();
        return u >= 0 && u < 1 && p >= 0 && q >= 0 && p <= largest && q <= largest;
    };
    const char* p_row = call.target_row(b, 0).data;
    const char* q_row = call.draft_row(b, 0).data;
    std::int64_t tau = 0;
    for (; tau < g; ++tau) {
        const std::int64_t x = drafts[tau];
        if (static_cast<std::uint64_t>(x) >= static_cast<std::uint64_t>(size)) return false;
        const double p = reinterpret_cast<const T*>(p_row)[x],
                     q = reinterpret_cast<const T*>(q_row)[x], u = accept[tau];
        if (!good(u, p, q)) return false;
        if (!(p > 0 && (p >= q || u * q < p))) break;
        p_row += call.target.position_stride;
        q_row += call.draft.position_stride;
    }
    const double u = call.final[b];
    if (!good(u, 0, 0)) return false;

    const T* p = reinterpret_cast<const T*>(p_row);
    double running[kFew], p_mass = 0, total = 0;
    bool negative = false;
    if (tau < g) {
        const T* q = reinterpret_cast<const T*>(q_row);
        double q_mass = 0;
        for (std::int64_t v = 0; v < size; ++v) {
            const double target = p[v], draft = q[v];
            p_mass += target;
            q_mass += draft;
            negative |= target < 0 || draft < 0;
            total += target - draft > 0 ? target - draft : 0;
            running[v] = total;
        }
        negative |= call.draft_side.is_off(q_mass);
    } else {
        for (std::int64_t v = 0; v < size; ++v) {
            negative |= p[v] < 0;
            total += p[v];
            running[v] = total;
        }
        p_mass = total;
    }
    if (negative || call.target_side.is_off(p_mass) || !(total > 0)) return false;
    const double threshold = u * total;
    std::int64_t token = 0;
    for (std::int64_t v = 0; v < size; ++v) token += running[v] <= threshold;
    if (token == size) return false;

    std::int64_t* tokens = call.token_ids + b * (call.max_draft + 1);
    for (std::int64_t i = 0; i <= call.max_draft; ++i) {
        tokens[i] = i < tau ? drafts[i] : i == tau ? token : -1;
    }
    call.num_emitted[b] = tau + 1;
    call.status[b] = status::ok;
    return true;
}

// The function for this call's arrays, or null.
inline VerifyFew verify_few_for(const Call& call) {
    const auto lies_plain = [](const RowTable& table) {
        const std::int64_t item = itemsize(table.dtype);
        const std::int64_t odd = reinterpret_cast<std::intptr_t>(table.data) |
                                 table.batch_stride | table.position_stride;
        return table.stride == item && odd % item == 0;
    };
    const bool plain = call.vocabulary <= kFew && call.rule == Rule::token &&
                       call.validate == Validate::touched && !call.greedy &&
                       call.draft_kind == DraftLaw::Kind::dense &&
                       call.draft.size == call.vocabulary &&
                       call.draft.dtype == call.target.dtype && lies_plain(call.target) &&
                       lies_plain(call.draft);
    if (!plain) return nullptr;
    if (call.target.dtype == Dtype::float32) return verify_few<float>;
    if (call.target.dtype == Dtype::float64) return verify_few<double>;
    return nullptr;
}

}  // namespace draftproof
