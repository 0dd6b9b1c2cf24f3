// Token bytes to text that never splits a UTF-8 sequence: bytes of an unfinished character wait for the next token.
// Bad bytes become U+FFFD once they can't become good. One per sequence; no allocation after construction
// (at most 3 bytes wait).
#pragma once

#include <cstdint>
#include <string_view>

namespace text {

class Detokenizer {
  public:
    // Calls sink(std::string_view) with whole characters for the bytes of one token, zero or more times.
    template <typename Sink>
    void push(std::string_view token_bytes, Sink&& sink);
    // The sequence has ended: an unfinished character becomes U+FFFD.
    template <typename Sink>
    void finish(Sink&& sink);

  private:
    char pending_[4] = {};
    uint8_t pending_bytes_ = 0;
};

}  // namespace text
