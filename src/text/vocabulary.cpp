#include "text/vocabulary.h"

#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"

namespace text {

namespace {

using base::cat;
using base::Error;
using base::ErrorCode;

std::string quoted(std::string_view text) { return cat('"', base::printable(text), '"'); }

// GPT-2's alphabet: a byte that prints in Latin-1 is written as itself, every other one as U+0100, U+0101, ... in order.
struct Alphabet {
    std::array<int16_t, 0x144> byte_of{};  // by code point; -1 = not of the alphabet

    Alphabet() {
        byte_of.fill(-1);
        uint32_t next = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            byte_of[itself ? static_cast<uint32_t>(byte) : next++] = static_cast<int16_t>(byte);
        }
    }
};

// Messages: "KEY (byte OFFSET): what".
Error bad(const gguf::File& file, std::string_view key, const std::string& what) {
    const gguf::Value* value = file.find(key);
    return {ErrorCode::bad_file, value ? cat(key, " (byte ", value->offset, "): ", what) : cat(key, ": ", what), ""};
}

Error unsupported(const gguf::File& file, std::string_view key, std::string_view value, std::string_view allowed) {
    return {ErrorCode::unsupported, cat(key, " (byte ", file.find(key)->offset, "): ", quoted(value), " is not built; allowed: ", allowed), ""};
}

// The strings of the tokens -> ids, alive during loading only.
class TokenIndex {
  public:
    explicit TokenIndex(const std::vector<std::string_view>& tokens) : tokens_(tokens) { table_.reserve(tokens.size()); }

    HashTable<TokenId>::Added add(TokenId id) {
        const std::string_view text = tokens_[static_cast<size_t>(id)];
        return table_.add(hash(text), id, [&](TokenId other) { return tokens_[static_cast<size_t>(other)] == text; });
    }
    TokenId find(std::string_view text) const {
        const TokenId* id = table_.find(hash(text), [&](TokenId other) { return tokens_[static_cast<size_t>(other)] == text; });
        return id ? *id : -1;
    }

  private:
    static uint64_t hash(std::string_view text) {  // FNV-1a, finished by mix_bits in the table
        uint64_t h = 0xcbf29ce484222325ULL;
        for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
        return h;
    }
    const std::vector<std::string_view>& tokens_;
    HashTable<TokenId> table_;
};

constexpr std::string_view tokens_key = "tokenizer.ggml.tokens", types_key = "tokenizer.ggml.token_type",
                           merges_key = "tokenizer.ggml.merges", scores_key = "tokenizer.ggml.scores", model_key = "tokenizer.ggml.model",
                           pre_key = "tokenizer.ggml.pre";

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

class Loader {
  public:
    explicit Loader(const gguf::File& file) : file_(file) {}

    base::Result<Vocabulary> load() {
        // Cheap refusals first: a file of another kind is told so before its arrays are read.
        for (const auto step : {&Loader::model, &Loader::tokens, &Loader::types, &Loader::bytes, &Loader::merges, &Loader::special}) {
            if (auto error = (this->*step)()) return std::move(*error);
        }
        return std::move(vocabulary_);
    }

  private:
    using Step = std::optional<Error>;

    Step model() {
        auto model = file_.get_string(model_key);
        if (!model) return model.take_error();
        if (model.value() != "gpt2") return unsupported(file_, model_key, model.value(), "gpt2");
        auto pre = file_.get_string(pre_key);
        if (!pre) return pre.take_error();
        if (pre.value() != "smollm") return unsupported(file_, pre_key, pre.value(), "smollm");
        vocabulary_.pre_tokenizer = pre.value();
        return {};
    }

    Step tokens() {
        auto tokens = file_.get_strings(tokens_key);
        if (!tokens) return tokens.take_error();
        tokens_ = std::move(tokens).value();
        if (tokens_.empty() || tokens_.size() > limits::vocab_tokens) {
            return bad(file_, tokens_key, cat(tokens_.size(), " tokens; 1 to ", limits::vocab_tokens, " are allowed"));
        }
        index_.emplace(tokens_);
        for (size_t i = 0; i < tokens_.size(); ++i) {
            const std::string_view text = tokens_[i];
            if (text.empty() || text.size() > limits::vocab_token_bytes) {
                return bad(file_, tokens_key,
                           cat("token ", i, " has ", text.size(), " bytes; 1 to ", limits::vocab_token_bytes, " are allowed"));
            }
            if (!base::utf8::is_valid(text)) return bad(file_, tokens_key, cat("token ", i, " is not valid UTF-8: ", quoted(text)));
            switch (index_->add(static_cast<TokenId>(i))) {
                case HashTable<TokenId>::Added::yes: break;
                case HashTable<TokenId>::Added::duplicate:
                    return bad(file_, tokens_key,
                               cat("tokens ", index_->find(text), " and ", i, " are both ", quoted(text), "; each must be there once"));
                case HashTable<TokenId>::Added::crowded: return bad(file_, tokens_key, "token texts collide; this file was made to do so");
            }
        }
        return {};
    }

    Step types() {
        const size_t n = tokens_.size();
        const gguf::Value* value = file_.find(types_key);
        if (value && std::holds_alternative<gguf::Array>(value->data)) {
            const auto& array = std::get<gguf::Array>(value->data);
            if (array.element_type != gguf::ValueType::i32 && array.element_type != gguf::ValueType::u32) {
                return bad(file_, types_key,
                           cat("elements of GGUF type ", static_cast<uint32_t>(array.element_type), "; i32 (5) is allowed"));
            }
        }
        auto types = file_.get_ints(types_key);
        if (!types) return types.take_error();
        if (types.value().size() != n) return wrong_length(types_key, types.value().size());
        if (file_.find(scores_key)) {  // byte-level BPE has no use for scores, but a wrong length means a broken file
            auto scores = file_.get_floats(scores_key);
            if (!scores) return scores.take_error();
            if (scores.value().size() != n) return wrong_length(scores_key, scores.value().size());
        }
        vocabulary_.kinds.reserve(n);
        for (size_t i = 0; i < n; ++i) {
            const int64_t type = types.value()[i];
            if (type < 1 || type > 5) {  // 6 is `byte`, which only SentencePiece vocabularies have
                return bad(file_, types_key, cat("token ", i, " has type ", type, "; 1 to 5 are allowed"));
            }
            vocabulary_.kinds.push_back(static_cast<TokenKind>(type));
        }
        return {};
    }

    Step wrong_length(std::string_view key, size_t length) {
        return bad(file_, key, cat(length, " elements; as many as tokens are allowed: ", tokens_.size()));
    }

    bool is_plain(TokenId id) const {
        const TokenKind kind = vocabulary_.kinds[static_cast<size_t>(id)];
        return kind == TokenKind::normal || kind == TokenKind::user_defined || kind == TokenKind::unused;
    }

    // Token texts to bytes, and the 256 tokens of single bytes.
    Step bytes() {
        static const Alphabet alphabet;
        vocabulary_.byte_tokens.fill(-1);
        vocabulary_.token_begin.reserve(tokens_.size() + 1);
        size_t total = 0;
        for (const std::string_view text : tokens_) total += text.size();
        if (total > UINT32_MAX) return bad(file_, tokens_key, cat(total, " bytes of token text; 4294967295 are allowed"));
        vocabulary_.arena.reserve(total);
        std::string decoded;
        for (size_t i = 0; i < tokens_.size(); ++i) {
            const TokenId id = static_cast<TokenId>(i);
            const TokenKind kind = vocabulary_.kinds[i];
            const std::string_view text = tokens_[i];
            vocabulary_.token_begin.push_back(static_cast<uint32_t>(vocabulary_.arena.size()));
            const bool raw = kind == TokenKind::control || kind == TokenKind::unknown || kind == TokenKind::user_defined;
            if (raw) {
                if (text.size() > limits::vocab_special_bytes) {
                    return bad(file_, tokens_key,
                               cat("token ", i, " is special and has ", text.size(), " bytes; 1 to ", limits::vocab_special_bytes,
                                   " are allowed"));
                }
                vocabulary_.added.push_back(id);
            }
            // As the reference's decoder: a text outside the alphabet stands for itself.
            decoded.clear();
            bool inside = true;
            for (size_t at = 0; inside && at < text.size();) {
                const auto c = base::utf8::decode(text, at);
                inside = c.code_point < alphabet.byte_of.size() && alphabet.byte_of[c.code_point] >= 0;
                if (inside) decoded += static_cast<char>(alphabet.byte_of[c.code_point]);
                at += c.length;
            }
            if (inside && decoded.size() == 1 && is_plain(id)) { vocabulary_.byte_tokens[static_cast<unsigned char>(decoded[0])] = id; }
            vocabulary_.arena += inside && !raw ? decoded : text;
        }
        vocabulary_.token_begin.push_back(static_cast<uint32_t>(vocabulary_.arena.size()));
        std::sort(vocabulary_.added.begin(), vocabulary_.added.end(),
                  [&](TokenId a, TokenId b) { return vocabulary_.bytes(a) < vocabulary_.bytes(b); });
        // Real vocabularies lack some rare bytes (SmolLM2: eight control and lead bytes); without these no text can be written.
        for (int byte = 0x20; byte <= 0x7E; ++byte) {
            if (vocabulary_.byte_tokens[static_cast<size_t>(byte)] < 0) return missing_byte(byte);
        }
        if (vocabulary_.byte_tokens['\n'] < 0) return missing_byte('\n');
        return {};
    }

    Step missing_byte(int byte) {
        return bad(file_, tokens_key, cat("no token for byte ", byte, "; line feed and 32 to 126 must have one each"));
    }

    Step merges() {
        auto merges = file_.get_strings(merges_key);
        if (!merges) return merges.take_error();
        const auto& lines = merges.value();
        if (lines.size() > limits::vocab_merges) {
            return bad(file_, merges_key, cat(lines.size(), " merges; up to ", limits::vocab_merges, " are allowed"));
        }
        vocabulary_.merges.reserve(lines.size());
        std::string joined;
        for (size_t i = 0; i < lines.size(); ++i) {
            const std::string_view line = lines[i];
            const auto bad_merge = [&](const std::string& what) {
                return bad(file_, merges_key, cat("merge ", i, " ", quoted(line), " ", what));
            };
            const size_t space = line.find(' ');
            if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
                line.find(' ', space + 1) != std::string_view::npos) {
                return bad_merge("is not two parts with one space between");
            }
            const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
            joined.assign(left).append(right);
            const TokenId left_id = index_->find(left), right_id = index_->find(right), joined_id = index_->find(joined);
            if (left_id < 0 || right_id < 0) return bad_merge("has a part that is no token");
            if (joined_id < 0) return bad_merge("joins to what is no token");
            // A user's text must never become such a token, so no merge may make one.
            if (!is_plain(joined_id)) return bad_merge(cat("joins to control token ", joined_id));
            switch (vocabulary_.merges.add(left_id, right_id, {static_cast<uint32_t>(i), joined_id})) {
                case HashTable<MergeTable::Merge>::Added::yes: break;
                case HashTable<MergeTable::Merge>::Added::duplicate: return bad_merge("is there twice");
                case HashTable<MergeTable::Merge>::Added::crowded: return bad_merge("collides with others; this file was made to do so");
            }
        }
        return {};
    }

    // -1 when the key is absent.
    Step special_id(std::string_view key, TokenId& id) {
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

    Step flag(std::string_view key, bool& flag) {
        flag = false;
        if (!file_.find(key)) return {};
        auto value = file_.get_bool(key);
        if (!value) return value.take_error();
        flag = value.value();
        return {};
    }

    Step special() {
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
        for (const TokenId id : vocabulary_.added) {
            if (std::find(std::begin(end_names), std::end(end_names), vocabulary_.bytes(id)) != std::end(end_names)) ends.push_back(id);
        }
        std::sort(ends.begin(), ends.end());
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        return {};
    }

    const gguf::File& file_;
    std::vector<std::string_view> tokens_;  // in the file
    std::optional<TokenIndex> index_;
    Vocabulary vocabulary_;
};

}  // namespace

base::Result<Vocabulary> load_vocabulary(const gguf::File& file) { return Loader(file).load(); }

}  // namespace text
