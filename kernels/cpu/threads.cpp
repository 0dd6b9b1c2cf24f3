#include "kernels/cpu/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

namespace kernels::cpu {
namespace {

std::string first_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

// CPUs of one directory's quota; 0 = none.
double quota_v2(const std::string& directory) {
    std::istringstream in(first_line(directory + "/cpu.max"));
    double quota = 0, period = 0;
    if (in >> quota >> period && quota > 0 && period > 0) return quota / period;  // "max 100000" fails at `quota`
    return 0;
}

double quota_v1(const std::string& directory) {
    std::istringstream quota_in(first_line(directory + "/cpu.cfs_quota_us")), period_in(first_line(directory + "/cpu.cfs_period_us"));
    double quota = 0, period = 0;
    if (quota_in >> quota && period_in >> period && quota > 0 && period > 0) return quota / period;
    return 0;
}

void tighten(double& best, double found) {
    if (found > 0 && (best == 0 || found < best)) best = found;
}

// The quota of `path` and of each of its parents below `mount`.
void walk_up(double& best, const std::string& mount, std::string path, double (*quota)(const std::string&)) {
    for (int depth = 0; depth < 64; ++depth) {
        tighten(best, quota(mount + path));
        if (path.empty() || path == "/") return;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
}

double cgroup_cpus(const std::string& root) {
    double best = 0;
    std::ifstream in(root + "/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
        // "0::/path" is v2; "4:cpu,cpuacct:/path" is v1.
        const size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty()) {
            walk_up(best, root + "/sys/fs/cgroup", path, quota_v2);
        } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
            walk_up(best, root + "/sys/fs/cgroup/cpu", path, quota_v1);
            walk_up(best, root + "/sys/fs/cgroup/" + controllers, path, quota_v1);
        }
    }
    return best;
}

std::vector<int> allowed_cpus() {
    // The mask may be wider than cpu_set_t on big machines: grow until the call takes it.
    for (int cpus = 1024; cpus <= 1 << 18; cpus *= 4) {
        cpu_set_t* set = CPU_ALLOC(cpus);
        if (!set) break;
        const size_t bytes = CPU_ALLOC_SIZE(cpus);
        std::vector<int> result;
        const bool ok = sched_getaffinity(0, bytes, set) == 0;
        if (ok)
            for (int i = 0; i < cpus; ++i)
                if (CPU_ISSET_S(i, bytes, set)) result.push_back(i);
        CPU_FREE(set);
        if (ok && !result.empty()) return result;
    }
    return {0};
}

}  // namespace

CpuCount count_cpus(const std::string& root) {
    CpuCount count;
    const std::vector<int> cpus = allowed_cpus();
    count.allowed = static_cast<uint32_t>(cpus.size());
    std::set<std::string> cores;
    for (int cpu : cpus) {
        const std::string siblings = first_line(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
        cores.insert(siblings.empty() ? "cpu" + std::to_string(cpu) : siblings);
    }
    count.cores = static_cast<uint32_t>(cores.size());
    count.cgroup_cpus = cgroup_cpus(root);
    count.threads = count.cores;
    // Compared as doubles: a quota may be written that no uint32_t holds.
    if (count.cgroup_cpus > 0) count.threads = static_cast<uint32_t>(std::ceil(std::min<double>(count.threads, count.cgroup_cpus)));
    count.threads = std::max(count.threads, 1u);
    return count;
}

}  // namespace kernels::cpu
