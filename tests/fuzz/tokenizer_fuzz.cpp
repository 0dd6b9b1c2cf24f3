// Tokenizer and detokenizer on any bytes, over a small vocabulary. The first byte picks how the rest is cut into
// segments. What must hold: user text gives no control token, the ids give back the text (U+FFFD for bad bytes), and the
// detokenizer's pieces are whole characters.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "tests/text/vocabulary_builder.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const auto tokenizer = [] {
        const auto image = support::VocabularySpec().image();
        auto file = gguf::File::parse(image, "fuzz");
        CHECK(file.ok());
        auto made = text::Tokenizer::from_gguf(file.value());
        CHECK(made.ok());
        return std::move(made).value();
    }();
    if (size == 0) return 0;
    const uint8_t cuts = data[0];
    const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

    std::vector<text::TokenId> ids;
    tokenizer->encode(bytes, false, ids);
    std::string back;
    for (const text::TokenId id : ids) {
        CHECK(tokenizer->token_kind(id) != text::TokenKind::control);
        back += tokenizer->token_bytes(id);
    }
    CHECK(back == base::utf8::replace_invalid(bytes));

    // Pieces of 1 + cuts % 7 bytes, the template's and the user's in turn.
    std::vector<text::Segment> segments;
    for (size_t at = 0; at < bytes.size(); at += 1 + cuts % 7)
        segments.push_back({bytes.substr(at, 1 + cuts % 7), segments.size() % 2 == 0});
    ids.clear();
    tokenizer->encode(segments, cuts & 0x80, ids);
    text::Detokenizer detokenizer;
    std::string text, joined;
    const auto sink = [&](std::string_view piece) {
        CHECK(base::utf8::is_valid(piece));
        text += piece;
    };
    for (const text::TokenId id : ids) {
        // Every control token is longer than a segment, so none may be read: its bytes are never the template's alone.
        CHECK(tokenizer->token_kind(id) != text::TokenKind::control);
        joined += tokenizer->token_bytes(id);
        detokenizer.push(tokenizer->token_bytes(id), sink);
    }
    detokenizer.finish(sink);
    CHECK(joined == base::utf8::replace_invalid(bytes));
    CHECK(text == joined);
    return 0;
}
