#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/limits.h"
#include "base/message.h"

namespace base {
namespace {

// --- SIGBUS: which mapping does an address belong to? Read by the signal handler, so plain atomics and fixed arrays. --

struct Slot {
    std::atomic<uintptr_t> begin{0};  // 0: free
    std::atomic<uintptr_t> end{0};
    char path[256] = {};  // printable, set before `begin`
};

// Files mapped at once: a split model and a few more. Beyond that they work, without the good message.
constexpr size_t slots_count = limits::gguf_split_parts + 16;
std::array<Slot, slots_count> slots;
std::mutex slots_mutex;

void write_text(const char* text) {
    const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
    (void)ignored;
}

void write_number(uintptr_t number) {
    char digits[24];
    char* at = digits + sizeof digits;
    *--at = 0;
    do {
        *--at = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    write_text(at);
}

void on_sigbus(int, siginfo_t* signal_info, void*) {
    const auto address = reinterpret_cast<uintptr_t>(signal_info->si_addr);
    for (const Slot& slot : slots) {
        const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
        if (begin == 0 || address < begin || address >= slot.end.load(std::memory_order_relaxed)) continue;
        write_text("hearth: ");
        write_text(slot.path);
        write_text(": byte ");
        write_number(address - begin);
        write_text(" could not be read: the file was truncated while it was being loaded, or the disk failed\n");
        _exit(70);
    }
    // Not ours: die as one would have without the handler, at the instruction that faulted.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGBUS, &standard, nullptr);
}

Slot* claim_slot(const void* address, size_t length, const std::string& path) {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_sigbus;
        action.sa_flags = SA_SIGINFO;
        ::sigaction(SIGBUS, &action, nullptr);
    });
    const std::lock_guard lock(slots_mutex);
    for (Slot& slot : slots) {
        if (slot.begin.load(std::memory_order_relaxed) != 0) continue;
        const std::string text = printable(path, 200);  // cut where the slot ends; its last byte stays 0
        std::memcpy(slot.path, text.c_str(), std::min(text.size() + 1, sizeof slot.path - 1));
        const auto begin = reinterpret_cast<uintptr_t>(address);
        slot.end.store(begin + length, std::memory_order_relaxed);
        slot.begin.store(begin, std::memory_order_release);
        return &slot;
    }
    return nullptr;
}

// --- The view ------------------------------------------------------------------------------------------------------

class MappedFile final : public FileView {
  public:
    MappedFile(std::string path, int fd, const struct stat& opened, const std::byte* data)
        : path_(std::move(path)), fd_(fd), opened_(opened), data_(data), slot_(claim_slot(data, size(), path_)) {}
    ~MappedFile() override {
        if (slot_) slot_->begin.store(0, std::memory_order_release);
        ::munmap(const_cast<std::byte*>(data_), size());
        ::close(fd_);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const override { return {data_, size()}; }

    Result<void> check_unchanged() const override {
        struct stat now {};
        if (::fstat(fd_, &now) != 0) return Error{ErrorCode::io, cat(printable(path_, 200), ": cannot stat: ", std::strerror(errno)), ""};
        if (now.st_size != opened_.st_size)
            return Error{ErrorCode::io, cat(printable(path_, 200), ": had ", opened_.st_size, " bytes when it was opened and has ", now.st_size,
                                            " now: it was changed while it was being read"), ""};
        if (now.st_mtim.tv_sec != opened_.st_mtim.tv_sec || now.st_mtim.tv_nsec != opened_.st_mtim.tv_nsec)
            return Error{ErrorCode::io, cat(printable(path_, 200), ": was written to while it was being read"), ""};
        return {};
    }

    void release(std::span<const std::byte> part) const override {
        static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
        const uintptr_t begin = reinterpret_cast<uintptr_t>(part.data()) / page * page;
        const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
        // A private mapping that nobody wrote to: dropped pages come back from the file.
        if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }

  private:
    size_t size() const { return static_cast<size_t>(opened_.st_size); }

    std::string path_;
    int fd_;
    struct stat opened_;
    const std::byte* data_;
    Slot* slot_;  // null when all were taken
};

const char* kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISCHR(mode)) return "a character device";
    if (S_ISBLK(mode)) return "a block device";
    if (S_ISSOCK(mode)) return "a socket";
    return "of an unknown kind";
}

class SystemFiles final : public FileSystem {
  public:
    Result<std::unique_ptr<FileView>> open_mapped(const std::string& path) const override {
        const auto refuse = [&](std::string_view reason) { return Error{ErrorCode::io, cat(printable(path, 200), ": ", reason), ""}; };
        if (path.find('\0') != std::string::npos) return refuse("the path contains a NUL byte");
        // O_NONBLOCK: opening a FIFO without a writer must not wait; it changes nothing for a regular file.
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) return refuse(cat("cannot open: ", std::strerror(errno)));
        const auto refuse_and_close = [&](std::string_view reason) {
            Error error = refuse(reason);
            ::close(fd);
            return error;
        };
        struct stat status {};
        if (::fstat(fd, &status) != 0) return refuse_and_close(cat("cannot stat: ", std::strerror(errno)));
        if (!S_ISREG(status.st_mode)) return refuse_and_close(cat("is ", kind_of(status.st_mode), ", expected a regular file"));
        if (status.st_size == 0) return refuse_and_close("is empty (0 bytes)");
        void* data = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) return refuse_and_close(cat("cannot map ", status.st_size, " bytes: ", std::strerror(errno)));
        return std::unique_ptr<FileView>(new MappedFile(path, fd, status, static_cast<const std::byte*>(data)));
    }
};

}  // namespace

const FileSystem& system_files() {
    static const SystemFiles files;
    return files;
}

}  // namespace base
