// make_tiny_model OUT.gguf [options]: model_builder.h from a command line.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/model_builder.h"

namespace {

constexpr const char* help =
    "usage: make_tiny_model OUT.gguf [options]\n"
    "Writes a random llama-architecture model with a byte-level BPE vocabulary. The same options give the same bytes.\n"
    "  --type TYPE        matrices and embeddings: F32 F16 BF16 Q4_0 ... (F32); K types set --embd 256 --ff 512\n"
    "  --seed N (1)  --layers N (2)  --embd N (128)  --heads N (4)  --kv-heads N (2)  --ff N (256)\n"
    "  --vocab N (320)  --context N (1024)  --tied (no output.weight)  --rope-freqs\n";

int fail(const char* problem, const char* what) {
    std::fprintf(stderr, "make_tiny_model: %s: %s\n%s", problem, what, help);
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return fail("missing", "OUT.gguf");
    if (std::strcmp(argv[1], "--help") == 0) {
        std::fputs(help, stdout);
        return 0;
    }
    support::ModelSpec spec;
    for (int i = 2; i + 1 < argc; ++i) {  // first, since other options may overrule what it sets
        if (std::strcmp(argv[i], "--type") != 0) continue;
        const auto type = quant::from_name(argv[i + 1]);
        if (!type) return fail("unknown type", argv[i + 1]);
        spec = support::spec_for(*type);
    }
    const std::pair<const char*, uint32_t*> numbers[] = {
        {"--layers", &spec.n_layers}, {"--embd", &spec.n_embd},   {"--heads", &spec.n_heads},          {"--kv-heads", &spec.n_kv_heads},
        {"--ff", &spec.n_ff},         {"--vocab", &spec.n_vocab}, {"--context", &spec.context_length},
    };
    for (int i = 2; i < argc; ++i) {
        if (std::strcmp(argv[i], "--tied") == 0) {
            spec.tied_embeddings = true;
            continue;
        }
        if (std::strcmp(argv[i], "--rope-freqs") == 0) {
            spec.rope_freqs = true;
            continue;
        }
        if (i + 1 >= argc) return fail("unknown option or missing value", argv[i]);
        const char* name = argv[i];
        const char* value = argv[++i];
        if (std::strcmp(name, "--type") == 0) continue;
        char* end = nullptr;
        const unsigned long long number = std::strtoull(value, &end, 10);
        if (*value == 0 || *end != 0) return fail("not a number", value);
        if (std::strcmp(name, "--seed") == 0) {
            spec.seed = number;
            continue;
        }
        bool known = false;
        for (const auto& [option, field] : numbers) {
            if (std::strcmp(name, option) != 0) continue;
            if (number < 1 || number > 1'000'000) return fail("out of range", value);
            *field = static_cast<uint32_t>(number);
            known = true;
        }
        if (!known) return fail("unknown option", name);
    }
    support::write_model(spec, argv[1]);
    return 0;
}
