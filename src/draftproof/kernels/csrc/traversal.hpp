// Traversal verification, from the leaves up: draftproof.reference.traversal.
#pragma once

#include <cstdint>
#include <vector>

#include "node_laws.hpp"
#include "tree_shape.hpp"

namespace draftproof {

// `laws` holds those of each context, and is left as the rule has changed them. Whoever certifies
// its decisions stops at a doubt, with the emission in no state.
template <typename Laws>
void traverse(const Tree& tree, std::vector<Laws>& laws, double final, const bool& doubt,
              TreeEmission& out) {
    struct Level {
        std::int64_t context, tried;
        double accept;
    };
    out.clear();
    std::vector<Level> levels{{0, 0, 0}};
    while (!doubt) {
        while (levels.back().tried < tree.children(levels.back().context).count) {
            Level& above = levels.back();
            const Siblings children = tree.children(above.context);
            const std::int64_t child = above.tried++, node = tree.node(above.context, child);
            laws[node + 1].enter(laws[above.context].weight_of(children.tokens[child]));
            out.path.push_back(node);
            out.zero_residual = false;
            levels.push_back({node + 1, 0, children.accept[child]});
        }
        const Level leaf = levels.back();
        if (out.path.empty() || laws[leaf.context].passes(leaf.accept)) {
            out.last_token = laws[leaf.context].draw(final).token;
            return;
        }
        const std::int64_t x = tree.tokens()[out.path.back()];
        out.path.pop_back();
        levels.pop_back();
        out.zero_residual = !laws[levels.back().context].reject(x, false);
    }
}

}  // namespace draftproof
