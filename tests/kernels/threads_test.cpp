// How many threads to use, read from a made-up /sys and /proc. The affinity mask is the real one, so each expectation is
// in terms of `allowed`; a machine with one CPU checks less.
#include "kernels/cpu/threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using kernels::cpu::count_cpus;

class Threads : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/hearth-threads-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root_ = name;
        cpu_set_t set;
        ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
        for (int i = 0; i < CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &set)) cpus_.push_back(i);
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) {
        const std::string whole = root_ + path;
        std::filesystem::create_directories(whole.substr(0, whole.rfind('/')));
        std::ofstream(whole, std::ios::binary) << text;
    }
    void siblings(int cpu, const std::string& text) {
        write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", text);
    }
    uint32_t allowed() const { return static_cast<uint32_t>(cpus_.size()); }
    // What a quota of `cpus` leaves of the machine.
    uint32_t threads_at(double cpus) const { return std::max(1u, std::min(allowed(), static_cast<uint32_t>(std::ceil(cpus)))); }
    void expect_quota(double cpus) {
        const auto count = count_cpus(root_);
        EXPECT_DOUBLE_EQ(count.cgroup_cpus, cpus);
        EXPECT_EQ(count.threads, cpus == 0 ? allowed() : threads_at(cpus));
        EXPECT_EQ(count.allowed, allowed());
    }

    std::string root_;
    std::vector<int> cpus_;
};

TEST_F(Threads, NothingIsWrittenAnywhere) {
    const auto count = count_cpus(root_);
    EXPECT_EQ(count.allowed, allowed());
    EXPECT_EQ(count.cores, allowed());
    EXPECT_EQ(count.cgroup_cpus, 0);
    EXPECT_EQ(count.threads, allowed());
}

TEST_F(Threads, TheRealMachine) {
    const auto count = count_cpus();
    EXPECT_EQ(count.allowed, allowed());
    EXPECT_GE(count.cores, 1u);
    EXPECT_LE(count.cores, count.allowed);
    EXPECT_GE(count.threads, 1u);
    EXPECT_LE(count.threads, count.cores);
}

TEST_F(Threads, TwoThreadsOfOneCoreCountOnce) {
    for (const int cpu : cpus_) siblings(cpu, "0-511\n");  // one core for all
    EXPECT_EQ(count_cpus(root_).cores, 1u);
    EXPECT_EQ(count_cpus(root_).threads, 1u);
    EXPECT_EQ(count_cpus(root_).allowed, allowed());
    for (const int cpu : cpus_) siblings(cpu, std::to_string(cpu) + "," + std::to_string(cpu + 1000) + "\n");
    EXPECT_EQ(count_cpus(root_).cores, allowed());
    // A file that is missing or empty makes its CPU a core of its own.
    siblings(cpus_[0], "");
    EXPECT_EQ(count_cpus(root_).cores, allowed());
}

TEST_F(Threads, OnlyAllowedCpusAreLookedAt) {
    for (int cpu = 0; cpu < 64; ++cpu) siblings(cpu, std::to_string(cpu) + "\n");
    EXPECT_EQ(count_cpus(root_).cores, allowed());
}

TEST_F(Threads, AnAffinityMaskOfOne) {
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(cpus_.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto count = count_cpus(root_);
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_EQ(count.allowed, 1u);
    EXPECT_EQ(count.threads, 1u);
}

TEST_F(Threads, CgroupVersion2) {
    write("/proc/self/cgroup", "0::/system.slice/hearth.service\n");
    expect_quota(0);  // the group has no cpu.max
    const std::string own = "/sys/fs/cgroup/system.slice/hearth.service/cpu.max";
    write(own, "max 100000\n");
    expect_quota(0);
    write(own, "100000 100000\n");
    expect_quota(1);
    write(own, "50000 100000\n");
    expect_quota(0.5);  // one thread, not none
    write(own, "150000 100000\n");
    expect_quota(1.5);  // rounded up: the second thread runs half of the time
    write(own, "6400000 100000\n");
    expect_quota(64);
    write(own, "20000 10000");  // another period, no newline
    expect_quota(2);
}

TEST_F(Threads, TheTightestOfAGroupAndItsParents) {
    write("/proc/self/cgroup", "0::/a/b/c\n");
    write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
    expect_quota(8);
    write("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    expect_quota(1);
    write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    expect_quota(1);
    write("/sys/fs/cgroup/a/b/c/cpu.max", "25000 100000\n");
    expect_quota(0.25);
    write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    expect_quota(0);
    write("/sys/fs/cgroup/cpu.max", "300000 100000\n");  // a container sees its own group as the root
    expect_quota(3);
    write("/sys/fs/cgroup/x/cpu.max", "1000 100000\n");  // not a parent
    expect_quota(3);
}

TEST_F(Threads, RootOfVersion2) {
    write("/proc/self/cgroup", "0::/\n");
    write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    expect_quota(1);
}

TEST_F(Threads, CgroupVersion1) {
    write("/proc/self/cgroup", "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n");
    expect_quota(0);
    // The controllers' own mount, under its long name; -1 is "no limit".
    write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
    write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    expect_quota(0);
    write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "200000\n");
    expect_quota(2);
    // The short name, and a parent that is tighter.
    write("/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "50000\n");
    write("/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
    expect_quota(0.5);
    // Both in one file, as with the hybrid hierarchy: the tighter counts.
    write("/sys/fs/cgroup/cpu.max", "25000 100000\n");
    expect_quota(0.25);
}

TEST_F(Threads, ControllersOfAnotherNameAreNotThese) {
    write("/proc/self/cgroup", "4:cpuset:/g\n5:cpuacct:/g\n6:name=cpu:/g\n");
    write("/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "50000\n");
    write("/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n");
    expect_quota(0);
}

TEST_F(Threads, GarbageIsNoLimit) {
    write("/proc/self/cgroup", "0::/g\n4:cpu:/g\n");
    write("/sys/fs/cgroup/cpu/g/cpu.cfs_period_us", "100000\n");
    for (const char* bad : {"", "\n", "max", "100000", "0 100000", "-1 100000", "100000 0", "100000 -5", "x y", "nan 100000", "100000 nan", "\xff\xfe\x00"}) {
        write("/sys/fs/cgroup/g/cpu.max", bad);
        write("/sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", bad[0] == '1' ? "" : bad);
        EXPECT_EQ(count_cpus(root_).cgroup_cpus, 0) << bad;
        EXPECT_EQ(count_cpus(root_).threads, allowed()) << bad;
    }
    // Numbers no quota has: far more, and far less, than any number of threads.
    write("/sys/fs/cgroup/g/cpu.max", "1e300 1\n");
    EXPECT_EQ(count_cpus(root_).threads, allowed());
    write("/sys/fs/cgroup/g/cpu.max", "18446744073709551615 1\n");
    EXPECT_EQ(count_cpus(root_).threads, allowed());
    write("/sys/fs/cgroup/g/cpu.max", "1 18446744073709551615\n");
    EXPECT_EQ(count_cpus(root_).threads, 1u);
}

TEST_F(Threads, GarbageInTheListOfGroups) {
    write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    for (const std::string& bad : {std::string(), std::string("\n\n"), std::string("0:"), std::string(":"), std::string("nonsense"), std::string(1'000'000, 'x')}) {
        write("/proc/self/cgroup", bad);
        EXPECT_EQ(count_cpus(root_).cgroup_cpus, 0) << bad.substr(0, 20);
        EXPECT_EQ(count_cpus(root_).threads, allowed());
    }
    // A path deeper than any hierarchy, and one without its slash: an answer in the end, whatever it is.
    for (const std::string& path : {std::string(100'000, '/'), std::string("relative"), std::string("/../../..")}) {
        write("/proc/self/cgroup", "0::" + path + "\n");
        EXPECT_GE(count_cpus(root_).threads, 1u);
        EXPECT_LE(count_cpus(root_).threads, allowed());
    }
}

}  // namespace
