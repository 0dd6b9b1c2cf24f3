// Token bytes to text that never splits a UTF-8 sequence: bytes of an unfinished character wait for the next token.
// Bad bytes become U+FFFD once they can't become good. One per sequence; no allocation after construction
// (at most 3 bytes wait).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/utf8.h"

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
    // Invariant between calls: the pending bytes begin a character and don't finish it.
    char pending_[4] = {};
    uint8_t pending_bytes_ = 0;

    static constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
};

template <typename Sink>
void Detokenizer::push(std::string_view bytes, Sink&& sink) {
    size_t at = 0;
    while (pending_bytes_ > 0 && at < bytes.size()) {
        pending_[pending_bytes_] = bytes[at];
        const auto next = base::utf8::decode({pending_, pending_bytes_ + size_t{1}}, 0);
        if (next.cut) {
            ++pending_bytes_;
            ++at;
        } else if (next.valid) {
            sink(std::string_view(pending_, next.length));
            pending_bytes_ = 0;
            ++at;
        } else {  // what waited is a maximal bad subpart; the byte that broke it begins something new
            sink(replacement);
            pending_bytes_ = 0;
        }
    }
    size_t good_begin = at;
    while (at < bytes.size()) {
        const auto next = base::utf8::decode(bytes, at);
        if (!next.valid) {
            if (at > good_begin) sink(bytes.substr(good_begin, at - good_begin));
            if (next.cut) {
                for (; at < bytes.size(); ++at) pending_[pending_bytes_++] = bytes[at];
            } else {
                sink(replacement);
                at += next.length;
            }
            good_begin = at;
        } else {
            at += next.length;
        }
    }
    if (at > good_begin) sink(bytes.substr(good_begin, at - good_begin));
}

template <typename Sink>
void Detokenizer::finish(Sink&& sink) {
    if (pending_bytes_ > 0) sink(replacement);
    pending_bytes_ = 0;
}

}  // namespace text
