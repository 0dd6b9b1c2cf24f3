// The families of models, one function each: what it reads beyond the common shape, and what its graph does differently.
// Called with the common fields of `config` filled in, all layers alike and one rope without scaling in mind; errors stick
// in the reader.
#pragma once

#include <span>
#include <string_view>

#include "model/config.h"
#include "model/key_reader.h"

namespace model {

struct Family {
    std::string_view name;  // general.architecture
    void (*read)(KeyReader& reader, Config& config);
};

// By name.
std::span<const Family> families();

void read_llama(KeyReader& reader, Config& config);
void read_smollm3(KeyReader& reader, Config& config);
void read_granite(KeyReader& reader, Config& config);
void read_qwen2(KeyReader& reader, Config& config);
void read_qwen3(KeyReader& reader, Config& config);
void read_qwen3moe(KeyReader& reader, Config& config);
void read_gemma(KeyReader& reader, Config& config);
void read_gemma2(KeyReader& reader, Config& config);
void read_gemma3(KeyReader& reader, Config& config);
void read_phi3(KeyReader& reader, Config& config);
void read_olmo2(KeyReader& reader, Config& config);

// --- what several share ---

// n_experts, n_experts_used and, from expert_feed_forward_length where there is one, n_ff. Sets nothing when the file has no
// experts.
void read_experts(KeyReader& reader, Config& config);
// attention.sliding_window on the layers of which (index % period) is below period - 1, period from
// attention.sliding_window_pattern (a number, or one flag a layer); period 1: every layer. `missing`: the window when the file
// names none, 0 for no window at all. true: there are windows.
bool read_windows(KeyReader& reader, Config& config, uint32_t period, uint32_t missing);
// The same for families whose windows have a rope of their own, by rope.freq_base_swa: angles of a short context, never scaled.
// After the rope of the other layers.
void read_windows_with_rope(KeyReader& reader, Config& config, uint32_t period, double base_missing);

}  // namespace model
