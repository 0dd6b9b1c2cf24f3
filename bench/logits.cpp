// Runs a model over given token ids, cut into windows, and writes what a comparison with another program needs.
//
//   hearth_logits MODEL TOKENS [--out FILE] [--window N] [--chunk N] [--threads N] [--isa NAME] [--kv f16|f32]
//                [--activation-bits 8|16]
//
// TOKENS: text file of token ids. Each window of N tokens (default: all) starts from an empty KV. Prints positions, the mean negative
// log likelihood of each next token, and the perplexity. FILE: for every position, n_vocab fp32 logits.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "gguf/file.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: hearth_logits MODEL TOKENS [--out FILE] [--window N] [--chunk N] [--threads N] [--isa NAME] [--kv f16|f32] [--activation-bits 8|16]\n");
        return 2;
    }
    kernels::cpu::CpuOptions cpu;
    model::ModelOptions options;
    options.kv_type = kernels::KvType::f32;
    std::string out_path;
    uint32_t window = 0, chunk = 64;
    for (int i = 3; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--out") out_path = value;
        else if (flag == "--window") window = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--chunk") chunk = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--threads") cpu.threads = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--isa") cpu.isa = value;
        else if (flag == "--activation-bits") cpu.activation_bits = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--kv") options.kv_type = value == "f16" ? kernels::KvType::f16 : kernels::KvType::f32;
        else return std::fprintf(stderr, "unknown option %s\n", argv[i]), 2;
    }
    std::vector<model::TokenId> tokens;
    std::ifstream in(argv[2]);
    for (model::TokenId id; in >> id;) tokens.push_back(id);
    if (tokens.empty()) return std::fprintf(stderr, "%s: no token ids\n", argv[2]), 2;
    if (window == 0 || window > tokens.size()) window = static_cast<uint32_t>(tokens.size());

    auto mapped = base::system_files().open_mapped(argv[1]);
    if (!mapped) return std::fprintf(stderr, "%s\n", mapped.error().message.c_str()), 2;
    auto file = gguf::File::parse(mapped.value()->bytes(), argv[1]);
    if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 2;
    auto backend = kernels::cpu::create(cpu);
    if (!backend) return std::fprintf(stderr, "%s\n", backend.error().message.c_str()), 2;
    options.kv_blocks_count = (window + limits::kv_block_tokens - 1) / limits::kv_block_tokens;
    options.logit_rows_max = limits::sequences_running;
    if (chunk > options.logit_rows_max) chunk = options.logit_rows_max;
    auto loaded = model::Model::load(file.value(), std::move(backend).value(), options);
    if (!loaded) return std::fprintf(stderr, "%s\n", loaded.error().message.c_str()), 2;
    model::Model& model = *loaded.value();

    std::vector<model::BlockIndex> table(options.kv_blocks_count);
    for (uint32_t i = 0; i < table.size(); ++i) table[i] = i;
    std::FILE* out = out_path.empty() ? nullptr : std::fopen(out_path.c_str(), "wb");
    double loss = 0;
    size_t scored = 0, positions = 0;
    for (size_t start = 0; start + window <= tokens.size(); start += window) {
        for (uint32_t at = 0; at < window; at += chunk) {
            const uint32_t n = std::min(chunk, window - at);
            std::vector<uint32_t> rows(n);
            for (uint32_t i = 0; i < n; ++i) rows[i] = i;
            const model::SequenceSlice slice{0, n, at, table};
            const model::Logits logits = model.forward({std::span(tokens).subspan(start + at, n), {&slice, 1}, rows});
            for (uint32_t i = 0; i < n; ++i, ++positions) {
                const std::span<const float> row = logits.row(i);
                if (!std::all_of(row.begin(), row.end(), [](float logit) { return std::isfinite(logit); })) std::fprintf(stderr, "position %zu: logits are not sound\n", start + at + i);
                if (out) std::fwrite(row.data(), sizeof(float), row.size(), out);
                if (at + i + 1 >= window) continue;
                double max = -1e300, sum = 0;
                for (float logit : row) max = std::max(max, double{logit});
                for (float logit : row) sum += std::exp(logit - max);
                loss -= row[static_cast<size_t>(tokens[start + at + i + 1])] - max - std::log(sum);
                ++scored;
            }
        }
    }
    if (out) std::fclose(out);
    const double nll = loss / static_cast<double>(scored);
    std::printf("%s positions %zu scored %zu nll %.8f ppl %.6f\n", std::string(model.backend().name()).c_str(), positions, scored, nll, std::exp(nll));
    return 0;
}
