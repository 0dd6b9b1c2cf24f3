#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace base {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
  protected:
    Files() : folder_(fs::path(testing::TempDir()) / ("hearth_files_" + std::to_string(getpid()))) { fs::create_directories(folder_); }
    ~Files() override { fs::remove_all(folder_); }

    std::string path(const std::string& name) const { return folder_ / name; }
    std::string write(const std::string& name, size_t n) const {
        std::ofstream(path(name), std::ios::binary) << std::string(n, 'x');
        return path(name);
    }
    // The message of a refusal; it must come at once and be one line.
    std::string refusal(const std::string& file) const {
        const auto start = std::chrono::steady_clock::now();
        auto view = system_files().open_mapped(file);
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
        if (view.ok()) return "accepted";
        EXPECT_EQ(view.error().code, ErrorCode::io);
        EXPECT_EQ(view.error().message.find('\n'), std::string::npos);
        return view.error().message;
    }

    fs::path folder_;
};

TEST_F(Files, MapsARegularFile) {
    const std::string file = write("a", 10'000);
    auto view = system_files().open_mapped(file);
    ASSERT_TRUE(view.ok()) << view.error().message;
    EXPECT_EQ(view.value()->bytes().size(), 10'000u);
    EXPECT_EQ(view.value()->bytes()[9'999], std::byte{'x'});
    EXPECT_TRUE(view.value()->check_unchanged().ok());
}

TEST_F(Files, RefusesWhatIsNoRegularFile) {
    EXPECT_EQ(refusal(path("absent")), path("absent") + ": cannot open: No such file or directory");
    EXPECT_EQ(refusal(folder_), folder_.string() + ": is a directory, expected a regular file");
    ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
    EXPECT_EQ(refusal(path("fifo")), path("fifo") + ": is a FIFO, expected a regular file");
    EXPECT_EQ(refusal("/dev/zero"), "/dev/zero: is a character device, expected a regular file");
    EXPECT_EQ(refusal(write("empty", 0)), path("empty") + ": is empty (0 bytes)");
    EXPECT_NE(refusal("").find("cannot open"), std::string::npos);
    EXPECT_NE(refusal(std::string("a\0b", 3)).find("NUL"), std::string::npos);
    EXPECT_NE(refusal(path("x\ny")).find("x\\ny: cannot open"), std::string::npos);
    fs::create_symlink("loop", path("loop"));
    EXPECT_NE(refusal(path("loop")).find("cannot open"), std::string::npos);
    const std::string secret = write("secret", 10);
    chmod(secret.c_str(), 0);
    if (geteuid() != 0) {  // root may read anything
        EXPECT_EQ(refusal(secret), secret + ": cannot open: Permission denied");
    }
}

TEST_F(Files, OpensNoMoreDescriptorsThanViews) {
    const auto open_descriptors = [] {
        return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
    };
    const auto before = open_descriptors();
    (void)refusal(folder_);
    (void)refusal("/dev/zero");
    (void)refusal(write("empty", 0));
    { auto view = system_files().open_mapped(write("a", 5)); }
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Files, RenamedOverKeepsTheOldBytes) {
    const std::string file = write("a", 5'000);
    auto view = system_files().open_mapped(file);
    ASSERT_TRUE(view.ok());
    write("b", 3);
    fs::rename(path("b"), file);
    EXPECT_EQ(view.value()->bytes()[4'999], std::byte{'x'});
    EXPECT_TRUE(view.value()->check_unchanged().ok()) << "the old file itself is as it was";
}

TEST_F(Files, AChangedFileIsNoticed) {
    const std::string file = write("a", 5'000);
    auto view = system_files().open_mapped(file);
    ASSERT_TRUE(view.ok());
    const timespec old_times[2] = {{1'000'000, 0}, {1'000'000, 0}};
    {
        // Same size, another time.
        ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), old_times, 0), 0);
        auto result = view.value()->check_unchanged();
        ASSERT_FALSE(result.ok());
        EXPECT_EQ(result.error().message, file + ": was written to while it was being read");
    }
    ASSERT_EQ(truncate(file.c_str(), 4'000), 0);
    auto result = view.value()->check_unchanged();
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().message.find("had 5000 bytes when it was opened and has 4000 now"), std::string::npos);
}

using FilesDeathTest = Files;

TEST_F(FilesDeathTest, ATruncatedFileEndsInALineNotInASignal) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const std::string file = write("a", 5 * 4096);
    EXPECT_EXIT(
        {
            auto view = system_files().open_mapped(file);
            if (truncate(file.c_str(), 4096) != 0) _exit(1);
            volatile std::byte byte = view.value()->bytes()[3 * 4096 + 7];
            (void)byte;
            _exit(0);
        },
        testing::ExitedWithCode(70), "a: byte 12295 could not be read: the file was truncated");
}

TEST_F(FilesDeathTest, AnotherBusErrorStillKills) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const std::string file = write("a", 4096);
    EXPECT_EXIT(
        {
            auto view = system_files().open_mapped(file);  // installs the handler
            raise(SIGBUS);
            raise(SIGBUS);
            _exit(0);
        },
        testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace base
