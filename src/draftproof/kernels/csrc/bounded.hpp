// Numbers that the reference has rounded in its own order, known within a bound.
#pragma once

#include <cmath>

namespace draftproof {

// The reference's number lies within `error` of `value`. Each operation adds what the reference may
// have rounded, what this one may, and what the bound itself may.
struct Bounded {
    double value;
    double error = 0;

    static constexpr double kRoundoff = 0x1p-51;

    bool is(double number) const { return value == number && error == 0; }
    bool certainly_below(Bounded other) const {
        return value + error < other.value - other.error;
    }
    Bounded rounded() const {
        return {value, error * (1 + kRoundoff) + std::fabs(value) * kRoundoff};
    }
};

inline Bounded operator+(Bounded a, Bounded b) {
    return Bounded{a.value + b.value, a.error + b.error}.rounded();
}
inline Bounded operator-(Bounded a, Bounded b) { return a + Bounded{-b.value, b.error}; }
inline Bounded operator*(Bounded a, Bounded b) {
    const double error =
        std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
    return Bounded{a.value * b.value, error}.rounded();
}
inline Bounded operator/(Bounded a, Bounded b) {
    const double ratio = a.value / b.value, least = std::fabs(b.value) - b.error;
    if (!(least > 0)) return {ratio, HUGE_VAL};
    return Bounded{ratio, (a.error + std::fabs(ratio) * b.error) / least}.rounded();
}

}  // namespace draftproof
