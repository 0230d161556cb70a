// The drafter's law at one position, from logits or as probabilities, beside a target's LogitLaw.
#pragma once

#include <cstdint>
#include <vector>

#include "argmax.hpp"
#include "draft_rows.hpp"
#include "draw.hpp"
#include "logit_call.hpp"
#include "logit_filters.hpp"
#include "logit_law.hpp"

namespace draftproof {

// Temperature 0: the lowest id of the largest logit, NaN never winning; -1 if none exceeds -inf.
inline std::int64_t argmax(const LogitRow& row, Scratch& scratch, const RowSums& sums) {
    if (!row.allowed && !row.num_edits) return argmax(row.stored, scratch, sums);
    double best = -kInfinity;
    std::int64_t token = -1;
    for (std::int64_t start = 0; start < row.size; start += kBlock) {
        const int n = static_cast<int>(std::min<std::int64_t>(kBlock, row.size - start));
        row.doubles(start, n, scratch.p64);
        const double largest = sums.largest(scratch.p64, n);
        if (largest > best) {
            best = largest;
            token = start + (std::find(scratch.p64, scratch.p64 + n, largest) - scratch.p64);
        }
    }
    return token;
}

class LogitDraft {
   public:
    LogitDraft(const LogitCall& call, Scratch& scratch, LogitLaw& law, LogitFilters& filters,
               std::vector<Edit>& edits)
        : call_(call), scratch_(scratch), law_(law), filters_(filters), edits_(edits),
          rows_(call, scratch.entries) {}

    // Look at the law of draft i of row b; the status that forbids its use, or ok.
    std::int64_t look_at(std::int64_t b, std::int64_t i, std::int64_t token,
                         std::int64_t drafter_id) {
        if (!call_.drafts_have_logits) {
            b_ = b;
            i_ = i;
            token_ = token;
            entry_ = rows_.entry(b, i, token, drafter_id);
            return call_.validate == Validate::off ? status::ok
                                                   : judge_number(entry_, call_.draft_side);
        }
        if (b_ != b || i_ != i) {
            b_ = b;
            i_ = i;
            const LogitSide& side = call_.draft_logits;
            const LogitParams params = side.params(b);
            const Row stored = call_.draft_row(b, i);
            const LogitRow row = side.row(stored, is_mapped() ? stored.size : call_.vocabulary,
                                          call_.draft_index(b, i), edits_);
            fault_ = LogitLaw::Fault::none;
            if (params.temperature == 0) {
                const std::int64_t best = argmax(row, scratch_, law_.row_sums());
                if (best < 0) fault_ = LogitLaw::Fault::empty;
                law_.be_point_mass(row, best);
            } else {
                fault_ = filters_.make(law_, row, params);
            }
        }
        if (fault_ != LogitLaw::Fault::none) return status::draft_not_finite;
        entry_ = law_.probability(drafter_id);
        return status::ok;
    }
    void forget() { b_ = -1; }

    // q(x) at the draft looked at.
    double entry() const { return entry_; }
    double error() const { return call_.drafts_have_logits ? law_.error() : 0; }
    double written_error() const {
        return call_.drafts_have_logits ? law_.written_error() : 0x1p-24;
    }
    void refine() {
        if (!call_.drafts_have_logits || law_.is_exact()) return;
        law_.refine();
    }

    // Load a law of probabilities. What follows speaks of it, or of the logits' law.
    void load() {
        if (!call_.drafts_have_logits) {
            stored_ = rows_.law(b_, i_, token_);
        } else if (is_mapped()) {
            write_mapped();
        }
    }
    // Whether all but a few tokens have q = 0; the few lie in entries().
    bool is_sparse() {
        if (call_.drafts_have_logits) {
            if (!law_.is_list() || is_mapped()) return false;
            scratch_.entries.clear();
            for (const Candidate& at : law_.list()) {
                scratch_.entries.push_back({at.token, at.weight / law_.total()});
            }
            return true;
        }
        return stored_.kind == DraftLaw::Kind::point_mass ||
               stored_.kind == DraftLaw::Kind::sparse;
    }
    const std::vector<SparseEntry>& entries() const { return scratch_.entries; }

    double probability(std::int64_t token) const {
        if (is_mapped()) return mapped_[token];
        if (call_.drafts_have_logits) return law_.probability(token);
        double q;
        stored_.copy(token, 1, &q);
        return q;
    }
    template <typename T>
    void write(std::int64_t j, int n, T* out) {
        if (is_mapped()) {
            std::copy_n(mapped_.begin() + j * kLogitBlock, n, out);
        } else if (call_.drafts_have_logits) {
            law_.write(j, out);
        } else {
            stored_.copy(j * kLogitBlock, n, out);
        }
    }

    // The row that was drawn from, if it holds probabilities: sparse laws and sums within their
    // tolerance are well.
    std::int64_t judge(const RowCheck* check) {
        if (call_.drafts_have_logits || call_.validate == Validate::off ||
            stored_.kind == DraftLaw::Kind::point_mass) {
            return status::ok;
        }
        RowCheck own;
        if (stored_.kind == DraftLaw::Kind::sparse) {
            return rows_.is_suspicious() ? rows_.judge(b_, i_) : status::ok;
        }
        if (!check) {
            sum_row({stored_.stored, nullptr}, scratch_, law_.row_sums(), own);
            std::swap(own.p_mass, own.q_mass);
            check = &own;
        }
        const bool suspicious = check->sign || call_.draft_side.is_off(check->q_mass);
        return suspicious ? rows_.judge(b_, i_) : status::ok;
    }

    // Every number of a row of probabilities.
    std::int64_t judge_row() const {
        return call_.drafts_have_logits ? status::ok : rows_.judge(b_, i_);
    }

   private:
    // Logits over the drafter's own ids, some of the target's.
    bool is_mapped() const { return call_.drafts_have_logits && call_.column_of; }

    void write_mapped() {
        columns_.assign(law_.size(), 0);
        for (const Candidate& at : law_.list()) {
            if (law_.is_list()) columns_[at.token] = at.weight / law_.total();
        }
        for (std::int64_t j = 0; !law_.is_list() && j < law_.num_blocks(); ++j) {
            law_.write(j, columns_.data() + j * kLogitBlock);
        }
        mapped_.assign(call_.vocabulary, 0);
        for (std::int64_t v = 0; v < call_.vocabulary; ++v) {
            if (call_.column_of[v] >= 0) mapped_[v] = columns_[call_.column_of[v]];
        }
    }

    const LogitCall& call_;
    Scratch& scratch_;
    LogitLaw& law_;
    LogitFilters& filters_;
    std::vector<Edit>& edits_;
    DraftRows rows_;
    DraftLaw stored_{};
    LogitLaw::Fault fault_ = LogitLaw::Fault::none;
    std::int64_t b_ = -1, i_ = -1, token_ = -1;
    double entry_ = 0;
    std::vector<double> columns_, mapped_;  // a mapped law, by the drafter's ids and the target's
};

}  // namespace draftproof
