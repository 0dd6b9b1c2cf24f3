#include "text/spm.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/utf8.h"
#include "text/vocabulary.h"

namespace text::spm {

namespace {

constexpr uint32_t none = UINT32_MAX;

class Merger {
  public:
    Merger(std::string_view text, const SpmVocabulary& vocabulary, SpmScratch& scratch)
        : text_(text), vocabulary_(vocabulary), symbols_(scratch.symbols), heap_(scratch.heap) {}

    void run(std::vector<TokenId>& out) {
        symbols_.clear();
        heap_.clear();
        for (size_t at = 0; at < text_.size();) {
            const uint32_t bytes = base::utf8::decode(text_, at).length, i = static_cast<uint32_t>(symbols_.size());
            symbols_.push_back({static_cast<uint32_t>(at), bytes, i == 0 ? none : i - 1, i + 1, find(at, bytes), -1, none});
            at += bytes;
        }
        if (symbols_.empty()) return;
        symbols_.back().next = none;
        for (uint32_t i = 0; i + 1 < symbols_.size(); ++i) {
            look(i);
            if (symbols_[i].rank != none) heap_.push_back(entry(i));
        }
        std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
        while (!heap_.empty()) {
            const uint64_t top = heap_.front();
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
            heap_.pop_back();
            const uint32_t left = static_cast<uint32_t>(top);
            // Stale when the pair at its place is another one by now. A pair of the same rank has an entry of the same value.
            if (symbols_[left].bytes > 0 && symbols_[left].rank == top >> 32) join(left);
        }
        for (uint32_t i = 0; i != none; i = symbols_[i].next) write(symbols_[i], out);
    }

  private:
    TokenId find(size_t begin, size_t bytes) const {
        return vocabulary_.pieces.find(text_.substr(begin, bytes), [&](TokenId id) { return vocabulary_.piece(id); });
    }
    uint64_t entry(uint32_t i) const { return static_cast<uint64_t>(symbols_[i].rank) << 32 | i; }

    // What symbol i makes with its right neighbour.
    void look(uint32_t i) {
        auto& symbol = symbols_[i];
        symbol.joined = symbol.next == none ? -1 : find(symbol.begin, symbol.bytes + symbols_[symbol.next].bytes);
        symbol.rank = symbol.joined < 0 ? none : vocabulary_.ranks[static_cast<size_t>(symbol.joined)];
    }

    void push(uint32_t i) {
        look(i);
        if (symbols_[i].rank == none) return;
        heap_.push_back(entry(i));
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }

    void join(uint32_t i) {
        auto& left = symbols_[i];
        auto& right = symbols_[left.next];
        left.id = left.joined;
        left.bytes += right.bytes;
        left.next = right.next;
        right.bytes = 0;
        if (left.next != none) symbols_[left.next].previous = i;
        push(i);
        if (left.previous != none) push(left.previous);
    }

    void write(const SpmScratch::Symbol& symbol, std::vector<TokenId>& out) const {
        if (symbol.id >= 0) return out.push_back(symbol.id);
        for (const char c : text_.substr(symbol.begin, symbol.bytes)) out.push_back(vocabulary_.byte_tokens[static_cast<unsigned char>(c)]);
    }

    std::string_view text_;
    const SpmVocabulary& vocabulary_;
    std::vector<SpmScratch::Symbol>& symbols_;
    std::vector<uint64_t>& heap_;
};

}  // namespace

void escape(std::string_view text, std::string& out) {
    for (const char c : text) {
        if (c == ' ') {
            out += space;
        } else {
            out += c;
        }
    }
}

void unescape(std::string_view text, std::string& out) {
    while (!text.empty()) {
        const size_t at = std::min(text.find(space), text.size());
        out += text.substr(0, at);
        text.remove_prefix(at);
        if (text.empty()) break;
        out += ' ';
        text.remove_prefix(space.size());
    }
}

size_t next_word(std::string_view text) {
    size_t at = 0;
    while (text.substr(at).starts_with(space)) at += space.size();
    return std::min(text.find(space, at), text.size());
}

void encode(std::string_view text, const SpmVocabulary& vocabulary, SpmScratch& scratch, std::vector<TokenId>& out) {
    CHECK_LT(text.size(), size_t{none});
    while (!text.empty()) {
        const size_t bytes = vocabulary.words_apart ? next_word(text) : text.size();
        Merger(text.substr(0, bytes), vocabulary, scratch).run(out);
        text.remove_prefix(bytes);
    }
}

}  // namespace text::spm
