#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace text {

namespace {

constexpr uint32_t none = UINT32_MAX;

// Below this many symbols looking at every pair again costs less than a heap.
constexpr size_t scan_symbols_max = 24;

using Symbol = MergeScratch::Symbol;

void merge_by_scan(const MergeTable& merges, std::vector<Symbol>& symbols, std::vector<TokenId>& out) {
    MergeTable::Merge candidates[scan_symbols_max];  // of symbol i with symbol i + 1; rank `none` = no merge
    size_t n = symbols.size();
    TokenId ids[scan_symbols_max];
    for (size_t i = 0; i < n; ++i) ids[i] = symbols[i].id;
    const auto look = [&](size_t i) {
        const MergeTable::Merge* merge = i + 1 < n ? merges.find(ids[i], ids[i + 1]) : nullptr;
        candidates[i] = merge ? *merge : MergeTable::Merge{none, -1};
    };
    for (size_t i = 0; i < n; ++i) look(i);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; ++i) {
            if (candidates[i].rank < candidates[best].rank) best = i;
        }
        if (candidates[best].rank == none) break;
        ids[best] = candidates[best].joined;
        --n;
        for (size_t i = best + 1; i < n; ++i) {
            ids[i] = ids[i + 1];
            candidates[i] = candidates[i + 1];
        }
        look(best);
        if (best > 0) look(best - 1);
    }
    out.insert(out.end(), ids, ids + n);
}

// A linked list of symbols and a heap of the merges that were possible when they were seen. An entry is stale when the
// pair at its place has another merge by now: tokens only grow, so the same joined token there means the same pair.
void merge_by_heap(const MergeTable& merges, MergeScratch& scratch, std::vector<TokenId>& out) {
    auto& symbols = scratch.symbols;
    auto& heap = scratch.heap;
    heap.clear();
    const auto candidate = [&](uint32_t left) -> const MergeTable::Merge* {
        const uint32_t right = symbols[left].next;
        return right == none ? nullptr : merges.find(symbols[left].id, symbols[right].id);
    };
    for (uint32_t i = 0; i < symbols.size(); ++i) {
        if (const auto* merge = candidate(i)) heap.push_back(static_cast<uint64_t>(merge->rank) << 32 | i);
    }
    const auto order = std::greater<uint64_t>();
    std::make_heap(heap.begin(), heap.end(), order);
    const auto push = [&](uint32_t left) {
        if (const auto* merge = candidate(left)) {
            heap.push_back(static_cast<uint64_t>(merge->rank) << 32 | left);
            std::push_heap(heap.begin(), heap.end(), order);
        }
    };
    while (!heap.empty()) {
        const uint64_t top = heap.front();
        std::pop_heap(heap.begin(), heap.end(), order);
        heap.pop_back();
        const uint32_t left = static_cast<uint32_t>(top);
        Symbol& symbol = symbols[left];
        if (symbol.id < 0) continue;  // was joined to its left neighbour
        const auto* merge = candidate(left);
        if (!merge || merge->rank != top >> 32) continue;
        const uint32_t right = symbol.next;
        symbol.id = merge->joined;
        symbol.next = symbols[right].next;
        if (symbol.next != none) symbols[symbol.next].previous = left;
        symbols[right].id = -1;
        push(left);
        if (symbol.previous != none) push(symbol.previous);
    }
    for (uint32_t i = 0; i != none; i = symbols[i].next) out.push_back(symbols[i].id);
}

}  // namespace

void merge(std::string_view pre_token, const std::array<TokenId, 256>& byte_tokens, const MergeTable& merges, MergeScratch& scratch,
           std::vector<TokenId>& out) {
    CHECK_LT(pre_token.size(), size_t{none});
    auto& symbols = scratch.symbols;
    symbols.clear();
    for (const char c : pre_token) {
        const TokenId id = byte_tokens[static_cast<unsigned char>(c)];
        if (id < 0) continue;
        const uint32_t at = static_cast<uint32_t>(symbols.size());
        symbols.push_back({id, at == 0 ? none : at - 1, at + 1});
    }
    if (symbols.empty()) return;
    symbols.back().next = none;
    if (symbols.size() == 1) {
        out.push_back(symbols.front().id);
    } else if (symbols.size() <= scan_symbols_max) {
        merge_by_scan(merges, symbols, out);
    } else {
        merge_by_heap(merges, scratch, out);
    }
}

}  // namespace text
