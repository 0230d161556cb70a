// The laws of trees whose rows are logits: each is made when the rule first reads it, in float64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "logit_call.hpp"
#include "logit_chain.hpp"
#include "logit_edits.hpp"
#include "logit_filters.hpp"
#include "logit_law.hpp"
#include "logit_masks.hpp"
#include "logit_row.hpp"
#include "row_maker.hpp"
#include "tree.hpp"

namespace draftproof {

// Logits by context, and what becomes of them.
struct LogitContexts {
    RowTable table;
    LogitSide params;
    EditTable edits;
    MaskTable masks;
};

// A forest that has no `draft` where its laws are logits too.
struct LogitForest : Forest {
    LogitContexts target_logits, draft_logits;
};

// One side's rows as a tree's requests see them.
class LogitContextRows {
   public:
    explicit LogitContextRows(const LogitContexts& contexts) : contexts_(contexts) {}

    void begin(std::int64_t b, const Tree& tree, std::int64_t vocabulary) {
        b_ = b;
        tree_ = &tree;
        vocabulary_ = vocabulary;
        edits_.begin(contexts_.edits, b, vocabulary);
    }

    bool changes_nothing() const {
        const MaskTable& masks = contexts_.masks;
        return !contexts_.edits.repetition && !masks.batch.data && masks.allowed.empty();
    }
    LogitParams params() const { return contexts_.params.params(b_); }

    // Valid until the next one is asked for.
    LogitRow row(std::int64_t context) {
        const Row stored = contexts_.table.row(b_, -1, context);
        path_.clear();
        for (std::int64_t at = context; at > 0; at = tree_->above(at)) {
            path_.push_back(tree_->tokens()[at - 1]);
        }
        std::reverse(path_.begin(), path_.end());
        edits_.list(stored, path_, listed_);
        return {stored, vocabulary_, contexts_.masks.row(b_, context, vocabulary_, words_),
                listed_.data(), static_cast<std::int64_t>(listed_.size())};
    }

   private:
    const LogitContexts& contexts_;
    std::int64_t b_ = 0, vocabulary_ = 0;
    const Tree* tree_ = nullptr;
    LogitEdits edits_;
    std::vector<std::int64_t> path_;
    std::vector<Edit> listed_;
    std::vector<std::uint32_t> words_;
};

// Rows by context: those read last, or all of a tree's.
class MadeRows {
   public:
    void clear(std::int64_t slots) {
        slots_.resize(slots);
        for (Slot& slot : slots_) slot.context = -1;
    }

    // `make` writes a row of so many numbers, unless it is still there.
    template <typename Make>
    Row row(std::int64_t context, std::int64_t size, Make make) {
        Slot& slot = slots_[context % static_cast<std::int64_t>(slots_.size())];
        if (slot.context != context) {
            slot.numbers.resize(size);
            make(slot.numbers.data());
            slot.context = context;
        }
        return {reinterpret_cast<const char*>(slot.numbers.data()), sizeof(double), size,
                Dtype::float64};
    }

   private:
    struct Slot {
        std::int64_t context = -1;
        std::vector<double> numbers;
    };

    std::vector<Slot> slots_;
};

class LogitTreeRows : public RowMaker {
   public:
    LogitTreeRows(const LogitForest& forest, LogitScratch& scratch)
        : forest_(forest), s_(scratch), target_(forest.target_logits),
          draft_(forest.draft_logits) {}

    // A row is valid until the next one of its side is asked for; in traversal, as long as its tree.
    void begin(std::int64_t b, const Tree& tree) override {
        b_ = b;
        is_greedy_ = forest_.greedy && forest_.greedy[b];
        target_.begin(b, tree, forest_.vocabulary);
        if (!forest_.draft.data) draft_.begin(b, tree, forest_.vocabulary);
        const std::int64_t slots = forest_.rule == TreeRule::traversal ? tree.contexts() : 1;
        targets_.clear(slots);
        drafts_.clear(slots);
    }

    Row target(std::int64_t context) override {
        if (is_greedy_ && target_.changes_nothing()) return forest_.target.row(b_, -1, context);
        return targets_.row(context, forest_.vocabulary, [&](double* out) {
            if (is_greedy_) {
                write_logits(target_.row(context), out);
            } else {
                write_law(make_target(context) ? &s_.target : nullptr, out);
            }
        });
    }

    Row draft(std::int64_t context) override {
        return drafts_.row(context, forest_.vocabulary, [&](double* out) {
            write_law(make_draft(context) ? &s_.draft : nullptr, out);
        });
    }

    // A law that was made in vain is written, for it is read next.
    const FewRows* few(std::int64_t context, const Siblings& here) override {
        const bool reads_draft = forest_.reads_draft() && here.count;
        if (reads_draft && forest_.draft.data) return nullptr;
        const bool is_p = make_target(context), p_is_few = is_p && s_.target.is_list();
        bool is_q = true, q_is_few = true;
        if (p_is_few && reads_draft) {
            is_q = make_draft(context);
            q_is_few = is_q && s_.draft.is_list();
        }
        if (p_is_few && q_is_few) {
            const auto& q = reads_draft ? s_.draft.list() : none_;
            few_.assign(s_.target.list(), s_.target.total(), q, s_.draft.total(), here);
            return &few_;
        }
        targets_.row(context, forest_.vocabulary,
                     [&](double* out) { write_law(is_p ? &s_.target : nullptr, out); });
        if (p_is_few) {
            drafts_.row(context, forest_.vocabulary,
                        [&](double* out) { write_law(is_q ? &s_.draft : nullptr, out); });
        }
        return nullptr;
    }

   private:
    static void write_logits(const LogitRow& row, double* out) {
        for (std::int64_t start = 0; start < row.size; start += kLogitBlock) {
            const std::int64_t n = std::min<std::int64_t>(kLogitBlock, row.size - start);
            row.doubles(start, static_cast<int>(n), out + start);
        }
    }

    // Whether a law could be made.
    bool make_target(std::int64_t context) {
        return s_.filters.make(s_.target, target_.row(context), target_.params()) ==
               LogitLaw::Fault::none;
    }
    bool make_draft(std::int64_t context) {
        const LogitRow row = draft_.row(context);
        if (draft_.params().temperature > 0) {
            return s_.filters.make(s_.draft, row, draft_.params()) == LogitLaw::Fault::none;
        }
        const std::int64_t best = argmax(row, s_.scratch, s_.draft.row_sums());
        s_.draft.be_point_mass(row, best);
        return best >= 0;
    }

    // NaN throughout if there is no law.
    void write_law(LogitLaw* law, double* out) const {
        if (!law) {
            std::fill_n(out, forest_.vocabulary, std::numeric_limits<double>::quiet_NaN());
        } else if (law->is_list()) {
            std::fill_n(out, law->size(), 0);
            for (const Candidate& at : law->list()) out[at.token] = at.weight / law->total();
        } else {
            write_blocks(*law, out);
        }
    }

    // The weights are summed as they are written, so that exponentials are taken once.
    static void write_blocks(LogitLaw& law, double* out) {
        double total = 0;
        for (std::int64_t j = 0; j < law.num_blocks(); ++j) {
            law.write_weights(j, out + j * kLogitBlock);
            total += law.sum(out + j * kLogitBlock, law.block_size(j));
        }
        for (std::int64_t v = 0; v < law.size(); ++v) out[v] /= total;
    }

    const LogitForest& forest_;
    LogitScratch& s_;
    LogitContextRows target_, draft_;
    std::int64_t b_ = 0;
    bool is_greedy_ = false;
    MadeRows targets_, drafts_;
    FewRows few_;
    const std::vector<Candidate> none_;
};

}  // namespace draftproof
