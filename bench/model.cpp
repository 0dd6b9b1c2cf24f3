// Speed of the forward pass on a model file, without server and sampling, as llama-bench measures its peer: pseudo-random tokens,
// prefill from an empty KV with the logits of the last token, decode from an empty KV.
//
//   hearth_bench_model MODEL [--threads N] [--prefill N] [--decode N] [--batch 1,8,32]
//     [--context N] [--repeat N] [--isa NAME] [--kv f16|f32]
//                     [--activation-bits 8|16]
//
// Prints a line a cell: tokens/s as median (min - max) over the repetitions, multiply-adds and weight bytes a second, tokens per
// second of CPU time.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "gguf/file.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"

namespace {

// CPU seconds of the whole process: on a machine that is not quiet, tokens per CPU second still tell something.
double cpu_s() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Bench {
    model::Model& model;
    uint32_t blocks_each;  // KV blocks of a sequence
    std::vector<std::vector<model::BlockIndex>> tables;

    explicit Bench(model::Model& m, uint32_t sequences, uint32_t tokens) : model(m), blocks_each((tokens + limits::kv_block_tokens - 1) / limits::kv_block_tokens) {
        for (uint32_t s = 0; s < sequences; ++s) {
            tables.emplace_back();
            for (uint32_t i = 0; i < blocks_each; ++i) tables.back().push_back(s * blocks_each + i);
        }
    }
    model::TokenId token(uint32_t i) const { return static_cast<model::TokenId>((i * 2654435761u >> 8) % model.n_vocab()); }

    void prefill(uint32_t sequence, uint32_t n) {
        for (uint32_t at = 0; at < n; at += limits::step_tokens) {
            const uint32_t rows = std::min(limits::step_tokens, n - at);
            std::vector<model::TokenId> tokens(rows);
            for (uint32_t i = 0; i < rows; ++i) tokens[i] = token(at + i);
            const model::SequenceSlice slice{0, rows, at, tables[sequence]};
            const uint32_t last = rows - 1;
            const bool wanted = at + rows == n;
            model.forward({tokens, {&slice, 1}, wanted ? std::span(&last, 1) : std::span<const uint32_t>()});
        }
    }
    void decode(uint32_t batch, uint32_t start, uint32_t n) {
        std::vector<model::TokenId> tokens(batch);
        std::vector<model::SequenceSlice> slices(batch);
        std::vector<uint32_t> rows(batch);
        for (uint32_t step = 0; step < n; ++step) {
            for (uint32_t s = 0; s < batch; ++s) {
                tokens[s] = token(start + step + 7919 * s);
                slices[s] = {s, 1, start + step, tables[s]};
                rows[s] = s;
            }
            model.forward({tokens, slices, rows});
        }
    }
};

template <typename Run>
void report(const char* cell, uint32_t tokens, uint32_t steps, uint32_t repeat, double macs_per_token, double bytes_per_step, Run run) {
    std::vector<double> rates, cpu_rates;
    for (uint32_t r = 0; r < repeat; ++r) {
        const double start = now_s(), cpu_start = cpu_s();
        run();
        rates.push_back(tokens / (now_s() - start));
        cpu_rates.push_back(tokens / (cpu_s() - cpu_start));
    }
    std::sort(rates.begin(), rates.end());
    std::sort(cpu_rates.begin(), cpu_rates.end());
    const double median = rates[rates.size() / 2];
    std::printf("%-14s %8.1f t/s (%.1f - %.1f)  %6.1f GMAC/s  %5.1f GB/s  %8.1f t per CPU second\n", cell, median, rates.front(), rates.back(), median * macs_per_token / 1e9,
                median / tokens * steps * bytes_per_step / 1e9, cpu_rates[cpu_rates.size() / 2]);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: hearth_bench_model MODEL [--threads N] [--prefill N] [--decode N] [--batch 1,8,32] "
                                    "[--context N] [--repeat N] [--isa NAME] [--kv f16|f32] [--activation-bits 8|16]\n"), 2;
    kernels::cpu::CpuOptions cpu;
    model::ModelOptions options;
    uint32_t prefill = 512, decode = 128, context = 0, repeat = 5;
    std::vector<uint32_t> batches = {1, 8, 32};
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--threads") cpu.threads = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--prefill") prefill = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--decode") decode = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--context") context = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--repeat") repeat = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--isa") cpu.isa = value;
        else if (flag == "--activation-bits") cpu.activation_bits = static_cast<uint32_t>(std::stoul(value));
        else if (flag == "--kv") options.kv_type = value == "f32" ? kernels::KvType::f32 : kernels::KvType::f16;
        else if (flag == "--batch") {
            batches.clear();
            std::stringstream list(value);
            for (std::string one; std::getline(list, one, ',');) batches.push_back(static_cast<uint32_t>(std::stoul(one)));
        } else return std::fprintf(stderr, "unknown option %s\n", argv[i]), 2;
    }
    auto mapped = base::system_files().open_mapped(argv[1]);
    if (!mapped) return std::fprintf(stderr, "%s\n", mapped.error().message.c_str()), 2;
    auto file = gguf::File::parse(mapped.value()->bytes(), argv[1]);
    if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 2;
    auto backend = kernels::cpu::create(cpu);
    if (!backend) return std::fprintf(stderr, "%s\n", backend.error().message.c_str()), 2;
    auto plan = model::plan(file.value(), *backend.value(), options);
    if (!plan) return std::fprintf(stderr, "%s\n", plan.error().message.c_str()), 2;

    const uint32_t sequences = std::max(1u, batches.empty() ? 1u : *std::max_element(batches.begin(), batches.end()));
    const uint32_t tokens = std::max(prefill, context + decode);
    options.kv_blocks_count = sequences * ((tokens + limits::kv_block_tokens - 1) / limits::kv_block_tokens);
    const double load_start = now_s();
    auto loaded = model::Model::load(file.value(), std::move(backend).value(), options);
    if (!loaded) return std::fprintf(stderr, "%s\n", loaded.error().message.c_str()), 2;
    model::Model& model = *loaded.value();
    const double load_s = now_s() - load_start;

    // Multiply-adds of the products of one token; the output matrix counts for rows that want logits.
    const model::Config& c = model.config();
    const double layer = double{1.0} * c.n_embd * (2.0 * c.q_cols() + 2.0 * c.kv_cols() + 3.0 * c.n_ff), head = 1.0 * c.n_embd * c.n_vocab;
    const double weights = static_cast<double>(plan.value().weights_bytes);
    std::printf("%s, %u threads, weights %.1f MB, loaded in %.0f ms\n", std::string(model.backend().name()).c_str(), model.backend().threads_count(), weights / 1e6, load_s * 1e3);

    Bench bench(model, sequences, tokens);
    bench.prefill(0, std::min(prefill, 64u));
    if (prefill > 0)
        report(("prefill " + std::to_string(prefill)).c_str(), prefill, (prefill + limits::step_tokens - 1) / limits::step_tokens, repeat,
               layer * c.n_layers + head / prefill, weights, [&] { bench.prefill(0, prefill); });
    for (uint32_t batch : batches) {
        if (decode == 0 || batch == 0) continue;
        for (uint32_t s = 0; s < batch && context > 0; ++s) bench.prefill(s, context);
        bench.decode(batch, context, 4);
        report(("decode b" + std::to_string(batch)).c_str(), decode * batch, decode, repeat, layer * c.n_layers + head, weights, [&] { bench.decode(batch, context, decode); });
    }
    return 0;
}
