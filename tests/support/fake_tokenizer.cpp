#include "tests/support/fake_tokenizer.h"

#include "base/check.h"

namespace support {

FakeTokenizer::FakeTokenizer() {
    for (int b = 0; b < 256; ++b) bytes_.emplace_back(1, static_cast<char>(b));
    for (const char* name : {"<eos>", "<bos>", "<eot>", "<pad>"}) bytes_.emplace_back(name);
    // Words, pieces of stop strings, whole characters and halves of them, and text longer than one event.
    for (const char* piece : {"the ", "ab", "abc", "bca", "END", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F", "\x98\x80", "\xE2\x82", "\n\n"}) {
        bytes_.emplace_back(piece);
    }
    bytes_.emplace_back(std::string(300, '~'));
    CHECK_EQ(bytes_.size(), size_t{vocab});
}

void FakeTokenizer::encode(std::string_view text, bool parse_special, std::vector<text::TokenId>& out) const {
    for (size_t at = 0; at < text.size();) {
        text::TokenId special = -1;
        for (text::TokenId id = eos; parse_special && id < first_piece; ++id) {
            if (text.substr(at).starts_with(token_bytes(id))) special = id;
        }
        out.push_back(special >= 0 ? special : byte_token(text[at]));
        at += special >= 0 ? token_bytes(special).size() : 1;
    }
}

void FakeTokenizer::encode(std::span<const text::Segment> segments, bool add_special, std::vector<text::TokenId>& out) const {
    const size_t begin = out.size();
    for (const text::Segment& segment : segments) encode(segment.text, segment.from_template, out);
    if (add_special && (out.size() == begin || out[begin] != bos)) out.insert(out.begin() + static_cast<ptrdiff_t>(begin), bos);
}

}  // namespace support
