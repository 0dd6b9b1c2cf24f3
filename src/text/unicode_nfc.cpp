#include "text/unicode_nfc.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"

namespace text {

namespace {

// Hangul syllables are arithmetic (the Unicode Standard, 3.12).
constexpr uint32_t s_base = 0xAC00, l_base = 0x1100, v_base = 0x1161, t_base = 0x11A7;
constexpr uint32_t l_count = 19, v_count = 21, t_count = 28, s_count = l_count * v_count * t_count;

const Decomposition* find_decomposition(uint32_t code_point) {
    const auto rows = decompositions();
    const auto it = std::lower_bound(rows.begin(), rows.end(), code_point,
                                     [](const Decomposition& row, uint32_t value) { return row.code_point < value; });
    return it != rows.end() && it->code_point == code_point ? &*it : nullptr;
}

uint8_t combining_class(uint32_t code_point) {
    const auto rows = combining_ranges();
    const auto it = std::upper_bound(rows.begin(), rows.end(), code_point,
                                     [](uint32_t value, const CombiningRange& row) { return value < row.first; });
    if (it == rows.begin()) return 0;
    return code_point <= std::prev(it)->last ? std::prev(it)->combining : uint8_t{0};
}

bool by_parts(const Decomposition* a, const Decomposition* b) {
    return a->first != b->first ? a->first < b->first : a->second < b->second;
}

// The rows that compose, sorted by their parts.
const std::vector<const Decomposition*>& compositions() {
    static const auto built = [] {
        std::vector<const Decomposition*> rows;
        for (const Decomposition& row : decompositions()) {
            if (row.composes) rows.push_back(&row);
        }
        std::sort(rows.begin(), rows.end(), by_parts);
        return rows;
    }();
    return built;
}

// 0: the two don't compose.
uint32_t compose(uint32_t first, uint32_t second) {
    if (first >= l_base && first < l_base + l_count && second >= v_base && second < v_base + v_count) {
        return s_base + ((first - l_base) * v_count + second - v_base) * t_count;
    }
    if (first >= s_base && first < s_base + s_count && (first - s_base) % t_count == 0 && second > t_base && second < t_base + t_count) {
        return first + second - t_base;
    }
    const Decomposition wanted{0, first, second, true};
    const auto& rows = compositions();
    const auto it = std::lower_bound(rows.begin(), rows.end(), &wanted, by_parts);
    return it != rows.end() && (*it)->first == first && (*it)->second == second ? (*it)->code_point : 0;
}

// Code points that may be different in form C: they combine, compose with what is before, or never stay.
constexpr uint32_t first_doubtful = 0x300;
const std::vector<bool>& doubtful() {
    static const auto built = [] {
        std::vector<bool> t(0x110000);
        for (const CombiningRange& row : combining_ranges()) std::fill(t.begin() + row.first, t.begin() + row.last + 1, true);
        for (const Decomposition& row : decompositions()) {
            if (!row.composes) t[row.code_point] = true;
            if (row.composes && row.second) t[row.second] = true;
        }
        std::fill(t.begin() + v_base, t.begin() + v_base + v_count, true);
        std::fill(t.begin() + t_base + 1, t.begin() + t_base + t_count, true);
        return t;
    }();
    return built;
}

struct Character {
    uint32_t code_point;
    uint8_t combining;
};

void decompose(uint32_t code_point, std::vector<Character>& out) {
    const auto put = [&](uint32_t c) { out.push_back({c, combining_class(c)}); };
    if (code_point < 0xC0) return put(code_point);
    if (code_point >= s_base && code_point < s_base + s_count) {
        const uint32_t index = code_point - s_base;
        put(l_base + index / (v_count * t_count));
        put(v_base + index % (v_count * t_count) / t_count);
        if (index % t_count) put(t_base + index % t_count);
        return;
    }
    // Only the first part decomposes further, a few times at most: the seconds come out last to first.
    uint32_t seconds[8];
    size_t n = 0;
    while (const Decomposition* row = find_decomposition(code_point)) {
        code_point = row->first;
        if (row->second && n < std::size(seconds)) seconds[n++] = row->second;
    }
    put(code_point);
    while (n > 0) put(seconds[--n]);
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        if (static_cast<unsigned char>(text[at]) < 0xCC) {  // below U+0300
            ++at;
            continue;
        }
        const auto c = base::utf8::decode(text, at);
        if (c.code_point >= first_doubtful && doubtful()[c.code_point]) return false;
        at += c.length;
    }
    return true;
}

std::string nfc(std::string_view text) {
    std::vector<Character> all;
    for (size_t at = 0; at < text.size();) {
        const auto c = base::utf8::decode(text, at);
        decompose(c.code_point, all);
        at += c.length;
    }
    // Canonical order: within a run of combining characters by class, otherwise as they were.
    for (size_t i = 0; i < all.size();) {
        size_t end = i + 1;
        if (all[i].combining) {
            while (end < all.size() && all[end].combining) ++end;
            std::stable_sort(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(end),
                             [](const Character& a, const Character& b) { return a.combining < b.combining; });
        }
        i = end;
    }
    // Composition: a character joins the last starter unless one of the same or a higher class stands between.
    constexpr size_t none = SIZE_MAX;
    size_t starter = none, kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        const Character c = all[i];
        if (starter != none) {
            const bool adjacent = starter + 1 == kept;
            const uint8_t between = adjacent ? uint8_t{0} : all[kept - 1].combining;
            if (adjacent || (between < c.combining && between != 0)) {
                if (const uint32_t joined = compose(all[starter].code_point, c.code_point)) {
                    all[starter].code_point = joined;
                    continue;
                }
            }
        }
        if (c.combining == 0) starter = kept;
        all[kept++] = c;
    }
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < kept; ++i) base::utf8::append(out, static_cast<char32_t>(all[i].code_point));
    return out;
}

}  // namespace text
