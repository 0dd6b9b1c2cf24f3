// How many threads may compute here.
#pragma once

#include <cstdint>
#include <string>

namespace kernels::cpu {

struct CpuCount {
    uint32_t allowed = 1;      // logical CPUs in this process's affinity mask
    uint32_t cores = 1;        // physical cores among them; two threads of one core share its vector units
    double cgroup_cpus = 0;    // the tightest CPU quota of the cgroup and its parents, in CPUs; 0 = none
    uint32_t threads = 1;      // what to use: min(cores, quota rounded up), at least 1
};

// Reads sched_getaffinity, /sys/devices/system/cpu and the cgroup (v2 cpu.max, v1 cpu.cfs_quota_us). `root` is put in front
// of every path, for tests. Missing or odd files count as no limit.
CpuCount count_cpus(const std::string& root = "");

}  // namespace kernels::cpu
