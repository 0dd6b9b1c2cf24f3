// A small GGUF with nothing but a vocabulary, each part of which a test can break.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace support {

// A byte in GPT-2's printable alphabet, as UTF-8. Written apart from the product's own table, by the rule of the
// published bytes_to_unicode: 33-126, 161-172 and 174-255 stand for themselves, the rest for 256, 257, ...
inline std::string byte_spelling(int wanted) {
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
        const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        const int cp = itself ? byte : next++;
        if (byte != wanted) continue;
        if (cp < 0x80) return std::string(1, static_cast<char>(cp));
        return {static_cast<char>(0xC0 | cp >> 6), static_cast<char>(0x80 | (cp & 63))};
    }
    return {};
}

struct VocabularySpec {
    // ids: 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|> (control), 3 <think>, 4 <think>> (user-defined), 5 + byte, then merges
    std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "<think>>"};
    std::vector<int32_t> types = {3, 3, 3, 4, 4};
    std::vector<std::string> merges;
    std::optional<std::string> model = "gpt2", pre = "smollm";
    std::optional<uint32_t> bos = 1, eos = 2;
    std::optional<bool> add_bos, add_eos;
    bool with_tokens = true, with_types = true, with_merges = true;
    std::function<void(gguf::Writer&)> extra;

    VocabularySpec() {
        for (int byte = 0; byte < 256; ++byte) add(byte_spelling(byte));
        for (const char* line : {"a b", "c d", "ab cd", "Ġ a", "Ġa b", "l o", "lo lo", "lolo lolo", "Ġ Ġ", "ĠĠ ĠĠ", "1 2"}) merge(line);
    }
    void add(const std::string& token, int32_t type = 1) {
        tokens.push_back(token);
        types.push_back(type);
    }
    void merge(const std::string& line) {
        merges.push_back(line);
        const size_t space = line.find(' ');
        add(line.substr(0, space) + line.substr(space + 1));
    }
    std::vector<std::byte> image() const {
        gguf::Writer writer;
        if (model) writer.add_string("tokenizer.ggml.model", *model);
        if (pre) writer.add_string("tokenizer.ggml.pre", *pre);
        if (with_tokens) writer.add_strings("tokenizer.ggml.tokens", tokens);
        if (with_types) writer.add_array<int32_t>("tokenizer.ggml.token_type", gguf::ValueType::i32, types);
        if (with_merges) writer.add_strings("tokenizer.ggml.merges", merges);
        if (bos) writer.add_u32("tokenizer.ggml.bos_token_id", *bos);
        if (eos) writer.add_u32("tokenizer.ggml.eos_token_id", *eos);
        if (add_bos) writer.add_bool("tokenizer.ggml.add_bos_token", *add_bos);
        if (add_eos) writer.add_bool("tokenizer.ggml.add_eos_token", *add_eos);
        if (extra) extra(writer);
        return writer.bytes();
    }
};

}  // namespace support
