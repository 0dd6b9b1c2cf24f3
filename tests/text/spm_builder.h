// A small GGUF with a SentencePiece vocabulary, each part of which a test can break.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gguf/writer.h"

namespace support {

struct SpmSpec {
    // ids: 0 <unk>, 1 <s>, 2 </s>, 3 + byte, then the pieces from 259
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> types = {2, 3, 3};
    std::vector<float> scores = {0, 0, 0};
    std::optional<bool> space_prefix, add_bos;
    std::optional<uint32_t> bos = 1;
    std::function<void(gguf::Writer&)> extra;

    SpmSpec() {
        for (int byte = 0; byte < 256; ++byte) {
            char text[8];
            std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
            add(text, 0, 6);
        }
    }
    // The id of the token.
    int32_t add(const std::string& token, float score, int32_t type = 1) {
        tokens.push_back(token);
        scores.push_back(score);
        types.push_back(type);
        return static_cast<int32_t>(tokens.size()) - 1;
    }
    std::vector<std::byte> image() const {
        gguf::Writer writer;
        writer.add_string("tokenizer.ggml.model", "llama");
        writer.add_strings("tokenizer.ggml.tokens", tokens);
        writer.add_array<int32_t>("tokenizer.ggml.token_type", gguf::ValueType::i32, types);
        if (!scores.empty()) writer.add_array<float>("tokenizer.ggml.scores", gguf::ValueType::f32, scores);
        if (bos) writer.add_u32("tokenizer.ggml.bos_token_id", *bos);
        writer.add_u32("tokenizer.ggml.eos_token_id", 2);
        if (space_prefix) writer.add_bool("tokenizer.ggml.add_space_prefix", *space_prefix);
        if (add_bos) writer.add_bool("tokenizer.ggml.add_bos_token", *add_bos);
        if (extra) extra(writer);
        return writer.bytes();
    }
};

}  // namespace support
