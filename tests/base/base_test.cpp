#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/constant_time.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/message.h"
#include "base/sha256.h"

namespace base {
namespace {

// --- SHA-256: the examples of FIPS 180-4 and NIST's CAVP --------------------------------------------

TEST(Sha256, PublishedVectors) {
    const auto hex = [](std::string_view text) { return to_hex(sha256(text)); };
    EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
              "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeTheWhole) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i);
    for (size_t n = 0; n <= text.size(); ++n) {
        // Lengths 55, 56, 63, 64 and 119 are where the padding changes its form; the pieces cross block ends.
        const std::string_view part = std::string_view(text).substr(0, n);
        Sha256 hash;
        for (size_t at = 0; at < n; at += 37) hash.update(part.substr(at, 37));
        ASSERT_EQ(hash.finish(), sha256(part)) << n;
        ASSERT_EQ(hash.finish(), sha256("")) << "as new after finish";
    }
}

TEST(ConstantTime, Equal) {
    Sha256Digest a = sha256("a"), b = a;
    EXPECT_TRUE(equal_in_constant_time(a, b));
    for (size_t i = 0; i < b.size(); ++i) {
        b = a;
        b[i] ^= 1;
        EXPECT_FALSE(equal_in_constant_time(a, b));
    }
    EXPECT_FALSE(equal_in_constant_time(a, std::span(a).first(31)));
    EXPECT_TRUE(equal_in_constant_time({}, {}));
}

// --- Logger -----------------------------------------------------------------------------------------

class Pipe {
  public:
    Pipe() { EXPECT_EQ(pipe(ends_), 0); fcntl(ends_[0], F_SETFL, O_NONBLOCK); }
    ~Pipe() { close(ends_[0]); close(ends_[1]); }
    int write_end() const { return ends_[1]; }
    std::string take() {
        std::string out;
        char part[4096];
        for (ssize_t n; (n = read(ends_[0], part, sizeof part)) > 0;) out.append(part, static_cast<size_t>(n));
        return out;
    }

  private:
    int ends_[2];
};

TEST(Log, LinesLevelsAndPrefixes) {
    Pipe pipe;
    Logger plain(pipe.write_end(), false);
    plain.write(LogLevel::info, "ready");
    plain.write(LogLevel::debug, "left out");
    plain.set_level(LogLevel::error);
    plain.write(LogLevel::warning, "left out");
    plain.write(LogLevel::error, "bad");
    EXPECT_EQ(pipe.take(), "ready\nbad\n");
    Logger journal(pipe.write_end(), true);
    journal.set_level(LogLevel::debug);
    journal.write(LogLevel::error, "error");
    journal.write(LogLevel::warning, "warning");
    journal.write(LogLevel::info, "info");
    journal.write(LogLevel::debug, "debug");
    EXPECT_EQ(pipe.take(), "<3>error\n<4>warning\n<6>info\n<7>debug\n");
}

TEST(Message, RunningTextKeepsLinesAndLosesControls) {
    EXPECT_EQ(without_controls("a\tb\nc"), "a\tb\nc");
    // ESC, BEL, DEL; U+009B and U+009D are CSI and OSC in one character; U+202E reorders what follows.
    EXPECT_EQ(without_controls("\x1b[31mred\x07\x7f \xc2\x9b" "2J \xc2\x9d" "0;t \xe2\x80\xae" "x \xc3\xa9\xff"), "[31mred 2J 0;t x \xc3\xa9\xef\xbf\xbd");
}

TEST(Log, ForeignTextCannotForgeALine) {
    Pipe pipe;
    Logger log(pipe.write_end(), true);
    log.write(LogLevel::info, "agent \x1b[2J\r\n<3>forged \xff\xc2\x85");
    EXPECT_EQ(pipe.take(), "<6>agent \\x1b[2J\\r\\n<3>forged \\xff\\u{0085}\n");
    log.write(LogLevel::info, std::string(1'000'000, '\x01'));
    const std::string line = pipe.take();
    EXPECT_LE(line.size(), limits::log_line_bytes);
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
    std::string euros;
    while (euros.size() < 10'000) euros += "\xe2\x82\xac";
    log.write(LogLevel::info, euros);
    EXPECT_TRUE(pipe.take().ends_with("\xe2\x82\xac...\n")) << "cut between characters";
}

TEST(Log, AReaderThatStoppedStopsNobody) {
    Pipe pipe;
    Logger log(pipe.write_end(), false);
    for (int i = 0; i < 10'000; ++i) log.write(LogLevel::info, "a line that fills the pipe after some thousand times");
    EXPECT_GT(log.dropped(), 0u);
    const uint64_t dropped = log.dropped();
    pipe.take();
    log.write(LogLevel::info, "again");
    EXPECT_EQ(pipe.take(), "again\n");
    EXPECT_EQ(log.dropped(), dropped);
    // A full disk.
    const int full = open("/dev/full", O_WRONLY);
    ASSERT_GE(full, 0);
    Logger to_full(full, false);
    to_full.write(LogLevel::error, "lost");
    EXPECT_EQ(to_full.dropped(), 1u);
    close(full);
}

TEST(Log, ThreadsDoNotMixLines) {
    Pipe pipe;
    Logger log(pipe.write_end(), false);
    std::vector<std::thread> threads;
    for (char c = 'a'; c < 'e'; ++c)
        threads.emplace_back([&log, c] { for (int i = 0; i < 100; ++i) log.write(LogLevel::info, std::string(60, c)); });
    for (std::thread& thread : threads) thread.join();
    const std::string all = pipe.take();
    for (size_t at = 0; at < all.size(); at += 61) ASSERT_EQ(all.substr(at, 61), std::string(60, all[at]) + "\n");
}

TEST(Log, KnowsTheJournal) {
    Pipe pipe;
    struct stat status {};
    ASSERT_EQ(fstat(pipe.write_end(), &status), 0);
    const std::string own = cat(uint64_t{status.st_dev}, ':', uint64_t{status.st_ino});
    EXPECT_TRUE(is_journal_stream(pipe.write_end(), own.c_str()));
    EXPECT_FALSE(is_journal_stream(pipe.write_end(), "8:1"));
    EXPECT_FALSE(is_journal_stream(pipe.write_end(), (own + "0").c_str()));
    EXPECT_FALSE(is_journal_stream(pipe.write_end(), ""));
    EXPECT_FALSE(is_journal_stream(pipe.write_end(), nullptr));
    EXPECT_FALSE(is_journal_stream(-1, own.c_str()));
}

}  // namespace
}  // namespace base
