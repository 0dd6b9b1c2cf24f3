#include "commands/available_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>

namespace commands {
namespace {

constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();

std::optional<std::string> read_text(const std::string& path) {
    std::ifstream in(path);
    if (!in) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

// The number at the front of `text`; nothing for "max" and for anything else that is no number.
std::optional<uint64_t> leading_number(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end == text.data()) return std::nullopt;
    return value;
}

std::optional<uint64_t> read_number(const std::string& path) {
    const std::optional<std::string> text = read_text(path);
    return text ? leading_number(*text) : std::nullopt;
}

// A line "name value" of a key-value file.
std::optional<uint64_t> read_key(const std::string& path, std::string_view key) {
    const std::optional<std::string> text = read_text(path);
    if (!text) return std::nullopt;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(key) && line.size() > key.size() && (line[key.size()] == ' ' || line[key.size()] == ':'))
            return leading_number(std::string_view(line).substr(key.size() + 1));
    return std::nullopt;
}

uint64_t machine_available(const std::string& root) {
    if (const std::optional<uint64_t> kib = read_key(root + "/proc/meminfo", "MemAvailable")) return *kib * 1024;
    struct sysinfo info {};
    if (sysinfo(&info) != 0) return no_limit;
    return (uint64_t{info.freeram} + info.bufferram) * info.mem_unit;
}

// What one cgroup still leaves; its inactive file pages can be dropped.
uint64_t cgroup_left(const std::string& limit_file, const std::string& usage_file, const std::string& stat_file) {
    const std::optional<uint64_t> limit = read_number(limit_file);
    const std::optional<uint64_t> usage = read_number(usage_file);
    if (!limit || !usage) return no_limit;
    const uint64_t droppable = std::min(read_key(stat_file, "inactive_file").value_or(0), *usage);
    const uint64_t used = *usage - droppable;
    return *limit > used ? *limit - used : 0;
}

uint64_t cgroup_available(const std::string& root) {
    const std::optional<std::string> membership = read_text(root + "/proc/self/cgroup");
    if (!membership) return no_limit;
    uint64_t left = no_limit;
    std::istringstream lines(*membership);
    for (std::string line; std::getline(lines, line);) {
        // "0::/path" (v2) or "9:memory:/path" (v1)
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        std::string path = line.substr(second + 1);
        const bool v2 = controllers.empty();
        if (!v2 && controllers != "memory") continue;
        const std::string mount = root + (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
        // Every ancestor may be tighter. The path as seen from outside may not exist inside a container: the loop then
        // ends at the mount itself, which is the container's own group.
        while (true) {
            if (path == "/") path.clear();
            const std::string folder = mount + path;
            left = std::min(
                left, v2 ? cgroup_left(folder + "/memory.max", folder + "/memory.current", folder + "/memory.stat")
                         : cgroup_left(folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes", folder + "/memory.stat"));
            if (path.empty()) break;
            path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
        }
    }
    return left;
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
    const uint64_t machine = machine_available(root), cgroup = cgroup_available(root);
    return {std::min(machine, cgroup), cgroup < machine};
}

}  // namespace commands
