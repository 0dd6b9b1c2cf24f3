#include "text/vocabulary_loader.h"

#include <algorithm>

#include "base/limits.h"
#include "base/utf8.h"

namespace text::loader {

using base::cat;
using base::Error;
using base::ErrorCode;

namespace {

// Names that end an answer whatever the file's own ids say: the end-of-turn tokens of the model families.
constexpr std::string_view end_names[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "< EOT >",
    "_<EOT>",
    "[EOT]",
    "<|return|>",
    "<|call|>",
    "<|eot|>",
    "[EOS]",
    "<｜end▁of▁sentence｜>",
    "</s>",
};

}  // namespace

Error bad(const gguf::File& file, std::string_view key, const std::string& what) {
    const gguf::Value* value = file.find(key);
    return {ErrorCode::bad_file, value ? cat(key, " (byte ", value->offset, "): ", what) : cat(key, ": ", what), ""};
}

Error unsupported(const gguf::File& file, std::string_view key, std::string_view value, std::string_view allowed) {
    return {ErrorCode::unsupported, cat(key, " (byte ", file.find(key)->offset, "): ", quoted(value), " is not built; allowed: ", allowed), ""};
}

Step Common::tokens() {
    auto tokens = file_.get_strings(tokens_key);
    if (!tokens) return tokens.take_error();
    tokens_ = std::move(tokens).value();
    if (tokens_.empty() || tokens_.size() > limits::vocab_tokens) {
        return bad(file_, tokens_key, cat(tokens_.size(), " tokens; 1 to ", limits::vocab_tokens, " are allowed"));
    }
    index_.reserve(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
        const std::string_view text = tokens_[i];
        if (text.empty() || text.size() > limits::vocab_token_bytes) {
            return bad(file_, tokens_key, cat("token ", i, " has ", text.size(), " bytes; 1 to ", limits::vocab_token_bytes, " are allowed"));
        }
        if (!base::utf8::is_valid(text)) return bad(file_, tokens_key, cat("token ", i, " is not valid UTF-8: ", quoted(text)));
        switch (index_.add(static_cast<TokenId>(i), [&](TokenId id) { return tokens_[static_cast<size_t>(id)]; })) {
            case TokenLookup::Added::yes: break;
            case TokenLookup::Added::duplicate:
                return bad(file_, tokens_key, cat("tokens ", find(text), " and ", i, " are both ", quoted(text), "; each must be there once"));
            case TokenLookup::Added::crowded: return bad(file_, tokens_key, "token texts collide; this file was made to do so");
        }
    }
    return {};
}

Step Common::types(int64_t type_max) {
    const size_t n = tokens_.size();
    const gguf::Value* value = file_.find(types_key);
    if (value && std::holds_alternative<gguf::Array>(value->data)) {
        const auto& array = std::get<gguf::Array>(value->data);
        if (array.element_type != gguf::ValueType::i32 && array.element_type != gguf::ValueType::u32) {
            return bad(file_, types_key, cat("elements of GGUF type ", static_cast<uint32_t>(array.element_type), "; i32 (5) is allowed"));
        }
    }
    auto types = file_.get_ints(types_key);
    if (!types) return types.take_error();
    if (types.value().size() != n) return wrong_length(types_key, types.value().size());
    vocabulary_.kinds.reserve(n);
    for (size_t i = 0; i < n; ++i) {
        const int64_t type = types.value()[i];
        if (type < 1 || type > type_max) return bad(file_, types_key, cat("token ", i, " has type ", type, "; 1 to ", type_max, " are allowed"));
        vocabulary_.kinds.push_back(static_cast<TokenKind>(type));
    }
    return {};
}

Step Common::total_bytes() const {
    size_t total = 0;
    for (const std::string_view text : tokens_) total += text.size();
    if (total > UINT32_MAX) return bad(file_, tokens_key, cat(total, " bytes of token text; 4294967295 are allowed"));
    return {};
}

Step Common::special_length(TokenId id, size_t bytes) const {
    if (bytes <= limits::vocab_special_bytes) return {};
    return bad(file_, tokens_key, cat("token ", id, " is special and has ", bytes, " bytes; 1 to ", limits::vocab_special_bytes, " are allowed"));
}

Step Common::wrong_length(std::string_view key, size_t length) const {
    return bad(file_, key, cat(length, " elements; as many as tokens are allowed: ", tokens_.size()));
}

// -1 when the key is absent.
Step Common::special_id(std::string_view key, TokenId& id) const {
    id = -1;
    if (!file_.find(key)) return {};
    auto value = file_.get_uint(key);
    if (!value) return value.take_error();
    if (value.value() >= tokens_.size()) {
        return bad(file_, key, cat(value.value(), " is no token; ids below ", tokens_.size(), " are allowed"));
    }
    id = static_cast<TokenId>(value.value());
    return {};
}

Step Common::flag(std::string_view key, bool& flag) const {
    if (!file_.find(key)) return {};
    auto value = file_.get_bool(key);
    if (!value) return value.take_error();
    flag = value.value();
    return {};
}

Step Common::special(bool add_bos) {
    TokenId ignored = -1;
    for (const std::string_view key :
         {"tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id", "tokenizer.ggml.seperator_token_id",
          "tokenizer.ggml.cls_token_id", "tokenizer.ggml.mask_token_id"}) {
        if (auto error = special_id(key, ignored)) return error;
    }
    if (auto error = special_id("tokenizer.ggml.bos_token_id", vocabulary_.bos_id)) return error;
    if (auto error = special_id("tokenizer.ggml.eos_token_id", vocabulary_.eos_id)) return error;
    if (vocabulary_.eos_id < 0) {
        return Error{ErrorCode::bad_file, "tokenizer.ggml.eos_token_id is missing: no answer would ever end", ""};
    }
    vocabulary_.add_bos = add_bos && vocabulary_.bos_id >= 0;
    if (auto error = flag("tokenizer.ggml.add_bos_token", vocabulary_.add_bos)) return error;
    if (auto error = flag("tokenizer.ggml.add_eos_token", vocabulary_.add_eos)) return error;
    if (vocabulary_.add_bos && vocabulary_.bos_id < 0) {
        return bad(file_, "tokenizer.ggml.add_bos_token", "true, but tokenizer.ggml.bos_token_id is missing");
    }
    auto& ends = vocabulary_.end_of_generation;
    ends.push_back(vocabulary_.eos_id);
    for (const std::string_view key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
        TokenId id = -1;
        if (auto error = special_id(key, id)) return error;
        if (id >= 0) ends.push_back(id);
    }
    // gpt-oss closes each of its channels with <|end|> and goes on; <|return|> and <|call|> end the answer.
    const bool harmony = find("<|return|>") >= 0 && find("<|call|>") >= 0;
    for (const std::string_view name : end_names) {
        const TokenId id = find(name);
        if (id < 0 || !is_added(id)) continue;
        if (harmony && name == "<|end|>") continue;
        // Gemma has </s> among its HTML tags, as a user-defined token.
        if (name == "</s>" && kind(id) != TokenKind::control) continue;
        ends.push_back(id);
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return {};
}

}  // namespace text::loader
