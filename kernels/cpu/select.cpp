#include "kernels/cpu/select.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstdlib>
#include <string>

#include "kernels/cpu/cpu.h"

namespace kernels::cpu {
namespace {

#if defined(__x86_64__)
// By CPUID itself: clang 14's builtin doesn't know the name. That the system saves the registers is in the answer for avx2.
bool has_f16c() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif
bool always() { return true; }

constexpr IsaRow rows[] = {
#if defined(__x86_64__)
    {"avx512", has_avx512, avx512::install},
    {"avx2", has_avx2, avx2::install},
#endif
    {"scalar", always, scalar::install},
};
constexpr size_t rows_count = std::size(rows);

constexpr std::array<std::string_view, rows_count> names = [] {
    std::array<std::string_view, rows_count> result;
    for (size_t i = 0; i < rows_count; ++i) result[i] = rows[i].name;
    return result;
}();

const IsaRow* find(std::string_view name) {
    for (const IsaRow& row : rows)
        if (row.name == name) return &row;
    return nullptr;
}

}  // namespace

std::span<const std::string_view> known_isas() { return names; }

bool isa_runs_here(std::string_view isa) {
    const IsaRow* row = find(isa);
    return row && row->runs_here();
}

std::string_view best_isa() {
    for (const IsaRow& row : rows)
        if (row.runs_here()) return row.name;
    return "scalar";
}

base::Result<const IsaRow*> select_isa(std::string_view wanted) {
    const char* source = "isa";
    if (wanted.empty()) {
        const char* environment = std::getenv("HEARTH_ISA");
        if (environment && *environment) {
            wanted = environment;
            source = "HEARTH_ISA";
        }
    }
    if (wanted.empty()) return find(best_isa());
    const IsaRow* row = find(wanted);
    if (!row) {
        std::string known;
        for (std::string_view name : names) known += (known.empty() ? "" : ", ") + std::string(name);
        return base::Error{base::ErrorCode::invalid_argument, std::string(source) + " is \"" + std::string(wanted.substr(0, 32)) + "\"; allowed: " + known, "isa"};
    }
    if (!row->runs_here())
        return base::Error{base::ErrorCode::unsupported, std::string(source) + " is \"" + std::string(wanted) + "\", which this machine cannot run; it can run " + std::string(best_isa()), "isa"};
    return row;
}

KernelTable make_table(const IsaRow& row) {
    KernelTable table;
    for (size_t i = rows_count; i-- > 0;) {
        rows[i].install(table);
        if (&rows[i] == &row) break;
    }
    return table;
}

}  // namespace kernels::cpu
