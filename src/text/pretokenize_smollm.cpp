#include "base/utf8.h"
#include "text/pretokenize.h"
#include "text/unicode.h"

namespace text {

namespace {

struct Character {
    CharClass cls;
    size_t bytes;
};

Character character(std::string_view text, size_t at) {
    const auto c = base::utf8::decode(text, at);
    return {char_class(c.code_point), c.length};
}

// End of the run of `cls` that begins at `at`.
size_t run_end(std::string_view text, size_t at, CharClass cls) {
    while (at < text.size()) {
        const Character c = character(text, at);
        if (c.cls != cls) break;
        at += c.bytes;
    }
    return at;
}

// 's 't 're 've 'm 'll 'd
size_t contraction(std::string_view text) {
    if (text.size() < 2 || text[0] != '\'') return 0;
    switch (text[1]) {
        case 's':
        case 't':
        case 'm':
        case 'd': return 2;
        case 'r':
        case 'v': return text.size() > 2 && text[2] == 'e' ? 3 : 0;
        case 'l': return text.size() > 2 && text[2] == 'l' ? 3 : 0;
        default: return 0;
    }
}

}  // namespace

size_t smollm_pre_token(std::string_view text) {
    const Character first = character(text, 0);
    // Digits() has cut every number character out already; ` ?\p{N}+` never sees more than one.
    if (first.cls == CharClass::number) return first.bytes;
    if (const size_t bytes = contraction(text)) return bytes;
    if (first.cls != CharClass::space) return run_end(text, first.bytes, first.cls);

    // White space. `last` is where the last space of the run begins.
    size_t last = 0, end = first.bytes;
    CharClass after = CharClass::number;
    while (end < text.size()) {
        const Character c = character(text, end);
        if (c.cls != CharClass::space) {
            after = c.cls;
            break;
        }
        last = end;
        end += c.bytes;
    }
    // The end of the text and a number both end the piece: \s+(?!\S) takes the whole run.
    if (after == CharClass::number) return end;
    if (last > 0) return last;  // \s+(?!\S) leaves one for what follows
    return text[0] == ' ' ? run_end(text, end, after) : end;
}

}  // namespace text
