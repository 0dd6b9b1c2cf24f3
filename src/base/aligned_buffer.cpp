#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/message.h"

namespace base {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Result<AlignedBuffer> AlignedBuffer::make(size_t size_bytes, Pages pages) {
    AlignedBuffer out;
    if (size_bytes == 0) return out;
    const auto refused = [&](int code) {
        return Error{ErrorCode::unavailable, cat("no memory: ", size_bytes, " bytes refused: ", std::strerror(code)), ""};
    };
    // Room for the rounding below must not wrap.
    if (size_bytes > SIZE_MAX / 2) return refused(ENOMEM);
    if (pages == Pages::huge && size_bytes >= huge_page) {
        // One huge page more than needed, then the ends outside the aligned part are given back.
        const size_t kept = round_up(size_bytes, huge_page), mapped = kept + huge_page;
        void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (raw == MAP_FAILED) return refused(errno);
        const auto start = reinterpret_cast<uintptr_t>(raw);
        const uintptr_t begin = round_up(start, huge_page);
        if (begin > start) ::munmap(raw, begin - start);
        if (const size_t tail = start + mapped - (begin + kept); tail > 0) ::munmap(reinterpret_cast<void*>(begin + kept), tail);
        ::madvise(reinterpret_cast<void*>(begin), kept, MADV_HUGEPAGE);  // advice: a refusal is no error
        out.data_ = reinterpret_cast<std::byte*>(begin);
        out.mapped_bytes_ = kept;
    } else {
        out.data_ = static_cast<std::byte*>(::operator new(size_bytes, std::align_val_t{alignment}, std::nothrow));
        if (!out.data_) return refused(ENOMEM);
        std::memset(out.data_, 0, size_bytes);
    }
    out.size_bytes_ = size_bytes;
    return out;
}

void AlignedBuffer::release() {
    if (mapped_bytes_ > 0)
        ::munmap(data_, mapped_bytes_);
    else if (data_)
        ::operator delete(data_, std::align_val_t{alignment});
    data_ = nullptr;
    size_bytes_ = mapped_bytes_ = 0;
}

}  // namespace base
