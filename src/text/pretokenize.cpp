#include "text/pretokenize.h"

namespace text {

namespace {

// The names are those that llama.cpp's converter writes; models whose patterns are equal share a row's cutters. `nfc`
// and `whole_first` are what the models' own tokenizer.json say (normalizer NFC, ignore_merges).
constexpr PreTokenizer table[] = {
    {"default", {cut::default_punctuation, cut::gpt2, cut::numbers, cut::digits_3}},
    {"gpt-2", {cut::gpt2}},
    {"phi-2", {cut::gpt2}},
    {"mpt", {cut::gpt2}, false, false, true},
    {"olmo", {cut::gpt2}, false, false, true},
    {"jais", {cut::gpt2}},
    {"gigachat", {cut::gpt2}},
    {"exaone4", {cut::gpt2}},
    {"a.x-4.0", {cut::gpt2}},
    {"mellum", {cut::gpt2}},
    {"trillion", {cut::gpt2}},
    {"granite-docling", {cut::gpt2}},
    {"smollm", {cut::number, cut::gpt2}},
    {"starcoder", {cut::number, cut::gpt2}},
    {"refact", {cut::number, cut::gpt2}},
    {"command-r", {cut::number, cut::gpt2}, false, false, true},
    {"codeshell", {cut::number, cut::gpt2}},
    {"exaone", {cut::number, cut::gpt2}},
    {"minerva-7b", {cut::number, cut::gpt2}},
    {"mellum2", {cut::number, cut::gpt2}},
    {"llama3", {cut::llama3}, true, true},
    {"llama-v3", {cut::llama3}, true, true},
    {"llama-bpe", {cut::llama3}, true, true},
    {"falcon3", {cut::llama3}, true, true},
    {"falcon-h1", {cut::llama3}, true, true},
    {"pixtral", {cut::llama3}, true, true},
    {"midm-2.0", {cut::llama3}, true, true},
    {"lfm2", {cut::llama3}, true, true},
    {"dbrx", {cut::llama3}},
    {"smaug-bpe", {cut::llama3}},
    {"glm4", {cut::llama3}},
    {"chatglm-bpe", {cut::llama3}},
    {"qwen2", {cut::qwen2}, false, false, true},
    {"deepseek-r1-qwen", {cut::qwen2}},
    {"megrez", {cut::qwen2}, false, false, true},
    {"stablelm2", {cut::qwen2}, false, false, true},
    {"hunyuan", {cut::qwen2}},
    {"grok-2", {cut::qwen2}},
    {"solar-open", {cut::qwen2}},
    {"qwen35", {cut::qwen35}, false, false, true},
    {"seed-coder", {cut::seed_coder}},
    {"minicpm5", {cut::numbers_3, cut::minicpm5}, true},
    {"gpt-4o", {cut::gpt4o}, true},
    {"llama4", {cut::gpt4o}, true},
    {"minimax-m2", {cut::gpt4o}},
    {"tekken", {cut::tekken}, true, true},
    {"deepseek-llm",
     {cut::line_breaks, cut::deepseek_letters, cut::deepseek_punctuation, cut::trailing_space, cut::deepseek_cjk, cut::number}},
    {"deepseek-coder", {cut::line_breaks, cut::coder_letters, cut::coder_punctuation, cut::deepseek_cjk, cut::number}},
    {"deepseek-v3", {cut::numbers_3, cut::v3_cjk, cut::v3_words}},
    {"falcon", {cut::falcon_punctuation, cut::gpt2, cut::digits_3}},
    {"bloom", {cut::bloom}},
    {"poro-chat", {cut::bloom}},
    {"gpt3-finnish", {cut::bloom}},
    {"viking", {cut::bloom, cut::number}},
};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
    for (const PreTokenizer& row : table) {
        if (row.name == name) return &row;
    }
    return nullptr;
}

std::string pre_tokenizer_names() {
    std::string names;
    for (const PreTokenizer& row : table) names.append(names.empty() ? "" : ", ").append(row.name);
    return names;
}

}  // namespace text
