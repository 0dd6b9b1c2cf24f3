// SentencePiece's BPE: the adjacent pair whose joined text is the piece of the best score is joined, the leftmost first,
// until no pair makes a piece. What is no piece in the end is written byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace text {

struct SpmVocabulary;

// Scratch memory, reused between the words of a text.
struct SpmScratch {
    struct Symbol {
        uint32_t begin, bytes;    // of the text; bytes 0: joined to the left neighbour
        uint32_t previous, next;  // neighbours; UINT32_MAX at the ends
        TokenId id;               // -1: a character that is no piece
        TokenId joined;           // with the right neighbour
        uint32_t rank;            // of `joined`; UINT32_MAX: none
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> heap;  // rank << 32 | index of the left symbol
    std::string text;
};

namespace spm {

inline constexpr std::string_view space = "\xE2\x96\x81";  // U+2581

void escape(std::string_view text, std::string& out);    // ' ' -> U+2581, appended
void unescape(std::string_view text, std::string& out);  // U+2581 -> ' ', appended

// End of the first word: up to a U+2581 that follows something else.
size_t next_word(std::string_view text);

// Appends the ids of an escaped text (valid UTF-8). O(n log n) with n bytes; n < 2^32.
void encode(std::string_view text, const SpmVocabulary& vocabulary, SpmScratch& scratch, std::vector<TokenId>& out);

}  // namespace spm

}  // namespace text
