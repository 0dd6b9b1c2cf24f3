// CHECK: a broken invariant is our bug. Always on; prints the condition and its values, then aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace base {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
    std::fprintf(stderr, "hearth: %s:%d: invariant broken: %s\n", file, line, condition);
    std::abort();
}

template <typename A, typename B>
[[noreturn]] inline void check_failed_values(const char* file, int line, const char* condition, const A& a, const B& b) {
    std::fprintf(stderr, "hearth: %s:%d: invariant broken: %s (%lld vs %lld)\n", file, line, condition,
                 static_cast<long long>(a), static_cast<long long>(b));
    std::abort();
}

}  // namespace base

#define CHECK(cond)                                                          \
    do {                                                                     \
        if (!(cond)) [[unlikely]] ::base::check_failed(__FILE__, __LINE__, #cond); \
    } while (false)

#define CHECK_OP_(a, op, b)                                                                          \
    do {                                                                                             \
        const auto check_a_ = (a);                                                                   \
        const auto check_b_ = (b);                                                                   \
        if (!(check_a_ op check_b_)) [[unlikely]]                                                    \
            ::base::check_failed_values(__FILE__, __LINE__, #a " " #op " " #b, check_a_, check_b_); \
    } while (false)

// For integers; both values are printed.
#define CHECK_EQ(a, b) CHECK_OP_(a, ==, b)
#define CHECK_LE(a, b) CHECK_OP_(a, <=, b)
#define CHECK_LT(a, b) CHECK_OP_(a, <, b)
#define CHECK_GE(a, b) CHECK_OP_(a, >=, b)
