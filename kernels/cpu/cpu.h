// The CPU backend's door.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/backend.h"

namespace kernels::cpu {

struct CpuOptions {
    uint32_t threads = 0;  // that compute, the caller among them; 0 = count_cpus().threads (threads.h)
    std::string isa;       // "scalar", "avx2", "avx512"; empty = the environment's HEARTH_ISA, else the best one here
    // Bits of an activation in products with integer weights. 16: two levels of 8, so the product is as exact as the stored
    // weights (KL to an exact forward pass 7e-8 on SmolLM2 Q4_1). 8: half the work in prefill, KL 3.1e-3 there, what other
    // programs do. Measured beside llama.cpp on the decoded file (tests/golden/expand_to_f32.py) with bench/logits.cpp.
    uint32_t activation_bits = 16;
};

inline constexpr uint32_t threads_max = 256;

// The names this build knows, best first, and those that this machine can run.
std::span<const std::string_view> known_isas();
bool isa_runs_here(std::string_view isa);
std::string_view best_isa();

// Bytes of one KV block of 64 tokens, all layers, K and V.
uint64_t kv_block_bytes(const KvShape& shape);

// invalid_argument names an unknown ISA, unsupported one that this machine lacks. Starts threads - 1 threads, which
// sleep; unavailable when the system has no more.
base::Result<std::unique_ptr<Backend>> create(const CpuOptions& options);

}  // namespace kernels::cpu
