// The law of a row of logits: softmax(z / T) of the tokens that its filters keep.
//
// The first pass is in float32: a sum and a maximum for each block, with a bound on the error of
// every partial sum. What it leaves open is settled in float64 (`refine`). A row with few tokens
// left is a list of them, in float64 from the start.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "draw.hpp"
#include "exponentials.hpp"
#include "kept.hpp"
#include "logit_row.hpp"
#include "row_sums.hpp"

namespace draftproof {

struct Candidate {
    std::int64_t token;
    double z, weight;
};

class LogitLaw {
   public:
    enum class Fault { none, not_finite, empty };

    LogitLaw() : set_(best_instruction_set()) {}

    // Look at a whole row, at a temperature. All other functions speak of the row looked at last.
    Fault look_at(const LogitRow& row, double temperature) {
        row_ = row;
        kept_ = {};
        set_temperature(temperature);
        is_list_ = row.size <= kFew;
        if (is_list_) return list_row();
        return sum_row();
    }

    bool is_list() const { return is_list_; }
    std::int64_t size() const { return row_.size; }
    const LogitRow& row() const { return row_; }
    std::vector<Candidate>& list() { return list_; }
    double largest() const { return largest_; }
    const Kept& kept() const { return kept_; }
    double total() const { return total_; }

    // Relative, of every partial sum of the law and of every probability.
    double error() const { return error_; }
    // The same for the sum of the probabilities that `write` gives in float32.
    double written_error() const { return suits_float32_ ? written_error_ : 0x1p-23; }

    double probability(std::int64_t token) const {
        if (is_list_) {
            const auto at = std::lower_bound(
                list_.begin(), list_.end(), token,
                [](const Candidate& candidate, std::int64_t id) { return candidate.token < id; });
            return at != list_.end() && at->token == token ? at->weight / total_ : 0;
        }
        const double z = row_[token];
        return kept_.has(z, token) ? weight(z) / total_ : 0;
    }

    // Logarithms of the weights, relative to the largest logit's, and of their total.
    double log_weight(double z) const { return (z - largest_) / temperature_; }
    double log_total() const { return std::log(total_) + log_weight(shift_); }
    double temperature() const { return temperature_; }

    double weight(double z) const { return std::exp((z - shift_) / temperature_); }

    std::int64_t num_blocks() const { return (row_.size + kLogitBlock - 1) / kLogitBlock; }
    int block_size(std::int64_t j) const {
        return static_cast<int>(
            std::min<std::int64_t>(kLogitBlock, row_.size - j * kLogitBlock));
    }
    // A logit that k tokens reach, if there are so many blocks; else -inf.
    double kth_largest_block(std::int64_t k) {
        if (k > num_blocks()) return -kInfinity;
        order_ = largests_;
        std::nth_element(order_.begin(), order_.begin() + (k - 1), order_.end(),
                         std::greater<double>());
        return order_[k - 1];
    }
    const std::vector<double>& block_sums() const { return sums_; }

    // The probabilities of a block; not of a list.
    void write(std::int64_t j, float* out) {
        if (suits_float32_) {
            write_scaled(j, 1 / total_, out);
        } else {
            write(j, w64_);
            std::copy_n(w64_, block_size(j), out);
        }
    }
    void write(std::int64_t j, double* out) {
        write_weights(j, out);
        for (int i = 0; i < block_size(j); ++i) out[i] /= total_;
    }

    // The weights of a block, whose total is `total()` within the error.
    void write_weights(std::int64_t j, float* out) { write_scaled(j, 1, out); }
    void write_weights(std::int64_t j, double* out) {
        const int n = block_size(j);
        row_.doubles(j * kLogitBlock, n, z64_);
        exps().float64(z64_, n, shift_, scale_, 1, out);
        kept_.apply(z64_, j * kLogitBlock, n, out, exps());
    }

    // Some logits, within a block, in float32.
    void copy(std::int64_t start, int n, float* out) {
        if (const float* z = row_.floats(start, n, z32_, exps())) {
            std::copy_n(z, n, out);
        } else {
            row_.doubles(start, n, z64_);
            std::copy_n(z64_, n, out);
        }
    }

    // Keep less of the row, at a temperature, and sum it anew.
    void keep(const Kept& kept, double temperature) {
        kept_ = kept;
        set_temperature(temperature);
        exact_ = false;
        set_shift(whole_above(largest_));
        sum_kept();
    }
    // The same, where the sums of the blocks are known in float64 within an error, relative to a
    // logit.
    void keep(const Kept& kept, const std::vector<double>& sums, double shift, double error) {
        kept_ = kept;
        sums_ = sums;
        shift_ = shift;
        total_ = 0;
        for (double sum : sums_) total_ += sum;
        if (suits_float32_) judge_float32();
        exact_ = error == 0;
        error_ = order_error() + error;
    }

    // Keep the tokens of the list alone, by token.
    Fault keep_list(double temperature) {
        set_temperature(temperature);
        is_list_ = true;
        return weigh_list();
    }

    // The law of a drafter at temperature 0.
    void be_point_mass(const LogitRow& row, std::int64_t token) {
        row_ = row;
        list_.assign(1, {token, 0, 1});
        keep_list(1);
    }

    // Sum the row in float64.
    void refine() {
        if (exact_) return;
        shift_ = largest_;
        be_exact();
        if (is_list_) return;
        total_ = 0;
        for (std::int64_t j = 0; j < num_blocks(); ++j) {
            sums_[j] = 0;
            if (largests_[j] < kept_.low) continue;
            write_weights(j, w64_);
            total_ += sums_[j] = sum(w64_, block_size(j));
        }
    }

    // The sum of a block's weights.
    template <typename T>
    double sum(const T* weights, int n) const {
        double pair[2] = {};
        RowCheck ignored;
        row_sums().plain(weights, n, pair, ignored);
        return pair[0] + pair[1];
    }
    bool is_exact() const { return exact_; }

    // Call f(start, n, z) for the blocks that may hold a logit of `least` or more, z float or double,
    // as long as it returns true.
    template <typename Function>
    void visit(double least, Function f) {
        bool goes_on = true;
        for (std::int64_t j = 0; goes_on && j < num_blocks(); ++j) {
            if (largests_[j] < least) continue;
            const int n = block_size(j);
            const std::int64_t start = j * kLogitBlock;
            if (const float* z = row_.floats(start, n, z32_, exps())) {
                goes_on = f(start, n, z);
            } else {
                row_.doubles(start, n, z64_);
                goes_on = f(start, n, static_cast<const double*>(z64_));
            }
        }
    }

    // Whether float32 sums of this row say anything.
    bool suits_float32() const { return suits_float32_; }
    double scale() const { return scale_; }
    double shift() const { return shift_; }
    // The least integer above all logits times the scale.
    int whole() const { return whole_; }
    const Exponentials& exps() const { return *set_.exponentials; }
    const RowSums& row_sums() const { return *set_.sums; }

   private:
    void write_scaled(std::int64_t j, double factor, float* out) {
        const int n = block_size(j);
        const std::int64_t start = j * kLogitBlock;
        if (shift_ != whole_shift_) factor *= std::exp2((whole_shift_ - shift_) * scale_);
        const auto narrow_factor = static_cast<float>(factor);
        if (const float* z = row_.floats(start, n, z32_, exps())) {
            exps().float32(z, n, whole_, scale32_, narrow_factor, out);
            kept_.apply(z, start, n, out, exps());
        } else {
            row_.doubles(start, n, z64_);
            narrow(n, whole_);
            exps().float32(z32_, n, 0, scale32_, narrow_factor, out);
            kept_.apply(z64_, start, n, out, exps());
        }
    }

    // The least integer above z times the scale; 0 if that is too large to be of use.
    int whole_above(double z) const {
        const double whole = std::ceil(z * scale32_);
        return std::fabs(whole) <= kMostWhole ? static_cast<int>(whole) : 0;
    }

    // Of 2^(z * scale32 - whole) as a weight: the same for the largest logit.
    void set_shift(int whole) {
        whole_ = whole;
        whole_shift_ = shift_ = largest_ - (largest_ * scale32_ - whole) / scale_;
    }

    void set_temperature(double temperature) {
        temperature_ = temperature;
        scale_ = kLog2E / temperature;
        scale32_ = static_cast<float>(scale_);
    }

    void be_exact() {
        exact_ = true;
        error_ = order_error();
    }
    double order_error() const { return (2.0 * row_.size + 64) * 0x1p-53; }

    // z64_ * scale - whole, over the scale, as float32.
    void narrow(int n, int whole) {
        const double shift = whole / static_cast<double>(scale32_);
        for (int i = 0; i < n; ++i) z32_[i] = static_cast<float>(z64_[i] - shift);
        is_narrowed_ = true;
    }

    Fault list_row() {
        const auto n = static_cast<int>(row_.size);
        row_.doubles(0, n, z64_);
        bool finite = true;
        for (int i = 0; i < n; ++i) finite &= z64_[i] < kInfinity;
        if (!finite) return Fault::not_finite;
        list_.resize(n);
        std::size_t count = 0;
        for (int i = 0; i < n; ++i) {
            list_[count] = {i, z64_[i], 0};
            count += z64_[i] > -kInfinity;
        }
        list_.resize(count);
        return weigh_list();
    }

    Fault weigh_list() {
        exact_ = true;
        largest_ = -kInfinity;
        each_part([&](const Candidate*, int n) {
            largest_ = std::max(largest_, row_sums().largest(z64_, n));
        });
        shift_ = largest_;
        total_ = 0;
        each_part([&](Candidate* part, int n) {
            for (int k = 0; k < n; ++k) z64_[k] = log_weight(z64_[k]);
            exps().natural_float64(z64_, n, w64_);
            for (int k = 0; k < n; ++k) part[k].weight = w64_[k];
            total_ += sum(w64_, n);
        });
        error_ = (2.0 * list_.size() + 64) * 0x1p-53;
        return list_.empty() ? Fault::empty : Fault::none;
    }

    // Call f(first, n) for a list's parts, whose logits are copied before.
    template <typename Function>
    void each_part(Function f) {
        for (std::size_t start = 0; start < list_.size(); start += kLogitBlock) {
            Candidate* part = list_.data() + start;
            const auto n = static_cast<int>(
                std::min<std::size_t>(kLogitBlock, list_.size() - start));
            for (int k = 0; k < n; ++k) z64_[k] = part[k].z;
            f(part, n);
        }
    }

    Fault sum_row() {
        const std::int64_t count = num_blocks();
        sums_.resize(count);
        largests_.resize(count);
        wholes_.resize(count);
        int whole = 0;
        largest_ = -kInfinity;
        is_narrowed_ = false;
        for (std::int64_t j = 0; j < count; ++j) {
            const std::int64_t start = j * kLogitBlock;
            const int n = block_size(j);
            const float* z = row_.floats(start, n, z32_, exps());
            if (z) {
                largests_[j] = row_sums().largest(z, n);
            } else {
                row_.doubles(start, n, z64_);
                largests_[j] = row_sums().largest(z64_, n);
            }
            if (largests_[j] > largest_) {
                largest_ = largests_[j];
                whole = whole_above(largest_);
            }
            if (largest_ == -kInfinity) {
                if (sum_of(z, n) != -kInfinity) return Fault::not_finite;
                sums_[j] = 0;
            } else if (z) {
                const float* ahead = row_.stored.as<float>() ? z + kLogitBlock : z;
                sums_[j] = exps().sum_float32(z, n, whole, scale32_, ahead);
            } else {
                narrow(n, whole);
                sums_[j] = exps().sum_float32(z32_, n, 0, scale32_, z32_);
            }
            wholes_[j] = whole;
        }
        if (largest_ == -kInfinity) return Fault::empty;
        set_shift(whole);
        add_blocks();
        exact_ = false;
        judge_float32();
        return std::isnan(total_) || largest_ == kInfinity ? Fault::not_finite : Fault::none;
    }

    // The sum of a block without a number above -inf: -inf, unless there is NaN.
    double sum_of(const float* z, int n) const {
        double sum = -kInfinity;
        for (int i = 0; i < n; ++i) sum += z ? z[i] : z64_[i];
        return sum;
    }

    // Bring the blocks' sums to the last integer.
    void add_blocks() {
        total_ = 0;
        for (std::size_t j = 0; j < sums_.size(); ++j) {
            if (wholes_[j] != whole_) sums_[j] = std::ldexp(sums_[j], wholes_[j] - whole_);
            total_ += sums_[j];
        }
    }

    void sum_kept() {
        total_ = 0;
        for (std::int64_t j = 0; j < num_blocks(); ++j) {
            sums_[j] = 0;
            if (largests_[j] < kept_.low) continue;
            write_weights(j, w32_);
            total_ += sums_[j] = sum(w32_, block_size(j));
        }
        judge_float32();
    }

    // With weights relative to the largest, the mean |log w| is at most log(V / total): entropy.
    void judge_float32() {
        const double gap = (shift_ - largest_) * scale_;
        suits_float32_ = std::fabs(gap) < 1.5 && scale_ > 0x1p-60 && scale_ < 0x1p60 &&
                         total_ > 0x1p-60 && std::fabs(largest_ * scale_) < kMostWhole / 2;
        if (!suits_float32_) {
            refine();
            return;
        }
        const double depth = std::log(row_.size / total_) + gap;
        double depth_error = std::fabs(scale32_ / scale_ - 1);
        if (is_narrowed_) depth_error += 1.01 * kRoundoff;
        error_ = kPowerError + depth_error * depth + order_error();
        if (!exps().fuses) error_ += 1.01 * kRoundoff * (depth + std::fabs(whole_));
        written_error_ = 2 * error_ + 4 * 0x1p-24;
    }

    const InstructionSet& set_;
    LogitRow row_{};
    Kept kept_;
    double temperature_ = 1, scale_ = 1, shift_ = 0, largest_ = 0, total_ = 1;
    double whole_shift_ = 0;  // of the weights in float32
    double error_ = 0, written_error_ = 0;
    float scale32_ = 1;
    int whole_ = 0;
    bool is_list_ = false, exact_ = false, suits_float32_ = true, is_narrowed_ = false;
    std::vector<double> sums_, largests_, order_;
    std::vector<int> wholes_;
    std::vector<Candidate> list_;
    alignas(64) float z32_[kLogitBlock], w32_[kLogitBlock];
    alignas(64) double z64_[kLogitBlock], w64_[kLogitBlock];
};

}  // namespace draftproof
