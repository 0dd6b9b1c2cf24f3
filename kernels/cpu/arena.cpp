#include "kernels/cpu/arena.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace kernels::cpu {

namespace {
constexpr size_t huge_page_bytes = 2u << 20;
}

Arena::~Arena() {
    if (mapping_) munmap(mapping_, mapping_bytes_);
}

base::Result<void> Arena::reserve(size_t bytes, const char* what) {
    CHECK(mapping_ == nullptr);
    if (bytes == 0) return {};
    if (bytes > SIZE_MAX / 2)
        return base::Error{base::ErrorCode::io, std::string("memory for ") + what + ": " + std::to_string(bytes) + " bytes is more than an address space", ""};
    // Room to start on a huge page, so that even the first megabytes can be one.
    mapping_bytes_ = rounded(bytes) + huge_page_bytes;
    void* at = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return base::Error{base::ErrorCode::io, std::string("memory for ") + what + ": the system refused " + std::to_string(bytes) + " bytes: " + std::strerror(errno), ""};
    mapping_ = at;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(at) + huge_page_bytes - 1) & ~uintptr_t{huge_page_bytes - 1};
    data_ = reinterpret_cast<std::byte*>(start);
    size_ = rounded(bytes);
    if (bytes >= huge_page_bytes) madvise(data_, size_, MADV_HUGEPAGE);  // a refusal only costs speed
    return {};
}

std::byte* Arena::take(size_t bytes) {
    const size_t need = rounded(bytes);
    CHECK_LE(need, left());
    std::byte* result = data_ + used_;
    used_ += need;
    return result;
}

}  // namespace kernels::cpu
