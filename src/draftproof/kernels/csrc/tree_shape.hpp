// One tree of drafts: each context's children in draw order. Context 0 is the root, n + 1 node n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sibling_rules.hpp"

namespace draftproof {

class Tree {
   public:
    // Copied before it is judged, for another thread may write to the caller's arrays meanwhile: a
    // node whose parent is none of those before it is nobody's child. `order` may be null.
    void assign(std::int64_t n, const std::int64_t* tokens, const std::int64_t* parents,
                const std::int64_t* order, const double* accept) {
        tokens_.assign(tokens, tokens + n);
        parents_.assign(parents, parents + n);
        in_order_.resize(n);
        std::iota(in_order_.begin(), in_order_.end(), std::int64_t{0});
        if (order) {
            std::stable_sort(in_order_.begin(), in_order_.end(),
                             [order](auto a, auto b) { return order[a] < order[b]; });
        }
        first_.assign(n + 2, 0);
        for (std::int64_t node = 0; node < n; ++node) {
            if (has_parent(node)) ++first_[parents_[node] + 2];
        }
        std::partial_sum(first_.begin(), first_.end(), first_.begin());
        free_.assign(first_.begin(), first_.end());
        nodes_.assign(n, -1);
        child_tokens_.resize(n);
        child_accept_.resize(n);
        for (const std::int64_t node : in_order_) {
            if (!has_parent(node)) continue;
            const std::int64_t place = free_[parents_[node] + 1]++;
            nodes_[place] = node;
            child_tokens_[place] = tokens_[node];
            child_accept_[place] = accept[node];
        }
    }

    std::int64_t contexts() const { return static_cast<std::int64_t>(tokens_.size()) + 1; }
    const std::vector<std::int64_t>& tokens() const { return tokens_; }

    // The context above one, the root's being no context.
    std::int64_t above(std::int64_t context) const {
        if (context == 0) return -1;
        return has_parent(context - 1) ? parents_[context - 1] + 1 : 0;
    }

    Siblings children(std::int64_t context) const {
        const std::int64_t from = first_[context];
        return {child_tokens_.data() + from, child_accept_.data() + from,
                first_[context + 1] - from};
    }
    std::int64_t node(std::int64_t context, std::int64_t child) const {
        return nodes_[first_[context] + child];
    }

   private:
    bool has_parent(std::int64_t node) const {
        return parents_[node] >= -1 && parents_[node] < node;
    }

    std::vector<std::int64_t> tokens_, parents_, in_order_;
    std::vector<std::int64_t> first_, free_;  // by context: where its children begin
    std::vector<std::int64_t> nodes_, child_tokens_;
    std::vector<double> child_accept_;
};

// What one tree emits: the tokens of the nodes on the path, then the last one, or none if it is -1.
struct TreeEmission {
    std::vector<std::int64_t> path;
    std::int64_t last_token = -1;
    bool zero_residual = false;

    void clear() {
        path.clear();
        last_token = -1;
        zero_residual = false;
    }
};

}  // namespace draftproof
