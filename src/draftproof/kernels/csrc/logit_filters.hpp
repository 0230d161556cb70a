// top-k, top-p, min-p and typical: draftproof.reference.processing without a sort of the row.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "kept.hpp"
#include "logit_law.hpp"
#include "nucleus.hpp"

namespace draftproof {

// In the order of draftproof.logits.order.Filters.
enum class Filters { sequential, min_p_first, joint, temperature_last };

struct LogitParams {
    double temperature;  // 0: greedy
    std::int64_t top_k;  // 0: off
    double top_p;        // 1: off
    double min_p;        // 0: off
    double typical_p;    // 1: off
    Filters filters;
    bool top_k_keeps_ties, mass_keeps_ties;

    bool filter() const { return top_k > 0 || top_p < 1 || min_p > 0 || typical_p < 1; }
};

// Filters one row after another; one for each thread.
class LogitFilters {
   public:
    // Make `law` the law of the row, with all its parameters but temperature 0.
    LogitLaw::Fault make(LogitLaw& law, const LogitRow& row, const LogitParams& params) {
        const bool last = params.filters == Filters::temperature_last && params.filter();
        law_ = &law;
        params_ = params;
        temperature_ = last ? 1 : params.temperature;
        const LogitLaw::Fault fault = law.look_at(row, temperature_);
        if (fault != LogitLaw::Fault::none || !params.filter()) return fault;
        kept_ = {};
        nucleus_.forget();
        is_list_ = law.is_list();
        switch (params.filters) {
            case Filters::sequential: top_k(), top_p(), min_p(), typical(); break;
            case Filters::min_p_first: min_p(), top_k(), top_p(); break;
            case Filters::joint: joint(), min_p(); break;
            default: top_k(), typical(), top_p(), min_p();
        }
        const bool is_known = nucleus_.knows(kept_) && params.temperature == temperature_;
        if (is_list_ || (is_known ? nucleus_.list(list(), kFewKept)
                                  : gather(kept_.low, kFewKept))) {
            return law.keep_list(params.temperature);
        }
        if (is_known) {
            nucleus_.keep(law);
        } else {
            law.keep(kept_, params.temperature);
        }
        return LogitLaw::Fault::none;
    }

   private:
    static constexpr std::size_t kFewKept = 1024;
    static constexpr int kChunk = 16;

    std::vector<Candidate>& list() { return law_->list(); }

    void top_k() {
        const std::int64_t k = params_.top_k;
        if (k <= 0 || k >= law_->size()) return;
        if (!is_list_) make_list(std::max(kept_.low, law_->kth_largest_block(k)));
        if (static_cast<std::int64_t>(list().size()) <= k) return;
        order_.clear();
        for (const Candidate& candidate : list()) order_.push_back(candidate.z);
        std::nth_element(order_.begin(), order_.begin() + (k - 1), order_.end(),
                         std::greater<double>());
        const double edge = order_[k - 1];
        std::int64_t room = k;
        for (const Candidate& candidate : list()) room -= candidate.z > edge;
        keep_if([&](const Candidate& candidate) {
            return candidate.z > edge ||
                   (candidate.z == edge && (params_.top_k_keeps_ties || room-- > 0));
        });
    }

    void top_p() {
        if (!(params_.top_p < 1)) return;
        if (!is_list_) {
            if (!kept_.has_every()) law_->keep(kept_, temperature_);
            nucleus_.find(*law_, params_.top_p, params_.mass_keeps_ties, kept_);
            return;
        }
        const Kept kept = nucleus_of_list();
        keep_if([&](const Candidate& at) { return kept.has(at.z, at.token); });
    }

    Kept nucleus_of_list() {
        weigh();
        nearest_ = list();
        const Crossing crossing = nucleus_.cross(nearest_, 0, params_.top_p * total_, 0);
        Kept kept;
        kept.raise(crossing.z, params_.mass_keeps_ties ? Kept::kAll : crossing.token);
        return kept;
    }

    void joint() {
        Kept nucleus;
        if (params_.top_p < 1 && is_list_) {
            nucleus = nucleus_of_list();
        } else if (params_.top_p < 1) {
            nucleus_.find(*law_, params_.top_p, params_.mass_keeps_ties, nucleus);
        }
        top_k();
        if (is_list_) {
            keep_if([&](const Candidate& at) { return nucleus.has(at.z, at.token); });
        } else {
            kept_ = nucleus;
        }
    }

    // w >= min_p, where the largest w is 1.
    void min_p() {
        if (!(params_.min_p > 0)) return;
        if (is_list_) {
            weigh();
            keep_if([&](const Candidate& at) {
                return at.weight > 0 && at.weight >= params_.min_p;
            });
            return;
        }
        const auto reaches = [&](double z) {
            return std::exp((z - law_->largest()) / temperature_) >= params_.min_p;
        };
        double edge = law_->largest();
        double step = 1e-9 * (1 - temperature_ * std::log(params_.min_p)), below = edge;
        below += temperature_ * std::log(params_.min_p) - step;
        for (; reaches(below); step *= 2) below -= step;
        for (;;) {
            const double middle = below + (edge - below) / 2;
            if (!(below < middle && middle < edge)) break;
            (reaches(middle) ? edge : below) = middle;
        }
        kept_.raise(edge, Kept::kAll);
    }

    void typical() {
        if (!(params_.typical_p < 1)) return;
        if (!is_list_) make_list(kept_.low);
        weigh();
        double entropy = 0;
        for (const Candidate& candidate : list()) {
            const double p = candidate.weight / total_;
            if (p > 0) entropy -= p * std::log(p);
        }
        distances_.clear();
        double mass = 0;
        for (const Candidate& candidate : list()) {
            const double p = candidate.weight / total_;
            if (!(p > 0)) continue;
            mass += candidate.weight;
            // Nearest first, as the nucleus has largest first.
            const double distance = std::fabs(-std::log(p) - entropy);
            distances_.push_back({candidate.token, -distance, candidate.weight});
        }
        nearest_ = distances_;
        const Crossing crossing = nucleus_.cross(nearest_, 0, params_.typical_p * mass, 0);
        Kept kept;
        kept.raise(crossing.z, params_.mass_keeps_ties ? Kept::kAll : crossing.token);
        auto at = distances_.begin();
        keep_if([&](const Candidate& candidate) {
            if (at == distances_.end() || at->token != candidate.token) return false;
            const bool has = kept.has(at->z, at->token);
            ++at;
            return has;
        });
    }

    // exp((z - max z) / T) of the list, and their total.
    void weigh() {
        double largest = -kInfinity;
        for (const Candidate& candidate : list()) largest = std::max(largest, candidate.z);
        total_ = 0;
        for (Candidate& candidate : list()) {
            total_ += candidate.weight = std::exp((candidate.z - largest) / temperature_);
        }
    }

    template <typename Predicate>
    void keep_if(Predicate keeps) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < list().size(); ++i) {
            if (keeps(list()[i])) list()[count++] = list()[i];
        }
        list().resize(count);
    }

    void make_list(double least) {
        gather(least, static_cast<std::size_t>(law_->size()));
        is_list_ = true;
    }

    // List what is kept from `least` up, by token; false if that is more than `most`.
    bool gather(double least, std::size_t most) {
        list().clear();
        law_->visit(least, [&](std::int64_t start, int n, const auto* z) {
            for (int i = 0; i < n; ++i) {
                if (i % kChunk == 0 && i + kChunk <= n && !any_reaches(z + i, least)) {
                    i += kChunk - 1;
                } else if (z[i] >= least && z[i] > -kInfinity && kept_.has(z[i], start + i)) {
                    list().push_back({start + i, static_cast<double>(z[i]), 0});
                }
            }
            return list().size() <= most;
        });
        return list().size() <= most;
    }

    template <typename T>
    static bool any_reaches(const T* z, double least) {
        int any = 0;
        for (int i = 0; i < kChunk; ++i) any |= z[i] >= least;
        return any;
    }

    LogitLaw* law_ = nullptr;
    LogitParams params_{};
    Kept kept_;
    double temperature_ = 1, total_ = 0;
    bool is_list_ = false;
    Nucleus nucleus_;
    std::vector<double> order_;
    std::vector<Candidate> distances_, nearest_;
};

}  // namespace draftproof
