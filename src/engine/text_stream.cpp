#include "engine/text_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace engine {

namespace {

// Bytes of the character that begins with `lead`; the detokenizer gives valid UTF-8.
size_t character_bytes(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    CHECK_LE(strings_.size(), limits::stop_strings_count);
    for (const std::string& s : strings_) {
        CHECK(!s.empty() && s.size() <= limits::stop_string_bytes);
        std::vector<uint16_t>& failure = failure_.emplace_back(s.size(), uint16_t{0});
        for (size_t k = 1; k < s.size(); ++k) failure[k] = advance(failure_.size() - 1, failure[k - 1], s[k]);
    }
}

int32_t TextStream::push(std::string_view token_bytes, bool look_for_stops, const StopStrings& stops, Sink sink) {
    CHECK(stopped_by_ < 0);
    const bool look = look_for_stops && stops.size() > 0;
    detokenizer_.push(token_bytes, [&](std::string_view chars) {
        if (!look) {
            sink(chars);
        } else if (stopped_by_ < 0) {
            stopped_by_ = take(chars, stops, sink);
        }
    });
    return stopped_by_;
}

int32_t TextStream::finish(bool look_for_stops, const StopStrings& stops, Sink sink) {
    CHECK(stopped_by_ < 0);
    const bool look = look_for_stops && stops.size() > 0;
    detokenizer_.finish([&](std::string_view chars) {
        if (!look) {
            show(0, sink);
            sink(chars);
        } else if (stopped_by_ < 0) {
            stopped_by_ = take(chars, stops, sink);
        }
    });
    if (stopped_by_ < 0) show(0, sink);
    return stopped_by_;
}

int32_t TextStream::take(std::string_view chars, const StopStrings& stops, Sink sink) {
    size_t keep = held_size_;
    for (size_t at = 0; at < chars.size();) {
        const size_t n = std::min(character_bytes(chars[at]), chars.size() - at);
        if (held_size_ + n > held_.size()) show(keep, sink);  // keep < stop_string_bytes: there is room then
        for (const char byte : chars.substr(at, n)) {
            held_[held_size_++] = byte;
            keep = 0;
            int32_t stopped_by = -1;
            for (size_t i = 0; i < stops.size(); ++i) {
                matched_[i] = stops.advance(i, matched_[i], byte);
                if (matched_[i] == stops[i].size()) {
                    if (stopped_by < 0 || stops[i].size() > stops[static_cast<size_t>(stopped_by)].size()) stopped_by = static_cast<int32_t>(i);
                }
                keep = std::max<size_t>(keep, matched_[i]);
            }
            if (stopped_by >= 0) {
                show(stops[static_cast<size_t>(stopped_by)].size(), sink);
                held_size_ = 0;
                return stopped_by;
            }
        }
        at += n;
    }
    show(keep, sink);
    return -1;
}

void TextStream::show(size_t keep_bytes, Sink sink) {
    CHECK_LE(keep_bytes, size_t{held_size_});
    const size_t n = held_size_ - keep_bytes;
    if (n == 0) return;
    sink({held_.data(), n});
    std::memmove(held_.data(), held_.data() + n, keep_bytes);
    held_size_ = static_cast<uint16_t>(keep_bytes);
}

}  // namespace engine
