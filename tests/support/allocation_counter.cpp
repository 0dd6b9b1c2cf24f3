// operator new and delete of the programs that count: list this file among an executable's sources.
#include "tests/support/allocation_counter.h"

#include <cstddef>
#include <cstdlib>
#include <new>

// Inlining shows GCC a malloc in new and a free in delete, which is the point here.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace support {
std::atomic<bool> counting_allocations = false;
std::atomic<uint64_t> allocations_count = 0;
}  // namespace support

namespace {

void* counted(size_t size, size_t alignment) noexcept {
    if (support::counting_allocations) ++support::allocations_count;
    if (alignment > alignof(std::max_align_t)) return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(size_t size, size_t alignment) {
    void* p = counted(size, alignment);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}

}  // namespace

void* operator new(size_t size) { return counted_or_throw(size, 0); }
void* operator new[](size_t size) { return counted_or_throw(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) { return counted_or_throw(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return counted_or_throw(size, static_cast<size_t>(alignment)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept { return counted(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept { return counted(size, static_cast<size_t>(alignment)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

