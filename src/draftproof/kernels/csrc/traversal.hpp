// Traversal verification, from the leaves up: draftproof.reference.traversal.
#pragma once

#include <cstdint>
#include <vector>

#include "node_laws.hpp"
#include "tree_shape.hpp"

namespace draftproof {

// What is left of w where a child was rejected and left so much residual.
inline double weight_without(double w, double left) { return w < 1 ? left / (left + (1 - w)) : w; }
inline Bounded weight_without(Bounded w, Bounded left) {
    if (w.is(0) || w.is(1)) return w;
    return left / (left + (Bounded{1} - w));
}

// `laws` holds those of each context, and is left as the rule has changed them. Whoever certifies
// its decisions stops at a doubt, with the emission in no state.
template <typename Laws>
void traverse(const Tree& tree, std::vector<Laws>& laws, double final, const bool& doubt,
              TreeEmission& out) {
    struct Level {
        std::int64_t context, tried;
        typename Laws::Number w;
        double accept;
    };
    using Number = typename Laws::Number;
    out.clear();
    std::vector<Level> levels{{0, 0, Number{1}, 0}};
    while (!doubt) {
        while (levels.back().tried < tree.children(levels.back().context).count) {
            Level& above = levels.back();
            const Siblings children = tree.children(above.context);
            const std::int64_t child = above.tried++, node = tree.node(above.context, child);
            const Number w = laws[above.context].weight_after(above.w, children.tokens[child]);
            out.path.push_back(node);
            out.zero_residual = false;
            levels.push_back({node + 1, 0, w, children.accept[child]});
        }
        const Level leaf = levels.back();
        if (out.path.empty() || laws[leaf.context].passes(leaf.accept, leaf.w)) {
            out.last_token = laws[leaf.context].draw(final).token;
            return;
        }
        const std::int64_t x = tree.tokens()[out.path.back()];
        out.path.pop_back();
        levels.pop_back();
        Level& above = levels.back();
        const Number left = laws[above.context].reject(above.w, x, false);
        out.zero_residual = !Laws::is_positive(left);
        above.w = weight_without(above.w, left);
    }
}

}  // namespace draftproof
