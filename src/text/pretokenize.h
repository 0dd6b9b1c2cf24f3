// Cuts text into pre-tokens: the pieces inside which BPE merges. The name in `tokenizer.ggml.pre` picks the cutters;
// each is hand-written, linear, and works on valid UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace text {

// The length in bytes of the first piece of `text` (not empty). A published pattern is read as its library reads it with
// "isolated": every match is a piece, and so is what lies between two matches.
using Cutter = size_t (*)(std::string_view text);

struct PreTokenizer {
    static constexpr size_t cutters_max = 6;

    std::string_view name;                      // in tokenizer.ggml.pre
    std::array<Cutter, cutters_max> cutters{};  // each cuts the pieces of the one before; nullptr ends the list
    bool whole_first = false;                   // a pre-token that is a token is that token, whatever the merges say
    bool add_bos = false;                       // when the file doesn't say
    bool nfc = false;                           // the text is brought into Unicode's normal form C first
};

// nullptr: not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
std::string pre_tokenizer_names();  // "a, b, c"

// The pre-tokens of a text, one after the other, in constant memory.
class PreTokens {
  public:
    PreTokens(const PreTokenizer& pre, std::string_view text) : pre_(pre), text_(text) {
        while (depth_ < pre.cutters.size() && pre.cutters[depth_]) ++depth_;
        ends_.fill(0);
        ends_[0] = text.size();
    }
    // false: the text is used up.
    bool next(std::string_view& piece) {
        if (at_ == text_.size()) return false;
        size_t level = depth_;
        while (ends_[level] == at_) --level;  // ends_[0] lies ahead
        for (; level < depth_; ++level) ends_[level + 1] = at_ + pre_.cutters[level](text_.substr(at_, ends_[level] - at_));
        piece = text_.substr(at_, ends_[depth_] - at_);
        at_ = ends_[depth_];
        return true;
    }

  private:
    const PreTokenizer& pre_;
    std::string_view text_;
    size_t at_ = 0, depth_ = 0;
    std::array<size_t, PreTokenizer::cutters_max + 1> ends_;  // ends_[k]: of the piece of cutter k - 1 that holds at_
};

// The families, one file each.
namespace cut {
size_t gpt2(std::string_view text);         // pretokenize_gpt2.cpp
size_t number(std::string_view text);       // each \p{N} alone
size_t numbers(std::string_view text);      // \p{N}+
size_t numbers_3(std::string_view text);    // \p{N}{1,3}
size_t digits_3(std::string_view text);     // [0-9][0-9][0-9]
size_t llama3(std::string_view text);       // pretokenize_llama3.cpp
size_t qwen2(std::string_view text);
size_t qwen35(std::string_view text);
size_t seed_coder(std::string_view text);
size_t minicpm5(std::string_view text);
size_t gpt4o(std::string_view text);        // pretokenize_gpt4o.cpp
size_t tekken(std::string_view text);
size_t line_breaks(std::string_view text);  // pretokenize_deepseek.cpp
size_t deepseek_letters(std::string_view text);
size_t deepseek_punctuation(std::string_view text);
size_t deepseek_cjk(std::string_view text);
size_t trailing_space(std::string_view text);
size_t coder_letters(std::string_view text);
size_t coder_punctuation(std::string_view text);
size_t v3_cjk(std::string_view text);
size_t v3_words(std::string_view text);
size_t falcon_punctuation(std::string_view text);  // pretokenize_falcon.cpp
size_t default_punctuation(std::string_view text);
size_t bloom(std::string_view text);        // pretokenize_bloom.cpp
}  // namespace cut

}  // namespace text
