#include "text/unicode_case.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace text {

namespace {

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

// The rows of different deltas interleave: about 1,400 pairs, sorted once, search faster than the rows.
const Pairs& pairs(CaseMapping mapping) {
    static const auto all = [] {
        std::array<Pairs, 3> tables;
        for (size_t m = 0; m < tables.size(); ++m) {
            for (const CaseRow& row : case_rows(static_cast<CaseMapping>(m))) {
                for (uint32_t cp = row.first; cp <= row.last; cp += row.stride) {
                    tables[m].emplace_back(cp, static_cast<uint32_t>(static_cast<int64_t>(cp) + row.delta));
                }
            }
            std::sort(tables[m].begin(), tables[m].end());
        }
        return tables;
    }();
    return all[static_cast<size_t>(mapping)];
}

}  // namespace

void append_mapped(std::string& out, uint32_t cp, CaseMapping mapping) {
    if (cp < 0x80) {
        const bool letter = mapping == CaseMapping::lower ? cp >= 'A' && cp <= 'Z' : cp >= 'a' && cp <= 'z';
        out += static_cast<char>(letter ? cp ^ 0x20 : cp);
        return;
    }
    const auto specials = case_specials(mapping);
    const auto special = std::lower_bound(specials.begin(), specials.end(), cp,
                                          [](const CaseSpecial& row, uint32_t value) { return row.code_point < value; });
    if (special != specials.end() && special->code_point == cp) {
        out += special->utf8;
        return;
    }
    const Pairs& table = pairs(mapping);
    const auto it = std::lower_bound(table.begin(), table.end(), std::pair<uint32_t, uint32_t>(cp, 0));
    base::utf8::append(out, it != table.end() && it->first == cp ? it->second : cp);
}

bool has_property(uint32_t cp, Property property) {
    const auto rows = property_rows(property);
    const auto it =
        std::upper_bound(rows.begin(), rows.end(), cp, [](uint32_t value, const PropertyRow& row) { return value < row.first; });
    if (it == rows.begin()) return false;
    const PropertyRow& row = *std::prev(it);
    return cp <= row.last && (cp - row.first) % row.stride == 0;
}

}  // namespace text
