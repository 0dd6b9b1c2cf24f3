#include "text/jinja/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/lexer.h"
#include "text/unicode_case.h"

namespace text::jinja {

size_t byte_of(const Str& str, size_t index, size_t from_byte, size_t from_index) {
    if (str.is_ascii()) return index;
    size_t at = from_byte;
    for (size_t i = from_index; i < index && at < str.text.size(); ++i) at += base::utf8::decode(str.text, at).length;
    str.heap.work(at - from_byte);
    return at;
}

size_t index_of(const Str& str, size_t at) {
    if (str.is_ascii()) return at;
    size_t index = 0;
    for (size_t i = 0; i < at; ++i) index += (str.text[i] & 0xC0) != 0x80;
    str.heap.work(at);
    return index;
}

Indices slice_indices(int64_t length, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? length : length - 1;
    const auto place = [&](int64_t i) {
        if (i < 0) i = i < -length ? -1 - length : i;  // far below zero: no overflow in the sum
        return std::clamp(i < 0 ? i + length : i, low, high);
    };
    const int64_t first = start ? place(*start) : step > 0 ? low : high;
    const int64_t last = stop ? place(*stop) : step > 0 ? high : low;
    // The distance and the step as unsigned numbers: -step of the smallest integer is none.
    const uint64_t distance =
        step > 0 ? (last > first ? static_cast<uint64_t>(last - first) : 0) : (first > last ? static_cast<uint64_t>(first - last) : 0);
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    const uint64_t count = distance == 0 ? 0 : (distance - 1) / stride + 1;
    return {first, last, static_cast<int64_t>(count)};
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
    if (from > text.size()) return std::string_view::npos;
    if (needle.empty()) return from;
    const void* found = ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());  // glibc's: the two-way algorithm
    return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

size_t rfind_text(std::string_view text, std::string_view needle) {
    if (needle.size() > text.size()) return std::string_view::npos;
    const std::string backwards(text.rbegin(), text.rend()), wanted(needle.rbegin(), needle.rend());
    const size_t found = find_text(backwards, wanted);
    return found == std::string_view::npos ? found : text.size() - found - needle.size();
}

namespace {

// Bytes of the character that ends at `end`.
size_t last_length(std::string_view text, size_t begin, size_t end) {
    size_t at = end - 1;
    while (at > begin && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return end - at;
}

}  // namespace

Span strip(std::string_view text, const std::string_view* chars, bool left, bool right) {
    // A set of characters: a table for ASCII, a sorted list for the rest, which may be as long as a string may.
    bool ascii[128] = {};
    std::vector<char32_t> others;
    if (chars) {
        for (size_t at = 0; at < chars->size();) {
            const auto c = base::utf8::decode(*chars, at);
            if (c.code_point < 0x80) ascii[c.code_point] = true;
            else others.push_back(c.code_point);
            at += c.length;
        }
        std::sort(others.begin(), others.end());
    }
    const auto goes = [&](size_t at, size_t length) {
        if (!chars) return space_at(text, at) > 0;
        if (length == 1) return ascii[static_cast<unsigned char>(text[at])];
        return std::binary_search(others.begin(), others.end(), base::utf8::decode(text, at).code_point);
    };
    Span span{0, text.size()};
    while (left && span.begin < span.end) {
        const size_t length = base::utf8::decode(text, span.begin).length;
        if (!goes(span.begin, length)) break;
        span.begin += length;
    }
    while (right && span.end > span.begin) {
        const size_t length = last_length(text, span.begin, span.end);
        if (!goes(span.end - length, length)) break;
        span.end -= length;
    }
    return span;
}

std::string float_repr(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    // d.ddde[+-]xx: digits and decimal exponent.
    const std::string_view text(buffer, static_cast<size_t>(end - buffer));
    const size_t e = text.find('e');
    int exponent = 0;
    std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
    std::string digits;
    for (const char c : text.substr(0, e)) {
        if (c >= '0' && c <= '9') digits += c;
    }
    std::string out = text[0] == '-' ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (digits.size() > 1) out.append(".").append(digits, 1);
        out += exponent < 0 ? "e-" : "e+";
        const int absolute = std::abs(exponent);
        if (absolute < 10) out += '0';
        return out + std::to_string(absolute);
    }
    if (exponent < 0) return out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
    const size_t whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) return out.append(digits).append(whole - digits.size(), '0').append(".0");
    return out.append(digits, 0, whole).append(".").append(digits, whole);
}

namespace {

std::string_view stripped(std::string_view text) {
    const Span span = strip(text, nullptr, true, true);
    return text.substr(span.begin, span.end - span.begin);
}

// Underscores may stand between two digits only. False when one stands elsewhere.
bool drop_underscores(std::string_view text, std::string& out) {
    const auto alnum = [&](size_t i) { return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])); };
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            out += text[i];
        } else if (i == 0 || !alnum(i - 1) || !alnum(i + 1)) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text, int base) {
    text = stripped(text);
    bool negative = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
    if (text.size() > 1 && text[0] == '0') {
        const char x = static_cast<char>(text[1] | 0x20);
        const int prefix = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 0;
        if (prefix && (base == 0 || base == prefix)) {
            base = prefix;
            text.remove_prefix(2);
            if (!text.empty() && text[0] == '_') text.remove_prefix(1);
        } else if (base == 0 && text.find_first_not_of("0_") != std::string_view::npos) {
            return std::nullopt;
        }
    }
    std::string digits;
    if (text.empty() || !drop_underscores(text, digits)) return std::nullopt;
    uint64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base == 0 ? 10 : base);
    if (result.ptr != digits.data() + digits.size()) return std::nullopt;
    if (result.ec == std::errc::result_out_of_range || value > (negative ? uint64_t{1} << 63 : (uint64_t{1} << 63) - 1)) {
        fail("an integer beyond 64 bits");
    }
    return static_cast<int64_t>(negative ? 0 - value : value);
}

std::optional<double> parse_float(std::string_view text) {
    text = stripped(text);
    std::string plain;
    if (!drop_underscores(text, plain)) return std::nullopt;
    std::string_view rest = plain;
    bool negative = false;
    if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
        negative = rest[0] == '-';
        rest.remove_prefix(1);
    }
    std::string lower;
    for (const char c : rest.substr(0, 9)) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    double value = 0;
    if (lower == "inf" || lower == "infinity") {
        value = HUGE_VAL;
    } else if (lower == "nan") {
        value = std::nan("");
    } else {
        if (rest.empty() || !(std::isdigit(static_cast<unsigned char>(rest[0])) || rest[0] == '.')) return std::nullopt;
        const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (result.ptr != rest.data() + rest.size()) return std::nullopt;
        if (result.ec == std::errc::result_out_of_range) {
            const size_t e = lower.find("e-");  // too small or too large
            value = rest.find("e-") != std::string_view::npos || rest.find("E-") != std::string_view::npos || e != std::string::npos
                        ? 0
                        : HUGE_VAL;
        } else if (result.ec != std::errc()) {
            return std::nullopt;
        }
    }
    return negative ? -value : value;
}

std::string string_repr(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    const bool single = text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
    const char quote = single ? '\'' : '"';
    std::string out(1, quote);
    const auto escape = [&](char letter, uint32_t cp, int digits) {
        out += '\\';
        out += letter;
        for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += hex[cp >> shift & 15];
    };
    for (size_t at = 0; at < text.size();) {
        const auto c = base::utf8::decode(text, at);
        if (c.code_point == static_cast<unsigned char>(quote) || c.code_point == '\\') {
            out += '\\';
            out += text[at];
        } else if (c.code_point == '\n') {
            out += "\\n";
        } else if (c.code_point == '\r') {
            out += "\\r";
        } else if (c.code_point == '\t') {
            out += "\\t";
        } else if (c.code_point < 0x20 || c.code_point == 0x7F) {
            escape('x', c.code_point, 2);
        } else if (c.code_point >= 0x80 && has_property(c.code_point, Property::not_printable)) {
            c.code_point < 0x100     ? escape('x', c.code_point, 2)
            : c.code_point < 0x10000 ? escape('u', c.code_point, 4)
                                     : escape('U', c.code_point, 8);
        } else {
            out += text.substr(at, c.length);
        }
        at += c.length;
    }
    return out + quote;
}

namespace {

bool is_cased(uint32_t cp) {
    return has_property(cp, Property::lower) || has_property(cp, Property::upper) || has_property(cp, Property::title);
}

// Capital sigma is final when a cased letter stands before it and none after it, case-ignorable ones aside.
bool final_sigma(std::string_view text, size_t at) {
    size_t before = at;
    bool cased_before = false;
    while (before > 0) {
        before -= last_length(text, 0, before);
        const uint32_t cp = base::utf8::decode(text, before).code_point;
        if (has_property(cp, Property::case_ignorable)) continue;
        cased_before = is_cased(cp);
        break;
    }
    if (!cased_before) return false;
    for (size_t after = at + 2; after < text.size();) {
        const auto c = base::utf8::decode(text, after);
        if (!has_property(c.code_point, Property::case_ignorable)) return !is_cased(c.code_point);
        after += c.length;
    }
    return true;
}

constexpr uint32_t capital_sigma = 0x3A3;

void append_lower(std::string& out, std::string_view text, size_t at, uint32_t cp) {
    if (cp == capital_sigma) {
        base::utf8::append(out, final_sigma(text, at) ? 0x3C2 : 0x3C3);
    } else {
        append_mapped(out, cp, CaseMapping::lower);
    }
}

}  // namespace

void add_cased(Builder& out, const Str& str, size_t begin, size_t end, Case what) {
    const std::string_view text = str.text.substr(begin, end - begin);
    std::string run;
    bool run_user = false, previous_cased = false;
    auto range = std::partition_point(str.user.begin(), str.user.end(), [&](const UserRange& r) { return r.end <= begin; });
    for (size_t at = 0; at < text.size();) {
        while (range != str.user.end() && range->end <= begin + at) ++range;
        const bool user = range != str.user.end() && range->begin <= begin + at;
        if (user != run_user) {
            out.add(run, run_user);
            run.clear();
            run_user = user;
        }
        const auto c = base::utf8::decode(text, at);
        const uint32_t cp = c.code_point;
        switch (what) {
            case Case::lower: append_lower(run, text, at, cp); break;
            case Case::upper: append_mapped(run, cp, CaseMapping::upper); break;
            case Case::capitalize:
                if (at == 0) {
                    append_mapped(run, cp, CaseMapping::title);
                } else {
                    append_lower(run, text, at, cp);
                }
                break;
            case Case::title:
                if (previous_cased) {
                    append_lower(run, text, at, cp);
                } else {
                    append_mapped(run, cp, CaseMapping::title);
                }
                previous_cased = is_cased(cp);
                break;
            case Case::swap:
                if (has_property(cp, Property::upper)) {
                    append_lower(run, text, at, cp);
                } else if (has_property(cp, Property::lower)) {
                    append_mapped(run, cp, CaseMapping::upper);
                } else {
                    run += text.substr(at, c.length);
                }
                break;
        }
        at += c.length;
    }
    out.add(run, run_user);
}

}  // namespace text::jinja
