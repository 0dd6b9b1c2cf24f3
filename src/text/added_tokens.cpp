#include "text/added_tokens.h"

#include <algorithm>

#include "base/check.h"

namespace text {

void AddedTokens::add(TokenId id, std::string_view text, bool anywhere) {
    CHECK(!text.empty());
    rows_.push_back({static_cast<uint32_t>(arena_.size()), static_cast<uint32_t>(text.size()), id, anywhere});
    arena_ += text;
}

void AddedTokens::finish() {
    std::sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) { return text_of(a) < text_of(b); });
    size_t at = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
        first_by_byte_[byte] = static_cast<uint32_t>(at);
        while (at < rows_.size() && static_cast<unsigned char>(text_of(rows_[at])[0]) == byte) ++at;
    }
    first_by_byte_[256] = static_cast<uint32_t>(at);
}

// The candidates lie sorted: each further byte narrows [low, high) by bisection, at most vocab_special_bytes times.
AddedTokens::Match AddedTokens::match(std::string_view text, size_t at, size_t template_end) const {
    const size_t byte = static_cast<unsigned char>(text[at]);
    if (first_by_byte_[byte] == first_by_byte_[byte + 1]) return {};
    auto low = rows_.begin() + first_by_byte_[byte], high = rows_.begin() + first_by_byte_[byte + 1];
    Match best;
    for (size_t depth = 1; low != high; ++depth) {
        // The shortest sorts first; two texts may be equal where spaces are escaped.
        for (; low != high && low->bytes == depth; ++low) {
            if (low->anywhere || at + depth <= template_end) best = {low->id, depth};
        }
        if (low == high || at + depth >= text.size()) break;
        const unsigned char next = static_cast<unsigned char>(text[at + depth]);
        const auto byte_of = [&](const Row& row) { return static_cast<unsigned char>(arena_[row.begin + depth]); };
        low = std::lower_bound(low, high, next, [&](const Row& row, unsigned char value) { return byte_of(row) < value; });
        high = std::upper_bound(low, high, next, [&](unsigned char value, const Row& row) { return value < byte_of(row); });
    }
    return best;
}

}  // namespace text
