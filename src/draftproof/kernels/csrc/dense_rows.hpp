// Sparse draft laws of one tree, spread over the vocabulary when they are first read.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "laws.hpp"

namespace draftproof {

class DenseRows {
   public:
    // Forget the rows of the tree before; their memory serves this one.
    void clear(std::int64_t contexts) {
        used_ = 0;
        rows_.assign(contexts, Row{});
        suspicious_.assign(contexts, false);
    }

    // The law at a context. A token that is listed twice has the sum, in float64; where no token
    // is, narrow numbers stay float32.
    Row row(std::int64_t context, const Row& listed, const std::int64_t* ids,
            std::int64_t vocabulary) {
        if (!rows_[context].data) rows_[context] = spread(context, listed, ids, vocabulary);
        return rows_[context];
    }

    // Whether a row that was read needs a closer look.
    bool is_suspicious(std::int64_t context) const { return suspicious_[context]; }

   private:
    Row spread(std::int64_t context, const Row& listed, const std::int64_t* ids,
               std::int64_t vocabulary) {
        if (used_ == static_cast<std::int64_t>(slots_.size())) slots_.emplace_back();
        std::vector<char>& slot = slots_[used_++];
        for (std::int64_t m = 0; m < listed.size; ++m) {
            if (ids[m] >= 0 && (ids[m] >= vocabulary || !(listed[m] >= 0))) {
                suspicious_[context] = true;
            }
        }
        if (listed.dtype != Dtype::float64 && add<float>(slot, listed, ids, vocabulary)) {
            return {slot.data(), sizeof(float), vocabulary, Dtype::float32};
        }
        add<double>(slot, listed, ids, vocabulary);
        return {slot.data(), sizeof(double), vocabulary, Dtype::float64};
    }

    // Whether no token was met twice.
    template <typename T>
    static bool add(std::vector<char>& slot, const Row& listed, const std::int64_t* ids,
                    std::int64_t vocabulary) {
        slot.assign(vocabulary * sizeof(T), 0);
        bool once = true;
        for (std::int64_t m = 0; m < listed.size; ++m) {
            const std::int64_t id = ids[m];
            if (id < 0 || id >= vocabulary) continue;
            char* at = slot.data() + id * sizeof(T);
            const T before = load<T>(at), after = static_cast<T>(before + listed[m]);
            once &= before == 0;
            std::memcpy(at, &after, sizeof after);
        }
        return once;
    }

    std::vector<std::vector<char>> slots_;
    std::int64_t used_ = 0;
    std::vector<Row> rows_;
    std::vector<bool> suspicious_;
};

}  // namespace draftproof
