// Anonymous memory in huge pages where the system has them. Measured on two kinds of machine: 4 KiB pages cost 20-40 % of
// the read bandwidth that a decode step lives on.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace kernels::cpu {

// Zeroed memory from mmap, resident from the start, given out front to back. Freed as a whole.
class Arena {
  public:
    Arena() = default;
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // Once. ErrorCode::io when the system has not got so much; `what` names the memory in the message.
    base::Result<void> reserve(size_t bytes, const char* what);
    // 64-byte aligned; CHECKs that it fits.
    std::byte* take(size_t bytes);
    // What take() needs for `bytes`.
    static constexpr size_t rounded(size_t bytes) { return (bytes + 63) & ~size_t{63}; }
    size_t left() const { return size_ - used_; }
    std::byte* data() const { return data_; }

  private:
    void* mapping_ = nullptr;
    size_t mapping_bytes_ = 0;
    std::byte* data_ = nullptr;
    size_t size_ = 0, used_ = 0;
};

}  // namespace kernels::cpu
