// UTF-8 as the Unicode Standard defines it (table 3-7, well-formed sequences). Ill-formed input is replaced by the
// practice that the Unicode Standard (3.9, U+FFFD substitution of maximal subparts), the WHATWG Encoding Standard and
// Python's bytes.decode('utf-8', 'replace') share: each maximal subpart of an ill-formed sequence is one error, and
// decoding resumes right after it. Surrogates (ED A0..BF), overlong forms and values above U+10FFFF are ill-formed.
// Pure, no allocation except where a std::string is returned; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace base::utf8 {

inline constexpr char32_t replacement = 0xfffd;

struct Decoded {
    char32_t code_point = replacement;  // U+FFFD when ill-formed
    uint32_t length = 1;                // bytes consumed: 1..4 of a character, 1..3 of an ill-formed maximal subpart
    bool valid = false;
    // The bytes up to the end of the input are the beginning of a well-formed sequence: more input may complete it.
    bool cut = false;
};

// The character or maximal ill-formed subpart that begins at `at`; at < text.size().
inline Decoded decode(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t lead = byte(at);
    if (lead < 0x80) return {lead, 1, true, false};
    // The second byte has a range of its own after E0, ED, F0 and F4; that alone keeps out overlong forms, surrogates
    // and values above U+10FFFF.
    uint32_t length;
    uint8_t low = 0x80, high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
        length = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        length = 3;
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        length = 4;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
    } else {
        return {replacement, 1, false, false};
    }
    char32_t code_point = lead & (0x7fu >> length);
    for (uint32_t i = 1; i < length; ++i) {
        if (at + i >= text.size()) return {replacement, i, false, true};
        const uint8_t next = byte(at + i);
        if (next < low || next > high) return {replacement, i, false, false};
        code_point = code_point << 6 | (next & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    return {code_point, length, true, false};
}

// Appends the 1..4 bytes of a code point; a surrogate or a value above U+10FFFF is written as U+FFFD.
inline void append(std::string& out, char32_t code_point) {
    if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) code_point = replacement;
    const auto put = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xc0 | code_point >> 6);
        put(0x80 | (code_point & 0x3f));
    } else if (code_point < 0x10000) {
        put(0xe0 | code_point >> 12);
        put(0x80 | (code_point >> 6 & 0x3f));
        put(0x80 | (code_point & 0x3f));
    } else {
        put(0xf0 | code_point >> 18);
        put(0x80 | (code_point >> 12 & 0x3f));
        put(0x80 | (code_point >> 6 & 0x3f));
        put(0x80 | (code_point & 0x3f));
    }
}

// Bytes of the longest prefix that is well-formed; text.size() when all of it is.
inline size_t valid_prefix(std::string_view text) {
    size_t at = 0;
    while (at < text.size()) {
        const Decoded next = decode(text, at);
        if (!next.valid) return at;
        at += next.length;
    }
    return at;
}

inline bool is_valid(std::string_view text) { return valid_prefix(text) == text.size(); }

// Bytes (0..3) at the end of `text` that begin a character which the text does not finish. Looks at the last
// three bytes only.
inline size_t incomplete_tail(std::string_view text) {
    for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
        const auto byte = static_cast<uint8_t>(text[text.size() - back]);
        if ((byte & 0xc0) == 0x80) continue;  // a continuation: its lead is further back
        const Decoded last = decode(text, text.size() - back);
        return last.cut ? back : 0;
    }
    return 0;
}

// The text with every maximal ill-formed subpart as U+FFFD.
inline std::string replace_invalid(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    size_t at = 0;
    while (at < text.size()) {
        const Decoded next = decode(text, at);
        if (next.valid)
            out.append(text.substr(at, next.length));
        else
            append(out, replacement);
        at += next.length;
    }
    return out;
}

}  // namespace base::utf8
