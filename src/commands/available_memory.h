// How much memory this process may still take: the machine's and the cgroup's limit, whichever is tighter.
#pragma once

#include <cstdint>
#include <string>

namespace commands {

struct AvailableMemory {
    uint64_t bytes = 0;  // that may still be taken
    bool limited_by_cgroup = false;
};

// Reads /proc/meminfo (or sysinfo where a unit hides it) and the cgroup (v2 memory.max and memory.current up to the
// root, v1 memory.limit_in_bytes). Page cache that can be dropped counts as available. `root` is put in front of every
// path, for tests. Files that are missing or odd count as no limit.
AvailableMemory available_memory(const std::string& root = "");

}  // namespace commands
