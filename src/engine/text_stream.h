// Tokens of one choice to text that may be shown: whole characters only, and nothing that may turn out to be the
// beginning of a stop string.
// The stop string whose last byte comes first ends the answer; of several ending at the same byte the longest counts.
// This depends on the text alone, not on how it was cut into tokens. Nothing of the stop string is ever shown.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "text/detokenizer.h"

namespace engine {

// The stop strings of a request with their failure functions (Knuth, Morris, Pratt): built once by the submitter,
// shared by its choices. Strings are non-empty, valid UTF-8, at most limits::stop_strings_count of them.
class StopStrings {
  public:
    StopStrings() = default;
    explicit StopStrings(std::vector<std::string> strings);

    size_t size() const { return strings_.size(); }
    const std::string& operator[](size_t i) const { return strings_[i]; }
    // The length of the longest beginning of string i that ends with `byte`, when `matched` bytes matched before it.
    // O(1) amortised over a text. `matched` < length of string i.
    uint16_t advance(size_t i, uint16_t matched, char byte) const {
        const std::string& s = strings_[i];
        while (matched > 0 && s[matched] != byte) matched = failure_[i][matched - 1];
        return s[matched] == byte ? matched + 1 : matched;
    }

  private:
    std::vector<std::string> strings_;
    std::vector<std::vector<uint16_t>> failure_;  // [i][k]: longest proper border of the first k + 1 bytes
};

// One per choice; allocates nothing.
class TextStream {
  public:
    // Where shown text goes: a function pointer and its argument instead of a std::function.
    struct Sink {
        void (*write)(void*, std::string_view);
        void* to;
        void operator()(std::string_view text) const { write(to, text); }
    };

    // The bytes of one token. look_for_stops: false while the answer is shorter than min_tokens (text of those tokens
    // is shown as it is and takes no part in a match). Returns the index of the stop string that ended the answer, or -1.
    int32_t push(std::string_view token_bytes, bool look_for_stops, const StopStrings& stops, Sink sink);
    // The answer has ended otherwise: what was held back is shown, an unfinished character becomes U+FFFD.
    int32_t finish(bool look_for_stops, const StopStrings& stops, Sink sink);

    size_t held_bytes() const { return held_size_; }

  private:
    // One or more whole characters. Returns -1 or the stop string's index; then nothing more is taken.
    int32_t take(std::string_view chars, const StopStrings& stops, Sink sink);
    void show(size_t keep_bytes, Sink sink);  // all of held_ but its last keep_bytes

    text::Detokenizer detokenizer_;
    std::array<uint16_t, limits::stop_strings_count> matched_{};  // per stop string: bytes matched at the end of the text
    uint16_t held_size_ = 0;
    int32_t stopped_by_ = -1;
    std::array<char, 2 * limits::stop_string_bytes> held_{};  // text not shown yet
};

}  // namespace engine
