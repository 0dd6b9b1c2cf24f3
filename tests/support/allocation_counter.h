// How often a piece of code allocates, on all threads together. One count at a time.
#pragma once

#include <atomic>
#include <cstdint>

namespace support {

extern std::atomic<bool> counting_allocations;
extern std::atomic<uint64_t> allocations_count;

template <typename Body>
uint64_t allocations_of(Body body) {
    allocations_count = 0;
    counting_allocations = true;
    body();
    counting_allocations = false;
    return allocations_count;
}

}  // namespace support
