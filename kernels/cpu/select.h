// Which ISA runs: rows in priority order; the first that the machine has wins unless one is forced.
#pragma once

#include <string_view>

#include "base/result.h"
#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {

struct IsaRow {
    std::string_view name;
    bool (*runs_here)();
    void (*install)(KernelTable&);
};

// `wanted` as CpuOptions::isa.
base::Result<const IsaRow*> select_isa(std::string_view wanted);

// The table of one ISA: scalar, overridden by every row from the last one up to this.
KernelTable make_table(const IsaRow& row);

}  // namespace kernels::cpu
