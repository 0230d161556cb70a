// Verification of one row's tree of drafts: draftproof.reference.tree and .traversal, lazily.
//
// From the root down only the rows at the nodes of the path are read, once for each rejection there
// and once for the last draw. What is read is judged on the way (draftproof.trees.faults says what,
// and in which order). Traversal, whose faults are those of every row, reads them all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "argmax.hpp"
#include "dense_rows.hpp"
#include "draw.hpp"
#include "few_rows.hpp"
#include "judge.hpp"
#include "k_seq.hpp"
#include "laws.hpp"
#include "node_laws.hpp"
#include "row_maker.hpp"
#include "row_sums.hpp"
#include "sibling_rules.hpp"
#include "status.hpp"
#include "traversal.hpp"
#include "tree_shape.hpp"

namespace draftproof {

// One call's arrays: B trees of up to N nodes. Context 0 is a tree's root, context n + 1 its node n.
struct Forest {
    TreeRule rule;
    Validate validate;
    Side target_side, draft_side;
    bool siblings_differ;  // their draws say so
    std::int64_t size, max_nodes, max_depth, vocabulary;
    const std::int64_t *num_nodes, *node_tokens, *parents;
    const std::int64_t* draw_order;  // null for the order of their numbers
    RowTable target, draft;          // rows by context
    const std::int64_t* sparse_ids;  // beside draft's rows; null if they are dense
    const double *accept, *final;
    const bool* greedy;  // null if no row is
    std::int64_t *path, *token_ids, *num_emitted, *status;

    bool reads_draft() const {
        return rule != TreeRule::nss && rule != TreeRule::target_only;
    }
};

// Verifies trees one at a time; one for each thread.
class TreeVerifier {
   public:
    // `maker` makes the target's rows, and the draft's if the forest has none; null without logits.
    TreeVerifier(const Forest& forest, Scratch& scratch, RowMaker* maker = nullptr)
        : forest_(forest), scratch_(scratch), sums_(*best_instruction_set().sums),
          maker_(maker) {}

    void verify(std::int64_t b) {
        b_ = b;
        const std::int64_t D = forest_.max_depth;
        if (b == next_b_) {
            std::swap(tree_, next_);
        } else {
            assign(tree_, b);
        }
        look_ahead(b + 1);
        if (maker_) maker_->begin(b, tree_);
        if (forest_.sparse_ids) dense_.clear(tree_.contexts());
        std::int64_t *path = forest_.path + b * D, *tokens = forest_.token_ids + b * (D + 1);
        std::fill_n(path, D, std::int64_t{-1});
        std::fill_n(tokens, D + 1, std::int64_t{-1});
        emission_.clear();
        const std::int64_t fault = emit();
        const auto depth = static_cast<std::int64_t>(emission_.path.size());
        const bool emits = !fault && depth <= D;
        forest_.status[b] = fault                     ? fault
                            : emission_.zero_residual ? status::zero_residual
                                                      : status::ok;
        forest_.num_emitted[b] = emits ? depth + 1 : 0;
        if (!emits) return;
        std::copy(emission_.path.begin(), emission_.path.end(), path);
        for (std::int64_t i = 0; i < depth; ++i) tokens[i] = tree_.tokens()[path[i]];
        tokens[depth] = emission_.last_token;
    }

   private:
    void assign(Tree& tree, std::int64_t b) const {
        const std::int64_t first = b * forest_.max_nodes;
        const std::int64_t* order = forest_.draw_order;
        tree.assign(std::clamp<std::int64_t>(forest_.num_nodes[b], 0, forest_.max_nodes),
                    forest_.node_tokens + first, forest_.parents + first,
                    order ? order + first : nullptr, forest_.accept + first);
    }

    // Find the rows that tree b will read first: those where its first sibling is rejected.
    void look_ahead(std::int64_t b) {
        scratch_.ahead = {};
        const bool repeats = forest_.rule == TreeRule::rrs || forest_.rule == TreeRule::rrsw ||
                             forest_.rule == TreeRule::k_seq;
        if (!repeats || b >= forest_.size || maker_ || forest_.sparse_ids) return;
        assign(next_, next_b_ = b);
        for (std::int64_t context = 0;;) {
            const Siblings here = next_.children(context);
            const Row p = forest_.target.row(b, -1, context);
            const Row q = here.count ? forest_.draft.row(b, -1, context) : p;
            const std::int64_t x = here.count ? here.tokens[0] : -1;
            if (forest_.rule != TreeRule::k_seq && x >= 0 && x < forest_.vocabulary &&
                token_accepts(p[x], q[x], here.accept[0])) {
                context = next_.node(context, 0) + 1;
                continue;
            }
            scratch_.ahead = {p.data, q.data, p.size * itemsize(p.dtype) / 2, 0};
            return;
        }
    }

    Row target_row(std::int64_t context) const {
        return maker_ ? maker_->target(context) : forest_.target.row(b_, -1, context);
    }
    Row stored_draft_row(std::int64_t context) const {
        return forest_.draft.data ? forest_.draft.row(b_, -1, context) : maker_->draft(context);
    }
    const std::int64_t* sparse_ids(std::int64_t context) const {
        const std::int64_t place = b_ * (forest_.max_nodes + 1) + context;
        return forest_.sparse_ids ? forest_.sparse_ids + place * forest_.draft.size : nullptr;
    }
    Row draft_row(std::int64_t context) const {
        const Row stored = stored_draft_row(context);
        if (!forest_.sparse_ids) return stored;
        return dense_.row(context, stored, sparse_ids(context), forest_.vocabulary);
    }
    // Read at contexts with children alone. Summed without a float32 rounding unless it is to be
    // `narrow`.
    DraftLaw draft_law(std::int64_t context, bool narrow = false) const {
        const Row q = tree_.children(context).count ? draft_row(context) : Row{};
        return {DraftLaw::Kind::dense, q, nullptr, nullptr, narrow && q.dtype != Dtype::float64};
    }

    bool is_greedy() const { return forest_.greedy && forest_.greedy[b_]; }

    std::int64_t emit() {
        for (const std::int64_t token : tree_.tokens()) {
            if (token < 0 || token >= forest_.vocabulary) return status::token_out_of_range;
        }
        const bool judged = forest_.validate != Validate::off;
        std::int64_t fault = status::ok;
        if (judged && forest_.siblings_differ) fault = judge_siblings();
        if (!fault && forest_.validate == Validate::full) fault = judge_every_number();
        if (fault) return fault;
        if (is_greedy()) return match_greedy();
        fault = verify_sampled(judged);
        if (fault || emission_.last_token >= 0) return fault;
        if (!judged) fault = verify_sampled(true);
        return fault ? fault : forest_.target_side.mass;
    }

    std::int64_t verify_sampled(bool judged) {
        return forest_.rule == TreeRule::traversal ? go_up(judged) : go_down(judged);
    }

    std::int64_t match_greedy() {
        for (std::int64_t context = 0;;) {
            const std::int64_t best = argmax(target_row(context), scratch_, sums_);
            if (best < 0) return status::target_not_finite;
            const std::int64_t child = tree_.children(context).find(best);
            emission_.last_token = best;
            if (child < 0) return status::ok;
            context = enter(context, child);
        }
    }

    std::int64_t enter(std::int64_t context, std::int64_t child) {
        emission_.path.push_back(tree_.node(context, child));
        return emission_.path.back() + 1;
    }

    std::int64_t go_down(bool judged) {
        emission_.clear();
        for (std::int64_t context = 0;;) {
            const Siblings here = tree_.children(context);
            std::int64_t fault = judged ? judge_uniforms(here) : status::ok;
            if (fault) return fault;
            seen_ = {};
            const FewRows* few = maker_ ? maker_->few(context, here) : nullptr;
            const Choice choice = few ? choose_among(*few) : choose(context, here);
            emission_.zero_residual |= choice.zero_residual;
            if (judged && here.count && !few) fault = judge_node(context, here, choice);
            if (fault) return fault;
            if (choice.sibling >= 0) {
                context = enter(context, choice.sibling);
                continue;
            }
            emission_.last_token = choice.token;
            if (!judged) return status::ok;
            if (!is_uniform(forest_.final[b_])) return status::uniform_out_of_range;
            return judge_target(context);
        }
    }

    // Laws of which filters have kept few tokens are well.
    Choice choose_among(const FewRows& few) {
        seen_.p_mass = 1;
        return few.choose(forest_.rule, forest_.final[b_], scratch_, sums_);
    }

    Choice choose(std::int64_t context, const Siblings& here) {
        const double final = forest_.final[b_];
        const Row p = target_row(context);
        if (forest_.rule == TreeRule::nss || !here.count) {
            return nss({p, nullptr}, here, final, scratch_, sums_, seen_);
        }
        if (forest_.rule == TreeRule::target_only) {
            return target_only({p, nullptr}, here, final, scratch_, sums_, seen_);
        }
        if (forest_.rule == TreeRule::naive_tree) {
            const DraftLaw q = draft_law(context, true);
            return naive_tree({p, &q}, here, final, scratch_, sums_, seen_);
        }
        if (forest_.rule == TreeRule::k_seq) {
            const DraftLaw q = draft_law(context, true);
            return k_seq({p, &q}, here, final, scratch_, sums_, seen_);
        }
        bool doubt = true;
        for (const bool narrow : {true, false}) {
            if (!certifies(narrow)) continue;
            const DraftLaw q = draft_law(context, narrow);
            CertifiedLaws laws({p, &q}, scratch_, sums_, doubt = false);
            const Choice choice = recursive_rejection(laws, here, replaced(), final);
            if (doubt) continue;
            seen_ = laws.check();
            return choice;
        }
        seen_.sign = true;  // not seen at all: to be judged
        const DraftLaw q = draft_law(context);
        ExactLaws laws({p, &q}, scratch_, sums_, doubt);
        if (forest_.rule == TreeRule::hu_greedy) return hu_greedy(laws, here, final);
        return recursive_rejection(laws, here, replaced(), final);
    }

    // Whether decisions may be certified from block sums, of float32 if they are to be `narrow`.
    bool certifies(bool narrow) const {
        return forest_.rule != TreeRule::hu_greedy && forest_.vocabulary > kFew &&
               !(narrow && forest_.draft.dtype == Dtype::float64);
    }

    bool replaced() const { return forest_.rule == TreeRule::rrs; }

    std::int64_t go_up(bool judged) {
        bool doubt = true, suspicious = true;
        for (const bool narrow : {true, false}) {
            if (!doubt || !certifies(narrow)) continue;
            auto laws = laws_by_context<CertifiedLaws>(narrow, doubt = false);
            traverse(tree_, laws, forest_.final[b_], doubt, emission_);
            suspicious = doubt || is_any_suspicious(laws);
        }
        if (judged && suspicious) {
            const std::int64_t fault = judge_every_row();
            if (fault) return fault;
        }
        if (doubt) {
            auto laws = laws_by_context<ExactLaws>(false, doubt = false);
            traverse(tree_, laws, forest_.final[b_], doubt, emission_);
        }
        if (!judged) return status::ok;
        std::int64_t fault = judge_uniforms(tree_.children(0));
        for (const std::int64_t node : emission_.path) {
            if (!fault) fault = judge_uniforms(tree_.children(node + 1));
        }
        if (fault) return fault;
        return is_uniform(forest_.final[b_]) ? status::ok : status::uniform_out_of_range;
    }

    template <typename Laws>
    std::vector<Laws> laws_by_context(bool narrow, bool& doubt) {
        draft_laws_.clear();
        for (std::int64_t c = 0; c < tree_.contexts(); ++c) {
            draft_laws_.push_back(draft_law(c, narrow));
        }
        std::vector<Laws> laws;
        laws.reserve(tree_.contexts());
        for (std::int64_t c = 0; c < tree_.contexts(); ++c) {
            laws.emplace_back(NodeRows{target_row(c), &draft_laws_[c]}, scratch_, sums_, doubt);
        }
        return laws;
    }

    bool is_any_suspicious(const std::vector<CertifiedLaws>& laws) {
        for (std::int64_t c = 0; c < tree_.contexts(); ++c) {
            const bool has_children = tree_.children(c).count > 0;
            RowCheck seen = laws[c].check();
            if (!laws[c].has_read_rows()) {
                seen = {};
                sum_row({target_row(c), nullptr}, scratch_, sums_, seen);
                if (has_children) {
                    RowCheck draft;
                    sum_row({draft_row(c), nullptr}, scratch_, sums_, draft);
                    seen.sign |= draft.sign;
                    seen.q_mass = draft.p_mass;
                }
            }
            if (seen.sign || forest_.target_side.is_off(seen.p_mass) ||
                (has_children && is_draft_suspicious(c)) ||
                (has_children && forest_.draft_side.is_off(seen.q_mass))) {
                return true;
            }
        }
        return false;
    }

    std::int64_t judge_uniforms(const Siblings& here) const {
        const bool good = std::all_of(here.accept, here.accept + here.count, is_uniform);
        return good ? status::ok : status::uniform_out_of_range;
    }

    std::int64_t judge_entries(std::int64_t context, std::int64_t token) const {
        std::int64_t fault = judge_number(target_row(context)[token], forest_.target_side);
        if (!fault && forest_.reads_draft()) {
            fault = judge_number(draft_row(context)[token], forest_.draft_side);
        }
        return fault;
    }

    // The whole rows, if what was seen of them is suspicious.
    std::int64_t judge_target(std::int64_t context) const {
        const bool suspicious = seen_.sign || forest_.target_side.is_off(seen_.p_mass);
        return suspicious ? judge_row(target_row(context), forest_.target_side) : status::ok;
    }
    std::int64_t judge_draft(std::int64_t context) const {
        const bool suspicious = seen_.sign || forest_.draft_side.is_off(seen_.q_mass) ||
                                is_draft_suspicious(context);
        return suspicious ? judge_draft_row(context) : status::ok;
    }
    bool is_draft_suspicious(std::int64_t context) const {
        return forest_.sparse_ids && dense_.is_suspicious(context);
    }
    std::int64_t judge_draft_row(std::int64_t context) const {
        const Row row = stored_draft_row(context);
        const std::int64_t* ids = sparse_ids(context);
        for (std::int64_t m = 0; ids && m < row.size; ++m) {
            if (ids[m] >= forest_.vocabulary) return status::sparse_id_out_of_range;
        }
        return judge_row(row, forest_.draft_side, ids);
    }
    std::int64_t judge_rows(std::int64_t context) const {
        const std::int64_t fault = judge_target(context);
        return fault ? fault : judge_draft(context);
    }

    // What the rule read at a node with children.
    std::int64_t judge_node(std::int64_t context, const Siblings& here, Choice choice) const {
        if (forest_.rule == TreeRule::nss) return judge_target(context);
        if (forest_.rule == TreeRule::k_seq) return judge_rows(context);
        std::int64_t first = 0, last = 0;
        if (forest_.rule == TreeRule::hu_greedy) first = last = here.count - 1;
        if (forest_.rule == TreeRule::target_only) {
            last = choice.sibling < 0 ? here.count - 1 : choice.sibling;
        }
        std::int64_t fault = status::ok;
        for (std::int64_t i = first; !fault && i <= last; ++i) {
            fault = judge_entries(context, here.tokens[i]);
        }
        if (!fault && forest_.rule == TreeRule::hu_greedy) fault = judge_draft(context);
        const bool entered = choice.sibling == first;
        if (!fault && forest_.reads_draft() && !entered) fault = judge_rows(context);
        return fault;
    }

    std::int64_t judge_siblings() const {
        for (std::int64_t context = 0; context < tree_.contexts(); ++context) {
            const Siblings here = tree_.children(context);
            for (std::int64_t i = 0; i < here.count; ++i) {
                if (here.find(here.tokens[i]) < i) return status::sibling_repeated;
            }
        }
        return status::ok;
    }

    // Of a greedy request's logits, which are no law, one has to exceed -inf.
    std::int64_t judge_whole_target(std::int64_t context) const {
        const Row row = target_row(context);
        if (!maker_ || !is_greedy()) return judge_row(row, forest_.target_side);
        return argmax(row, scratch_, sums_) < 0 ? status::target_not_finite : status::ok;
    }

    std::int64_t judge_every_number() const {
        for (std::int64_t context = 0; context < tree_.contexts(); ++context) {
            const Siblings here = tree_.children(context);
            std::int64_t fault = judge_whole_target(context);
            if (!fault && here.count && forest_.reads_draft()) {
                fault = judge_draft_row(context);
                for (std::int64_t i = 0; !fault && i < here.count; ++i) {
                    if (draft_row(context)[here.tokens[i]] == 0) fault = status::draft_zero;
                }
            }
            if (fault) return fault;
        }
        return status::ok;
    }

    std::int64_t judge_every_row() const {
        for (std::int64_t context = 0; context < tree_.contexts(); ++context) {
            std::int64_t fault = judge_row(target_row(context), forest_.target_side);
            if (!fault && tree_.children(context).count) {
                fault = judge_draft_row(context);
            }
            if (fault) return fault;
        }
        return status::ok;
    }

    const Forest& forest_;
    Scratch& scratch_;
    const RowSums& sums_;
    RowMaker* maker_;
    std::int64_t b_ = 0;
    Tree tree_, next_;  // of rows b_ and next_b_
    std::int64_t next_b_ = -1;
    mutable DenseRows dense_;  // of sparse draft laws
    TreeEmission emission_;
    std::vector<DraftLaw> draft_laws_;  // by context
    RowCheck seen_;                     // of the rows at the node that was read last
};

}  // namespace draftproof
