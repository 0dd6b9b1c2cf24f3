// Checks of the vocabulary: all that is wrong with it, where loading names the first thing only.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/message.h"
#include "commands/check.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"

namespace commands {
namespace {

using base::cat;
using base::printable;

constexpr std::string_view tokens_key = "tokenizer.ggml.tokens", types_key = "tokenizer.ggml.token_type", pre_key = "tokenizer.ggml.pre";

std::string where(const gguf::File& file, std::string_view key, std::string_view problem) {
    return cat("metadata key '", key, "' at byte ", file.find(key)->offset, " ", problem);
}

std::vector<std::string_view> tokens_of(const gguf::File& file) {
    auto tokens = file.get_strings(tokens_key);
    return tokens ? std::move(tokens).value() : std::vector<std::string_view>();
}

std::vector<int64_t> types_of(const gguf::File& file) {
    auto types = file.get_ints(types_key);
    return types ? std::move(types).value() : std::vector<int64_t>();
}

// Which check tells why the tokenizer was refused: the loader's message begins with the key, or quotes it.
enum class About { vocabulary, special, pre };
About about(const base::Error& problem) {
    const auto says = [&](std::string_view text) { return problem.message.find(text) != std::string::npos; };
    if (says("tokenizer.ggml.pre ") || says("'tokenizer.ggml.pre'")) return About::pre;
    return says("_token_id") || says("add_bos_token") || says("add_eos_token") ? About::special : About::vocabulary;
}

// For the check that found nothing itself.
void add_refusal(const CheckedModel& model, About which, Findings& findings) {
    if (model.tokenizer_problem && about(*model.tokenizer_problem) == which) findings.add(Severity::error, model.tokenizer_problem->message);
}

enum Kind : int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
constexpr std::string_view kind_names[] = {"", "normal", "unknown", "control", "user-defined", "unused", "byte"};

constexpr uint32_t bit(Kind kind) { return 1u << kind; }
constexpr uint32_t any_special = bit(unknown) | bit(control) | bit(user_defined) | bit(unused);

struct IdRow {
    std::string_view key;
    uint32_t kinds;  // that make sense
    std::string_view expected;
};
constexpr IdRow id_rows[] = {
    {"tokenizer.ggml.bos_token_id", bit(control) | bit(user_defined), "control"},
    {"tokenizer.ggml.eos_token_id", bit(control) | bit(user_defined), "control"},
    {"tokenizer.ggml.eot_token_id", bit(control) | bit(user_defined), "control"},
    {"tokenizer.ggml.eom_token_id", bit(control) | bit(user_defined), "control"},
    {"tokenizer.ggml.unknown_token_id", any_special, "unknown or control"},
    {"tokenizer.ggml.padding_token_id", any_special, "control or unused"},
    {"tokenizer.ggml.seperator_token_id", any_special, "control"},  // the key is spelled so
    {"tokenizer.ggml.cls_token_id", any_special, "control"},
    {"tokenizer.ggml.mask_token_id", any_special, "control"},
    {"tokenizer.ggml.fim_pre_token_id", any_special, "control"},
    {"tokenizer.ggml.fim_suf_token_id", any_special, "control"},
    {"tokenizer.ggml.fim_mid_token_id", any_special, "control"},
    {"tokenizer.ggml.fim_pad_token_id", any_special, "control"},
    {"tokenizer.ggml.fim_rep_token_id", any_special, "control"},
    {"tokenizer.ggml.fim_sep_token_id", any_special, "control"},
};

}  // namespace

void check_vocabulary(const CheckedModel& model, Findings& findings) {
    const gguf::File& file = model.file;
    bool found = false;
    const auto add = [&](Severity severity, std::string message) {
        findings.add(severity, std::move(message));
        found = true;
    };
    const std::vector<std::string_view> tokens = tokens_of(file);
    std::vector<uint32_t> order(tokens.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return std::pair(tokens[a], a) < std::pair(tokens[b], b); });
    for (size_t i = 0; i < order.size(); ++i) {
        const std::string_view text = tokens[order[i]];
        if (text.empty()) add(Severity::error, where(file, tokens_key, cat("has no text for token ", order[i])));
        else if (i > 0 && tokens[order[i - 1]] == text)
            add(Severity::error, where(file, tokens_key, cat("has \"", printable(text), "\" twice, as tokens ", order[i - 1], " and ", order[i])));
    }
    if (file.find(types_key) && !tokens.empty())
        if (const size_t n = types_of(file).size(); n != tokens.size())
            add(Severity::error, where(file, types_key, cat("has ", n, " elements for ", tokens.size(), " tokens")));
    // Llama-style vocabularies spell any text by bytes: one that is missing is text that can't be written.
    if (auto kind = file.get_string("tokenizer.ggml.model"); kind && kind.value() == "llama" && !tokens.empty()) {
        static constexpr char hex[] = "0123456789ABCDEF";
        for (int value = 0; value < 256; ++value) {
            const std::string name = {'<', '0', 'x', hex[value / 16], hex[value % 16], '>'};
            const auto at = std::lower_bound(order.begin(), order.end(), name, [&](uint32_t id, const std::string& text) { return tokens[id] < text; });
            if (at == order.end() || tokens[*at] != name) add(Severity::error, where(file, tokens_key, cat("has no token ", name)));
        }
    }
    if (!found) add_refusal(model, About::vocabulary, findings);
}

void check_special_tokens(const CheckedModel& model, Findings& findings) {
    const gguf::File& file = model.file;
    const std::vector<std::string_view> tokens = tokens_of(file);
    const std::vector<int64_t> types = types_of(file);
    bool found = false;
    for (const IdRow& row : id_rows) {
        if (!file.find(row.key) || tokens.empty()) continue;
        auto id = file.get_uint(row.key);
        if (!id || id.value() >= tokens.size()) {
            findings.add(Severity::error, id ? where(file, row.key, cat("is ", id.value(), "; allowed are ids of tokens, below ", tokens.size())) : id.error().message);
            found = true;
            continue;
        }
        const int64_t kind = id.value() < types.size() ? types[id.value()] : control;
        if (kind < normal || kind > byte || (row.kinds >> kind & 1)) continue;
        findings.add(Severity::warning, where(file, row.key, cat("is token ", id.value(), ", \"", printable(tokens[id.value()]), "\", which is ", kind_names[kind],
                                                                  "; expected is one that is ", row.expected)));
    }
    if (!found) add_refusal(model, About::special, findings);
}

// A vocabulary is trained on the pieces that its pre-tokenizer makes, so hardly any of its tokens would be cut by it. Only ASCII is
// looked at: qwen3's own name cuts 1.1 % of its vocabulary, tokens with wide digits and marks that no text gives.
void check_pre_tokenizer(const CheckedModel& model, Findings& findings) {
    add_refusal(model, About::pre, findings);
    if (!model.tokenizer) return;
    auto kind = model.file.get_string("tokenizer.ggml.model");
    if (!kind || kind.value() != "gpt2") return;
    auto loaded = text::load_bpe_vocabulary(model.file);
    if (!loaded) return;
    const text::BpeVocabulary& vocabulary = loaded.value();
    constexpr uint64_t tokens_least = 1'000;   // fewer say nothing
    constexpr uint64_t cut_share_max = 200;    // one in so many
    uint64_t whole = 0, cut = 0;
    text::TokenId example = -1;
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    for (uint32_t i = 0; i < vocabulary.n_vocab(); ++i) {
        const auto id = static_cast<text::TokenId>(i);
        const std::string_view bytes = vocabulary.bytes(id);
        if (vocabulary.kinds[i] != text::TokenKind::normal || bytes.empty() || !std::all_of(bytes.begin(), bytes.end(), is_ascii)) continue;
        text::PreTokens pieces(*vocabulary.pre, bytes);
        std::string_view piece;
        if (pieces.next(piece) && piece.size() == bytes.size()) {
            ++whole;
            continue;
        }
        if (cut++ == 0) example = id;
    }
    if (whole + cut < tokens_least || cut * cut_share_max <= whole + cut) return;
    findings.add(Severity::warning, where(model.file, pre_key, cat("is \"", printable(vocabulary.pre_tokenizer), "\", which cuts ", cut, " of the ", whole + cut,
                                                                    " tokens of ASCII text, such as token ", example, ", \"", printable(vocabulary.bytes(example)),
                                                                    "\": the vocabulary was made with another pre-tokenizer")));
}

}  // namespace commands
