// How the memory is divided, what the machine says it has, and what systemd is told: the parts of serving that need no
// model.
#include "commands/loaded_model.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/message.h"
#include "commands/available_memory.h"
#include "commands/sd_notify.h"
#include "commands/words.h"

namespace {

constexpr uint64_t mib = limits::mib, gib = 1024 * mib;

// A model whose KV takes 1 MiB a block of 64 tokens, with 1 GiB of weights.
model::MemoryPlan plan() {
    model::MemoryPlan p;
    p.weights_bytes = 1 * gib;
    p.kv_block_bytes = 1 * mib;
    return p;
}

uint32_t blocks(const std::string& budget, uint64_t available, uint32_t context, uint32_t sequences = 64) {
    const auto chosen = commands::choose_kv_blocks(budget, plan(), available, context, sequences);
    EXPECT_TRUE(chosen.ok()) << (chosen ? "" : chosen.error().message);
    return chosen ? chosen.value() : 0;
}

std::string refusal(const std::string& budget, uint64_t available, uint32_t context) {
    const auto chosen = commands::choose_kv_blocks(budget, plan(), available, context, 64);
    EXPECT_FALSE(chosen.ok());
    return chosen ? "" : chosen.error().message;
}

TEST(KvBudget, AutoTakesHalfOfWhatIsLeftUpToTwoGigabytes) {
    EXPECT_EQ(blocks("auto", 16 * gib, 8192), 2048u);
    // 1 GiB of weights and 256 MiB spare leave 1 GiB: half of it.
    EXPECT_EQ(blocks("auto", 2 * gib + 256 * mib, 8192), 512u);
    // A long context may have more than 2 GiB: four of 1 GiB each.
    EXPECT_EQ(blocks("auto", 64 * gib, 65536), 4096u);
    // At least one context, even where that is more than half.
    EXPECT_EQ(blocks("auto", 2 * gib + 256 * mib, 65536), 1024u);
    // Never more than all sequences could use.
    EXPECT_EQ(blocks("auto", 16 * gib, 640, 3), 30u);
}

TEST(KvBudget, RefusesWhenNotOneContextFits) {
    EXPECT_EQ(refusal("auto", 2 * gib, 65536),
              "the KV of one context of 65536 tokens takes 1.0 GiB (1073741824 bytes), and beside weights and working memory of 1.0 GiB "
              "there is 768 MiB (805306368 bytes); --context 49152 would fit");
    EXPECT_NE(refusal("auto", 1 * gib, 64).find("not even one block"), std::string::npos);
    EXPECT_NE(refusal("100M", 16 * gib, 8192).find("the KV budget is 100 MiB (104857600 bytes); --context 6400 would fit"), std::string::npos);
    EXPECT_NE(refusal("20G", 16 * gib, 8192).find("does not fit"), std::string::npos);
}

TEST(KvBudget, BytesWithASuffix) {
    EXPECT_EQ(blocks("134217728", 16 * gib, 8192), 128u);
    EXPECT_EQ(blocks("131072K", 16 * gib, 8192), 128u);
    EXPECT_EQ(blocks("2g", 16 * gib, 8192), 2048u);
    for (const char* bad : {"", "M", "-5", "1T", "1.5G", "99999999999999999999", "0x10", "5000G"})
        EXPECT_NE(refusal(bad, 16 * gib, 64).find("kv-budget must be"), std::string::npos) << bad;
}

TEST(KvBudget, TheSumNeverPassesWhatThereIs) {
    for (uint64_t available = 1280; available < 20'000; available += 777)
        for (uint32_t context : {64u, 100u, 4096u, 131072u}) {
            const auto chosen = commands::choose_kv_blocks("auto", plan(), available * mib, context, 64);
            if (!chosen) continue;
            EXPECT_LE(chosen.value() * mib + plan().fixed_bytes(), available * mib);
            EXPECT_GE(chosen.value() * 64u, context);
        }
}

TEST(BytesText, Units) {
    EXPECT_EQ(commands::bytes_text(0), "0 bytes");
    EXPECT_EQ(commands::bytes_text(5 * mib), "5 MiB");
    EXPECT_EQ(commands::bytes_text(3 * gib / 2), "1.5 GiB");
}

TEST(InFile, NamesTheFileOnce) {
    using base::ErrorCode;
    const auto text = [](ErrorCode code, const char* message) { return commands::in_file({code, message, ""}, "a\nb.gguf").message; };
    EXPECT_EQ(text(ErrorCode::bad_file, "key x at byte 7 is 0"), base::printable("a\nb.gguf") + ": key x at byte 7 is 0");
    EXPECT_EQ(text(ErrorCode::unsupported, "key y"), base::printable("a\nb.gguf") + ": key y");
    EXPECT_EQ(text(ErrorCode::bad_file, (base::printable("a\nb.gguf") + ": cut").c_str()), base::printable("a\nb.gguf") + ": cut");
    EXPECT_EQ(text(ErrorCode::invalid_argument, "--context"), "--context");
}

class Root : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/hearth-root-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
        std::ofstream(root_ + path) << text;
    }
    std::string root_;
};

using AvailableMemory = Root;

TEST_F(AvailableMemory, TheTighterOfMachineAndCgroups) {
    write("/proc/meminfo", "MemTotal:       32000000 kB\nMemFree:         100000 kB\nMemAvailable:    8000000 kB\n");
    EXPECT_EQ(commands::available_memory(root_).bytes, 8'192'000'000u);
    EXPECT_FALSE(commands::available_memory(root_).limited_by_cgroup);
    write("/proc/self/cgroup", "0::/system.slice/hearth.service\n");
    EXPECT_EQ(commands::available_memory(root_).bytes, 8'192'000'000u);  // no limit is written anywhere
    write("/sys/fs/cgroup/system.slice/hearth.service/memory.max", "max\n");
    write("/sys/fs/cgroup/system.slice/hearth.service/memory.current", "1000\n");
    EXPECT_EQ(commands::available_memory(root_).bytes, 8'192'000'000u);
    // The parent's limit counts; inactive file pages can be dropped.
    write("/sys/fs/cgroup/system.slice/memory.max", "4294967296\n");
    write("/sys/fs/cgroup/system.slice/memory.current", "2147483648\n");
    write("/sys/fs/cgroup/system.slice/memory.stat", "anon 1\ninactive_file 1073741824\n");
    EXPECT_EQ(commands::available_memory(root_).bytes, 3 * gib);
    EXPECT_TRUE(commands::available_memory(root_).limited_by_cgroup);
    // Over its limit: nothing, not a wrapped number.
    write("/sys/fs/cgroup/system.slice/memory.max", "1048576\n");
    EXPECT_EQ(commands::available_memory(root_).bytes, 0u);
}

TEST_F(AvailableMemory, Version1AndOddFiles) {
    write("/proc/meminfo", "MemAvailable: nonsense\n");
    write("/proc/self/cgroup", "4:memory:/docker/abc\n3:cpu:/x\nnonsense\n");
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");  // the container's own group, at the mount
    write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    EXPECT_LE(commands::available_memory(root_).bytes, 1 * gib);
    EXPECT_GT(commands::available_memory(root_).bytes, 0u);
}

TEST(SdNotify, DatagramsToAPathAndToAnAbstractName) {
    for (const bool abstract : {false, true}) {
        const std::string name = base::cat(abstract ? "@hearth-test-" : "/tmp/hearth-test-", getpid());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, name.data(), name.size());
        if (abstract) address.sun_path[0] = '\0';
        const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
        const commands::SdNotify notify(name);
        EXPECT_TRUE(notify.send("READY=1\nSTATUS=x"));
        char buffer[64];
        EXPECT_EQ(std::string(buffer, static_cast<size_t>(recv(fd, buffer, sizeof buffer, 0))), "READY=1\nSTATUS=x");
        close(fd);
        if (!abstract) unlink(name.c_str());
        EXPECT_FALSE(notify.send("READY=1"));  // nobody listens any more: said, not fatal
    }
    EXPECT_FALSE(commands::SdNotify("").enabled());
    EXPECT_FALSE(commands::SdNotify("relative").send("x"));
    EXPECT_FALSE(commands::SdNotify(std::string(1, '/').append(200, 'x')).send("x"));
}

TEST(SdNotify, ReadsAndClearsTheEnvironment) {
    setenv("NOTIFY_SOCKET", "/run/x", 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    const commands::SdNotify other;
    EXPECT_TRUE(other.enabled());
    EXPECT_EQ(other.watchdog_us(), 0u);  // meant for another process
    EXPECT_EQ(getenv("NOTIFY_SOCKET"), nullptr);
    setenv("WATCHDOG_USEC", "30000000", 1);
    EXPECT_EQ(commands::SdNotify().watchdog_us(), 30'000'000u);
}

}  // namespace
