// The rules for the children of one node, as in draftproof.reference.siblings: which child to
// enter, or which token to stop with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "draw.hpp"
#include "laws.hpp"
#include "node_laws.hpp"

namespace draftproof {

// Tokens of one node's children in draw order, and a uniform for each.
struct Siblings {
    const std::int64_t* tokens;
    const double* accept;
    std::int64_t count;

    // The first one that has the token, or -1.
    std::int64_t find(std::int64_t token) const {
        const std::int64_t* at = std::find(tokens, tokens + count, token);
        return at == tokens + count ? -1 : at - tokens;
    }
};

// Enter a sibling, or stop with a token if it is -1; a token of -1 is none.
struct Choice {
    std::int64_t sibling;
    std::int64_t token;
    bool zero_residual = false;
};

// Draw a token and enter the sibling that has it. `check` receives what was seen of p.
inline Choice nss(NodeRows rows, const Siblings& siblings, double final, Scratch& scratch,
                  const RowSums& sums, RowCheck& check) {
    const double u = siblings.count ? siblings.accept[0] : final;
    const Drawn drawn = draw({rows.p, nullptr}, u, scratch, sums, check);
    return {siblings.find(drawn.token), drawn.token};
}

// Draw from p less q, or from p where that has no mass.
inline Choice recover(NodeRows rows, double u, Scratch& scratch, const RowSums& sums,
                      RowCheck& check) {
    Drawn drawn = draw({rows.p, rows.q}, u, scratch, sums, check);
    if (drawn.total != 0) return {-1, drawn.token};
    drawn = draw({rows.p, nullptr}, u, scratch, sums, check = {});
    return {-1, drawn.token, true};
}

// p off the siblings is p less a law that has as much as p there.
inline Choice target_only(NodeRows rows, const Siblings& siblings, double final, Scratch& scratch,
                          const RowSums& sums, RowCheck& check) {
    auto& entries = scratch.entries;
    entries.clear();
    double reached = 0;
    for (std::int64_t i = 0; i < siblings.count; ++i) {
        const std::int64_t x = siblings.tokens[i];
        if (siblings.find(x) < i) continue;
        reached += rows.p[x];
        if (siblings.accept[0] < reached) return {i, x};
        entries.push_back({x, rows.p[x]});
    }
    std::sort(entries.begin(), entries.end(),
              [](const SparseEntry& a, const SparseEntry& b) { return a.token < b.token; });
    const bool narrow = rows.p.dtype != Dtype::float64;
    const DraftLaw siblings_law{DraftLaw::Kind::sparse, {}, nullptr, &entries, narrow};
    const Choice choice =
        recover({rows.p, siblings.count ? &siblings_law : nullptr}, final, scratch, sums, check);
    return std::isfinite(check.p_mass) ? choice : Choice{-1, -1};  // a difference hides NaN
}

// The token rule for the first sibling; another one may be hit by chance.
inline Choice naive_tree(NodeRows rows, const Siblings& siblings, double final, Scratch& scratch,
                         const RowSums& sums, RowCheck& check) {
    const std::int64_t x = siblings.tokens[0];
    if (token_accepts(rows.p[x], rows.q->stored[x], siblings.accept[0])) return {0, x};
    const double u = siblings.count > 1 ? siblings.accept[1] : final;
    Choice choice = recover(rows, u, scratch, sums, check);
    choice.sibling = siblings.find(choice.token);
    return choice;
}

// Test the siblings in turn. With replacement q stays; else a rejected token that comes again is
// skipped, and nothing can have been drawn where q has no mass left.
template <typename Laws>
Choice recursive_rejection(Laws& laws, const Siblings& siblings, bool replaced, double final) {
    const std::int64_t* tokens = siblings.tokens;
    bool rejected = false;
    for (std::int64_t i = 0; i < siblings.count; ++i) {
        const std::int64_t x = tokens[i];
        if (!replaced && std::find(tokens, tokens + i, x) != tokens + i) continue;
        if (!replaced && rejected && !laws.has_draft_mass()) break;
        if (laws.accepts(x, siblings.accept[i])) return {i, x};
        if (!laws.reject(x, replaced)) return {-1, laws.draw(final).token, true};
        rejected = true;
    }
    return {-1, laws.draw(final).token};
}

// The last sibling was drawn off the others, which are certain.
inline Choice hu_greedy(ExactLaws& laws, const Siblings& siblings, double final) {
    const std::int64_t certain = siblings.count - 1, x = siblings.tokens[certain];
    laws.remove(siblings.tokens, certain);
    if (laws.accepts(x, siblings.accept[certain])) return {certain, x};
    const double u = certain ? siblings.accept[0] : final;
    Drawn drawn = laws.draw_residual(u);
    const bool is_zero = drawn.total == 0;
    if (is_zero) drawn = laws.draw(u);
    return {Siblings{siblings.tokens, nullptr, certain}.find(drawn.token), drawn.token, is_zero};
}

}  // namespace draftproof
