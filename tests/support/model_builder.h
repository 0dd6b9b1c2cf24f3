// Builds a small llama-architecture GGUF with random weights in memory: for every test that needs a model and no
// particular one. The same spec gives the same bytes on every machine (integer generator, no libm).
//
//     support::ModelSpec spec;                          // 2 layers, 128 wide, F32, about 1.7 MB
//     spec.type = quant::Type::q8_0;
//     std::vector<std::byte> image = support::build_model(spec);
//     auto file = gguf::File::parse(image, "tiny");     // `image` must outlive `file`
//
//     support::spec_for(quant::Type::q4_k)              // a spec whose rows fit the type's blocks (256 wide for K types)
//     support::write_model(spec, path)                  // the same bytes as a file, for tests that start the program
//
// meson: model_builder_dep. From a script: `make_tiny_model OUT.gguf [--type Q8_0] [--layers 2] ...` (--help).
//
// The vocabulary is a true byte-level BPE (tokenizer.ggml.model gpt2, pre smollm): ids 0 <|endoftext|>, 1 <|im_start|>,
// 2 <|im_end|> (control; EOS is 2), then 3 + b for byte b of 0..255 in its GPT-2 spelling, then one token for each merge.
// So any text can be encoded, and id 3 + b always decodes to byte b. The chat template is plain ChatML.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/writer.h"
#include "quant/types.h"

namespace support {

struct ModelSpec {
    uint64_t seed = 1;
    uint32_t n_layers = 2;
    uint32_t n_embd = 128;
    uint32_t n_heads = 4;
    uint32_t n_kv_heads = 2;  // divides n_heads
    uint32_t n_ff = 256;
    uint32_t n_vocab = 0;     // 0: exactly the vocabulary below; larger: filled up with tokens of kind unused
    uint32_t context_length = 1024;
    float rope_theta = 10'000;
    float norm_eps = 1e-5f;
    bool tied_embeddings = false;  // true: no output.weight
    bool rope_freqs = false;       // adds rope_freqs.weight (head_dim / 2 factors from 1 to 8)

    // Type of every matrix, and of the two embedding matrices; norms are always F32. The types whose encoder
    // searches get random blocks whose scales give the wanted spread. Row lengths must be multiples of the type's block.
    quant::Type type = quant::Type::f32;
    quant::Type embedding_type = quant::Type::f32;
    std::function<quant::Type(std::string_view tensor)> type_of;  // overrides both when set

    // For broken models: keys and tensors to leave out, and what to add instead.
    std::set<std::string, std::less<>> without;
    std::function<void(gguf::Writer&)> extra_metadata;  // after all other metadata
};

// Number of tokens of the built-in vocabulary (control + bytes + merges).
uint32_t builtin_vocab();

// A spec with type and embedding_type set and dimensions that are multiples of its block.
ModelSpec spec_for(quant::Type type);

// The whole file. A spec that contradicts itself is CHECKed.
std::vector<std::byte> build_model(const ModelSpec& spec);

// build_model into a file; CHECKs that writing works.
void write_model(const ModelSpec& spec, const std::string& path);

}  // namespace support
