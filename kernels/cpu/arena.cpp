#include "kernels/cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace kernels::cpu {

namespace {
constexpr size_t huge_page_bytes = 2u << 20;

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14; Debian 12's headers have it, older ones may not
#endif

// Has every page of [data, data + bytes) taken from the system now. Memory that is only mapped could be taken by another
// process between the start and a long answer, which then dies in its middle.
base::Result<void> populate(std::byte* data, size_t bytes, const char* what) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t whole = (bytes + page - 1) / page * page;
    int result;
    do result = madvise(data, whole, MADV_POPULATE_WRITE);
    while (result != 0 && (errno == EINTR || errno == EAGAIN));
    if (result == 0) return {};
    if (errno == EINVAL) {  // an older kernel: the same by hand
        for (size_t at = 0; at < bytes; at += page) *const_cast<volatile std::byte*>(data + at) = std::byte{0};
        return {};
    }
    return base::Error{base::ErrorCode::io, std::string("memory for ") + what + ": the system could not give all of " + std::to_string(bytes) + " bytes: " + std::strerror(errno), ""};
}
}  // namespace

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
    return populate(data_, size_, what);
}

std::byte* Arena::take(size_t bytes) {
    const size_t need = rounded(bytes);
    CHECK_LE(need, left());
    std::byte* result = data_ + used_;
    used_ += need;
    return result;
}

}  // namespace kernels::cpu
