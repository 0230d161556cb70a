// Rows of a tree's laws that are made when they are read.
#pragma once

#include <cstdint>

#include "few_rows.hpp"
#include "laws.hpp"
#include "sibling_rules.hpp"
#include "tree_shape.hpp"

namespace draftproof {

class RowMaker {
   public:
    virtual ~RowMaker() = default;

    // Speak of the tree of row b from here on; the rows of the one before are gone.
    virtual void begin(std::int64_t b, const Tree& tree) = 0;

    // Valid as long as its maker says. The target's row of a greedy request is not summed.
    virtual Row target(std::int64_t context) = 0;
    virtual Row draft(std::int64_t context) = 0;

    // What a rule reads at a context, if that is little; else null. Valid until the next one.
    virtual const FewRows* few(std::int64_t context, const Siblings& here) = 0;
};

}  // namespace draftproof
