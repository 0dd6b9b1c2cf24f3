// What a test of speed needs: the processor time of this thread (a busy machine doesn't count), and whether a sanitizer
// slows everything down.
#pragma once

#include <ctime>

namespace support {

inline double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
inline constexpr bool measurable = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
inline constexpr bool measurable = false;
#else
inline constexpr bool measurable = true;
#endif
#else
inline constexpr bool measurable = true;
#endif

}  // namespace support
