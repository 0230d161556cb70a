// The laws at one context whose filters keep few tokens, over those alone: what lies between has no
// weight, and a sum in token order is the same without it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "k_seq.hpp"
#include "laws.hpp"
#include "node_laws.hpp"
#include "sibling_rules.hpp"

namespace draftproof {

enum class TreeRule { nss, target_only, naive_tree, rrs, rrsw, k_seq, hu_greedy, traversal };

class FewRows {
   public:
    // Take up the laws, of which q may have no tokens, by token; and the siblings.
    template <typename Tokens>
    void assign(const Tokens& p_law, double p_total, const Tokens& q_law, double q_total,
                const Siblings& here) {
        tokens_.clear();
        for (const auto& at : p_law) tokens_.push_back(at.token);
        for (const auto& at : q_law) tokens_.push_back(at.token);
        tokens_.insert(tokens_.end(), here.tokens, here.tokens + here.count);
        std::sort(tokens_.begin(), tokens_.end());
        tokens_.erase(std::unique(tokens_.begin(), tokens_.end()), tokens_.end());
        fill(p_law, p_total, p_);
        fill(q_law, q_total, q_);
        siblings_.clear();
        for (std::int64_t i = 0; i < here.count; ++i) {
            siblings_.push_back(place_of(here.tokens[i]));
        }
        accept_ = here.accept;
    }

    // What the rule chooses, as the reference would of the whole rows.
    Choice choose(TreeRule rule, double final, Scratch& scratch, const RowSums& sums) const {
        const Siblings here{siblings_.data(), accept_, static_cast<std::int64_t>(siblings_.size())};
        Choice choice = choose(rule, here, final, scratch, sums);
        if (choice.token >= 0) choice.token = tokens_[choice.token];
        return choice;
    }

   private:
    Choice choose(TreeRule rule, const Siblings& here, double final, Scratch& scratch,
                  const RowSums& sums) const {
        RowCheck ignored;
        const DraftLaw q{DraftLaw::Kind::dense, row(q_), nullptr, nullptr, false};
        const NodeRows rows{row(p_), &q};
        if (rule == TreeRule::nss || !here.count) {
            return nss({rows.p, nullptr}, here, final, scratch, sums, ignored);
        }
        if (rule == TreeRule::target_only) {
            return target_only({rows.p, nullptr}, here, final, scratch, sums, ignored);
        }
        if (rule == TreeRule::naive_tree) {
            return naive_tree(rows, here, final, scratch, sums, ignored);
        }
        if (rule == TreeRule::k_seq) return k_seq(rows, here, final, scratch, sums, ignored);
        bool never = false;
        ExactLaws laws(rows, scratch, sums, never);
        if (rule == TreeRule::hu_greedy) return hu_greedy(laws, here, final);
        return recursive_rejection(laws, here, rule == TreeRule::rrs, final);
    }

    static Row row(const std::vector<double>& numbers) {
        return {reinterpret_cast<const char*>(numbers.data()), sizeof(double),
                static_cast<std::int64_t>(numbers.size()), Dtype::float64};
    }

    std::int64_t place_of(std::int64_t token) const {
        return std::lower_bound(tokens_.begin(), tokens_.end(), token) - tokens_.begin();
    }

    template <typename Tokens>
    void fill(const Tokens& law, double total, std::vector<double>& row) const {
        row.assign(tokens_.size(), 0);
        for (const auto& at : law) row[place_of(at.token)] = at.weight / total;
    }

    std::vector<std::int64_t> tokens_, siblings_;
    std::vector<double> p_, q_;
    const double* accept_ = nullptr;
};

}  // namespace draftproof
