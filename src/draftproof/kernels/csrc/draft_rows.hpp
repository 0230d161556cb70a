// The drafter's laws as a call holds them: dense, mapped, sparse, or point masses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "call.hpp"
#include "judge.hpp"
#include "laws.hpp"
#include "status.hpp"

namespace draftproof {

class DraftRows {
   public:
    // `entries` is where sparse laws are gathered.
    DraftRows(const Call& call, std::vector<SparseEntry>& entries)
        : call_(call), entries_(entries) {}

    // q(x) at a drafted token.
    double entry(std::int64_t b, std::int64_t i, std::int64_t token,
                 std::int64_t drafter_id) const {
        if (call_.draft_kind == DraftLaw::Kind::point_mass) return 1;
        const Row row = call_.draft_row(b, i);
        if (call_.draft_kind == DraftLaw::Kind::sparse) {
            const std::int64_t* ids = call_.sparse_ids_row(b, i);
            double sum = 0;
            for (std::int64_t m = 0; m < row.size; ++m) {
                if (ids[m] == token) sum += row[m];
            }
            return sum;
        }
        return drafter_id < row.size ? row[drafter_id] : 0;
    }

    // The law of a row; valid until the next one is asked for.
    DraftLaw law(std::int64_t b, std::int64_t i, std::int64_t token) {
        is_suspicious_ = false;
        DraftLaw law{call_.draft_kind, {}, call_.column_of, &entries_, true};
        if (law.kind == DraftLaw::Kind::point_mass) {
            entries_.assign(1, {token, 1.0});
            return law;
        }
        law.stored = call_.draft_row(b, i);
        law.fits_float32 = law.stored.dtype != Dtype::float64;
        if (law.kind == DraftLaw::Kind::sparse) gather_entries(b, i, law);
        return law;
    }

    // Whether a sparse law asked for last needs a closer look.
    bool is_suspicious() const { return is_suspicious_; }

    std::int64_t judge(std::int64_t b, std::int64_t i) const {
        if (call_.draft_kind == DraftLaw::Kind::point_mass) return status::ok;
        const Row row = call_.draft_row(b, i);
        const std::int64_t* ids =
            call_.draft_kind == DraftLaw::Kind::sparse ? call_.sparse_ids_row(b, i) : nullptr;
        for (std::int64_t m = 0; ids && m < row.size; ++m) {
            if (ids[m] >= call_.vocabulary) return status::sparse_id_out_of_range;
        }
        return judge_row(row, call_.draft_side, ids);
    }

   private:
    // Sort a sparse row by token and merge the tokens that occur twice, in their order.
    void gather_entries(std::int64_t b, std::int64_t i, DraftLaw& law) {
        const std::int64_t* ids = call_.sparse_ids_row(b, i);
        auto& entries = entries_;
        entries.clear();
        double mass = 0;
        for (std::int64_t m = 0; m < law.stored.size; ++m) {
            if (ids[m] < 0) continue;
            const double probability = law.stored[m];
            mass += probability;
            is_suspicious_ |= ids[m] >= call_.vocabulary || !(probability >= 0);
            entries.push_back({ids[m], probability});
        }
        is_suspicious_ |= call_.draft_side.is_off(mass);
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto& a, const auto& b) { return a.token < b.token; });
        std::size_t kept = 0;
        for (std::size_t m = 0; m < entries.size(); ++m) {
            if (kept && entries[kept - 1].token == entries[m].token) {
                entries[kept - 1].probability += entries[m].probability;
                law.fits_float32 = false;
            } else {
                entries[kept++] = entries[m];
            }
        }
        entries.resize(kept);
    }

    const Call& call_;
    std::vector<SparseEntry>& entries_;
    bool is_suspicious_ = false;
};

}  // namespace draftproof
