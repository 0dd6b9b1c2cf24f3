// Falcon's pipeline and the one that GGUF calls "default": punctuation in runs, GPT-2's pattern, digits in threes.
//   falcon:  [\p{P}\$\+<=>\^~\|`]+  GPT-2's  [0-9][0-9][0-9]
//   default: [\p{P}\$\+<=>\^~\|]+   GPT-2's  \p{N}+  [0-9][0-9][0-9]
#include "text/pretokenize.h"
#include "text/pretokenize_scan.h"

namespace text::cut {

namespace {

// The ASCII symbols but the grave accent, which only falcon counts.
bool is_punctuation(const scan::Character& c) {
    return c.cls == CharClass::punctuation || (c.code_point < 0x80 && c.cls == CharClass::symbol && c.code_point != '`');
}

}  // namespace

size_t falcon_punctuation(std::string_view text) {
    return scan::runs(text, [](const scan::Character& c) { return is_punctuation(c) || c.code_point == '`'; });
}

size_t default_punctuation(std::string_view text) { return scan::runs(text, is_punctuation); }

}  // namespace text::cut
