// Bias, penalties and banned ends of one context: draftproof.logits.edits, number for number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "laws.hpp"
#include "logit_row.hpp"

namespace draftproof {

// By request: what changes its logits. A text is a prompt and, behind it, what was emitted.
struct EditTable {
    const double *repetition = nullptr, *presence, *frequency;  // all null: no request has edits
    const std::int64_t *window;                                 // of the text; negative for all
    const std::int64_t *min_tokens, *prompt_sizes;
    const bool *bias_comes_last, *repetition_sees_prompt, *additive_sees_prompt;
    const std::int64_t *text_from, *texts;
    const std::int64_t *bias_from, *bias_ids;  // ascending
    const double* biases;
    const std::int64_t *ends_from, *ends;
};

class LogitEdits {
   public:
    void begin(const EditTable& table, std::int64_t b, std::int64_t vocabulary) {
        table_ = &table;
        b_ = b;
        own_.clear();
        if (!table.repetition) return;
        const std::int64_t first = table.text_from[b];
        size_ = table.text_from[b + 1] - first;
        const bool additive = table.presence[b] != 0 || table.frequency[b] != 0;
        penalises_ = additive || table.repetition[b] != 1;
        for (std::int64_t i = 0; penalises_ && i < size_; ++i) {
            own_.push_back({table.texts[first + i], i, Kind::text, 0});
        }
        for (std::int64_t i = table.bias_from[b]; i < table.bias_from[b + 1]; ++i) {
            own_.push_back({table.bias_ids[i], 0, Kind::bias, table.biases[i]});
        }
        for (std::int64_t i = table.ends_from[b]; i < table.ends_from[b + 1]; ++i) {
            own_.push_back({table.ends[i], 0, Kind::end, 0});
        }
        // Judged as copies: another thread may write to the caller's arrays meanwhile.
        const auto outside = [vocabulary](const Mention& mention) {
            return mention.token < 0 || mention.token >= vocabulary;
        };
        own_.erase(std::remove_if(own_.begin(), own_.end(), outside), own_.end());
        std::sort(own_.begin(), own_.end(), by_token);
    }

    // What becomes of a row behind these drafts.
    void list(const Row& stored, const std::vector<std::int64_t>& drafts,
              std::vector<Edit>& edits) {
        edits.clear();
        if (!table_->repetition) return;
        drafted_.clear();
        const auto count = static_cast<std::int64_t>(drafts.size());
        for (std::int64_t i = 0; penalises_ && i < count; ++i) {
            drafted_.push_back({drafts[i], size_ + i, Kind::text, 0});
        }
        std::sort(drafted_.begin(), drafted_.end(), by_token);
        all_.resize(own_.size() + drafted_.size());
        std::merge(own_.begin(), own_.end(), drafted_.begin(), drafted_.end(), all_.begin(),
                   by_token);
        const std::int64_t prompt = table_->prompt_sizes[b_], text = size_ + count,
                           window = table_->window[b_];
        const std::int64_t beyond = window < 0 ? 0 : std::max<std::int64_t>(0, text - window);
        repeated_from_ = table_->repetition_sees_prompt[b_] ? beyond : std::max(beyond, prompt);
        counted_from_ = table_->additive_sees_prompt[b_] ? beyond : std::max(beyond, prompt);
        may_end_ = text - prompt >= table_->min_tokens[b_];
        for (auto at = all_.cbegin(); at != all_.cend();) {
            const std::int64_t token = at->token;
            const Marks marks = gather(at);
            if (marks.any()) edits.push_back({token, edited(stored[token], marks)});
        }
    }

   private:
    enum class Kind { text, bias, end };
    struct Mention {
        std::int64_t token, position;
        Kind kind;
        double bias;
    };
    // What is to be done to one token.
    struct Marks {
        bool repeated = false, biased = false, banned = false;
        double count = 0, bias = 0;

        bool any() const { return repeated || biased || banned || count > 0; }
    };

    static bool by_token(const Mention& a, const Mention& b) { return a.token < b.token; }

    Marks gather(std::vector<Mention>::const_iterator& at) const {
        Marks marks;
        const std::int64_t token = at->token;
        for (; at != all_.end() && at->token == token; ++at) {
            if (at->kind == Kind::bias) {
                marks.biased = true;
                marks.bias = at->bias;
            } else if (at->kind == Kind::end) {
                marks.banned |= !may_end_;
            } else {
                marks.repeated |= at->position >= repeated_from_;
                marks.count += at->position >= counted_from_;
            }
        }
        return marks;
    }

    double edited(double z, const Marks& marks) const {
        const auto bias = [&] {
            if (marks.biased) z += marks.bias;
        };
        const auto repetition = [&] {
            const double penalty = table_->repetition[b_];
            if (marks.repeated && penalty != 1) z = z > 0 ? z / penalty : z * penalty;
        };
        const auto additive = [&] {
            if (marks.count > 0) z -= table_->presence[b_] + table_->frequency[b_] * marks.count;
        };
        if (table_->bias_comes_last[b_]) {
            additive(), repetition(), bias();
        } else {
            bias(), repetition(), additive();
        }
        return marks.banned ? -kInfinity : z;
    }

    const EditTable* table_ = nullptr;
    std::int64_t b_ = 0, size_ = 0;
    bool penalises_ = false, may_end_ = true;
    std::int64_t repeated_from_ = 0, counted_from_ = 0;
    std::vector<Mention> own_, drafted_, all_;  // by token: a request's, its drafts', both
};

}  // namespace draftproof
