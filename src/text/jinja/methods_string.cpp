// The methods of str.
#include <algorithm>

#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/lexer.h"
#include "text/jinja/strings.h"
#include "text/unicode_case.h"

namespace text::jinja {

using base::cat;

namespace {

constexpr size_t npos = std::string_view::npos;

template <bool left, bool right>
Value strip_method(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("strip", {"chars"}, out);
    return strip_string(in, self.str(), out[0], left, right);
}

template <Case what>
Value case_method(Interpreter& in, const Value& self, Args& args) {
    args.none("a case method");
    Builder text(in.heap());
    add_cased(text, self.str(), what);
    return marked(text.finish(), self.str());
}

// [begin, end) byte ranges of the words of text: str.split() without a separator. From the right when `limit` counts there.
std::vector<Span> split_words(std::string_view text, int64_t limit, bool from_right) {
    std::vector<Span> words;
    size_t begin = 0, end = text.size();
    const auto trim_left = [&] { begin += strip(text.substr(begin, end - begin), nullptr, true, false).begin; };
    const auto trim_right = [&] { end = begin + strip(text.substr(begin, end - begin), nullptr, false, true).end; };
    if (!from_right) {
        for (trim_left(); begin < end; trim_left()) {
            if (limit >= 0 && static_cast<int64_t>(words.size()) == limit) {
                words.push_back({begin, end});  // the rest, its final white space too
                break;
            }
            size_t at = begin;
            while (at < end && space_at(text, at) == 0) at += base::utf8::decode(text, at).length;
            words.push_back({begin, at});
            begin = at;
        }
        return words;
    }
    for (trim_right(); begin < end; trim_right()) {
        if (limit >= 0 && static_cast<int64_t>(words.size()) == limit) {
            words.push_back({begin, end});
            break;
        }
        size_t at = end;
        while (at > begin) {
            size_t previous = at - 1;
            while (previous > begin && (static_cast<unsigned char>(text[previous]) & 0xC0) == 0x80) --previous;
            if (space_at(text, previous) > 0) break;
            at = previous;
        }
        words.push_back({at, end});
        end = at;
    }
    std::reverse(words.begin(), words.end());
    return words;
}

std::vector<Span> split_at(Interpreter& in, std::string_view text, std::string_view separator, int64_t limit, bool from_right) {
    std::vector<size_t> places;  // of separators, left to right
    if (!from_right) {
        for (size_t at = 0; limit < 0 || static_cast<int64_t>(places.size()) < limit;) {
            const size_t found = find_text(text, separator, at);
            if (found == npos) break;
            in.heap().step();
            places.push_back(found);
            at = found + separator.size();
        }
    } else {
        // In the reversed text the search from the right is one from the left.
        const std::string backwards(text.rbegin(), text.rend()), wanted(separator.rbegin(), separator.rend());
        for (size_t at = 0; limit < 0 || static_cast<int64_t>(places.size()) < limit;) {
            const size_t found = find_text(backwards, wanted, at);
            if (found == npos) break;
            in.heap().step();
            places.push_back(text.size() - found - separator.size());
            at = found + separator.size();
        }
        std::reverse(places.begin(), places.end());
    }
    std::vector<Span> parts;
    size_t begin = 0;
    for (const size_t place : places) {
        parts.push_back({begin, place});
        begin = place + separator.size();
    }
    parts.push_back({begin, text.size()});
    return parts;
}

Value strings_of(Interpreter& in, const Str& str, const std::vector<Span>& spans) {
    std::vector<Value> parts;
    parts.reserve(spans.size());
    for (const Span& span : spans) {
        in.heap().step();
        parts.push_back(marked(substring(in.heap(), str, span.begin, span.end), str));
    }
    return make_list(in.heap(), std::move(parts));
}

template <bool from_right>
Value split(Interpreter& in, const Value& self, Args& args) {
    const Value* out[2];
    args.bind("split", {"sep", "maxsplit"}, out);
    const Str& str = self.str();
    const int64_t limit = out[1] ? int_argument(*out[1], "split's maxsplit") : -1;
    in.heap().work(str.text.size());
    if (!out[0] || out[0]->is_none()) return strings_of(in, str, split_words(str.text, limit, from_right));
    const Str& separator = string_argument(*out[0], "split's sep");
    if (separator.text.empty()) fail("empty separator");
    return strings_of(in, str, split_at(in, str.text, separator.text, limit, from_right));
}

Value splitlines(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("splitlines", {"keepends"}, out);
    in.heap().work(self.str().text.size());
    return strings_of(in, self.str(), split_lines(self.str().text, false, out[0] && truthy(*out[0])));
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("partition", {"sep"}, out, 1);
    const Str &str = self.str(), &separator = string_argument(*out[0], "partition's sep");
    if (separator.text.empty()) fail("empty separator");
    in.heap().work(str.text.size());
    const size_t place = from_right ? rfind_text(str.text, separator.text) : find_text(str.text, separator.text);
    std::vector<Value> parts;
    if (place == npos) {
        const Value whole = substring(in.heap(), str, 0, str.text.size());
        parts =
            from_right ? std::vector<Value>{in.string(""), in.string(""), whole} : std::vector<Value>{whole, in.string(""), in.string("")};
    } else {
        const size_t after = place + separator.text.size();
        parts = {substring(in.heap(), str, 0, place), substring(in.heap(), str, place, after),
                 substring(in.heap(), str, after, str.text.size())};
    }
    for (Value& part : parts) part.str().markup = str.markup;
    return make_list(in.heap(), std::move(parts), Flavor::tuple);
}

// [begin, end) in bytes of the part that optional start and end arguments (characters) leave; false: start lies behind the end.
bool part_of(const Str& str, const Value* start, const Value* stop, Span& part) {
    const int64_t n = static_cast<int64_t>(str.length());
    const auto place = [&](const Value* value, int64_t otherwise) {
        if (!value || value->is_none()) return otherwise;
        int64_t i = int_argument(*value, "a position");
        if (i < 0) i = i < -n ? 0 : i + n;
        return i;
    };
    const int64_t first = place(start, 0), last = std::min(place(stop, n), n);
    if (first > last) return false;
    part = {byte_of(str, static_cast<size_t>(first)), byte_of(str, static_cast<size_t>(last))};
    return true;
}

template <bool at_end>
Value starts_or_ends(Interpreter& in, const Value& self, Args& args) {
    const Value* out[3];
    args.bind(at_end ? "endswith" : "startswith", {at_end ? "suffix" : "prefix", "start", "end"}, out, 1);
    const Str& str = self.str();
    Span part{0, str.text.size()};
    if ((out[1] || out[2]) && !part_of(str, out[1], out[2], part)) return Value::boolean(false);
    const std::string_view text = str.text.substr(part.begin, part.end - part.begin);
    const auto holds = [&](const Value& value) {
        in.heap().step();
        const std::string_view wanted = string_argument(value, "a prefix or suffix").text;
        return at_end ? text.ends_with(wanted) : text.starts_with(wanted);
    };
    if (!out[0]->is(Kind::list) || !out[0]->list().is_tuple()) return Value::boolean(holds(*out[0]));
    for (const Value& value : out[0]->list().items) {
        if (holds(value)) return Value::boolean(true);
    }
    return Value::boolean(false);
}

enum class Search { find, rfind, index, rindex };
template <Search what>
Value search(Interpreter& in, const Value& self, Args& args) {
    const Value* out[3];
    args.bind("find", {"sub", "start", "end"}, out, 1);
    const Str &str = self.str(), &wanted = string_argument(*out[0], "what to find");
    in.heap().work(str.text.size());
    Span part{0, 0};
    size_t found = npos;
    if (part_of(str, out[1], out[2], part)) {
        const std::string_view text = str.text.substr(part.begin, part.end - part.begin);
        found = what == Search::rfind || what == Search::rindex ? rfind_text(text, wanted.text) : find_text(text, wanted.text);
    }
    if (found == npos) {
        if (what == Search::index || what == Search::rindex) fail("substring not found");
        return Value::integer(-1);
    }
    return Value::integer(static_cast<int64_t>(index_of(str, part.begin + found)));
}

Value count(Interpreter& in, const Value& self, Args& args) {
    const Value* out[3];
    args.bind("count", {"sub", "start", "end"}, out, 1);
    const Str &str = self.str(), &wanted = string_argument(*out[0], "what to count");
    Span part{0, 0};
    if (!part_of(str, out[1], out[2], part)) return Value::integer(0);
    const std::string_view text = str.text.substr(part.begin, part.end - part.begin);
    in.heap().work(str.text.size());
    if (wanted.text.empty()) {
        int64_t characters = 1;
        for (const char c : text) characters += (c & 0xC0) != 0x80;
        return Value::integer(characters);
    }
    int64_t n = 0;
    for (size_t at = find_text(text, wanted.text); at != npos; at = find_text(text, wanted.text, at + wanted.text.size())) {
        in.heap().step();
        ++n;
    }
    return Value::integer(n);
}

Value replace(Interpreter& in, const Value& self, Args& args) {
    const Value* out[3];
    args.bind("replace", {"old", "new", "count"}, out, 2);
    const int64_t limit = out[2] ? int_argument(*out[2], "replace's count") : -1;
    const Str &str = self.str(), &from = string_argument(*out[0], "replace's old"), &to = string_argument(*out[1], "replace's new");
    if (!str.markup) return replace_string(in, str, from, to, limit);
    Builder escaped(in.heap());
    add_escaped(in, escaped, to);
    return marked(replace_string(in, str, from, escaped.finish().str(), limit), str);
}

Value join(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("join", {"iterable"}, out, 1);
    Builder text(in.heap());
    if (!is_iterable(*out[0])) fail("can only join an iterable");
    Cursor cursor(in.heap(), *out[0]);
    Value item;
    for (int64_t i = 0; cursor.next(item); ++i) {
        if (!item.is_string()) fail(cat("sequence item ", i, ": expected str instance, ", type_name(item), " found"));
        if (i > 0) text.add(self.str());
        self.str().markup ? add_escaped(in, text, item.str()) : text.add(item.str());
    }
    return marked(text.finish(), self.str());
}

template <bool prefix>
Value remove_affix(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind(prefix ? "removeprefix" : "removesuffix", {"affix"}, out, 1);
    const Str &str = self.str(), &affix = string_argument(*out[0], "a prefix or suffix");
    const bool there = prefix ? str.text.starts_with(affix.text) : str.text.ends_with(affix.text);
    const size_t n = there ? affix.text.size() : 0;
    return marked(substring(in.heap(), str, prefix ? n : 0, str.text.size() - (prefix ? 0 : n)), str);
}

template <Padding padding>
Value justify(Interpreter& in, const Value& self, Args& args) {
    const Value* out[2];
    args.bind("a padding method", {"width", "fillchar"}, out, 1);
    return pad_string(in, self.str(), int_argument(*out[0], "a width"), out[1], padding);
}

Value zfill(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("zfill", {"width"}, out, 1);
    const Str& str = self.str();
    const Value zero = in.string("0");
    const bool sign = !str.text.empty() && (str.text[0] == '+' || str.text[0] == '-');
    const Value digits = substring(in.heap(), str, sign, str.text.size());
    const Value padded = pad_string(in, digits.str(), int_argument(*out[0], "a width") - sign, &zero, Padding::right);
    Builder text(in.heap());
    text.add(str, 0, sign);
    text.add(padded.str());
    return marked(text.finish(), str);
}

Value format(Interpreter& in, const Value& self, Args& args) { return format_braces(in, self.str(), args); }

Value format_map(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("format_map", {"mapping"}, out, 1);
    if (!out[0]->is(Kind::dict)) fail("format_map() wants a mapping");
    Args named;
    for (const auto& [key, value] : out[0]->dict().entries) {
        in.heap().step();
        if (key.is_string()) named.named.emplace_back(key.str().text, value);
    }
    return format_braces(in, self.str(), named);
}

// True when there are characters and all have the property.
template <typename Test>
Value all_characters(Interpreter& in, const Value& self, Args& args, Test&& test) {
    args.none("a character test");
    const std::string_view text = self.str().text;
    in.heap().work(4 * text.size());
    bool all = !text.empty();
    for (size_t at = 0; all && at < text.size();) {
        const auto c = base::utf8::decode(text, at);
        all = test(c.code_point, at);
        at += c.length;
    }
    return Value::boolean(all);
}

template <Property property>
Value is_property(Interpreter& in, const Value& self, Args& args) {
    return all_characters(in, self, args, [](char32_t cp, size_t) { return has_property(cp, property); });
}
Value isalnum(Interpreter& in, const Value& self, Args& args) {
    return all_characters(in, self, args,
                          [](char32_t cp, size_t) { return has_property(cp, Property::alpha) || has_property(cp, Property::numeric); });
}
Value isspace(Interpreter& in, const Value& self, Args& args) {
    const std::string_view text = self.str().text;
    return all_characters(in, self, args, [&](char32_t, size_t at) { return space_at(text, at) > 0; });
}
Value isascii(Interpreter& in, const Value& self, Args& args) {
    if (self.str().text.empty()) return Value::boolean(true);
    return all_characters(in, self, args, [](char32_t cp, size_t) { return cp < 0x80; });
}
Value isprintable(Interpreter& in, const Value& self, Args& args) {
    if (self.str().text.empty()) return Value::boolean(true);
    return all_characters(in, self, args, [](char32_t cp, size_t) { return !has_property(cp, Property::not_printable); });
}
// Capitals only after uncased characters, small letters only after cased ones, and at least one of them.
Value istitle(Interpreter& in, const Value& self, Args& args) {
    bool cased = false, previous_cased = false;
    const Value fits = all_characters(in, self, args, [&](char32_t cp, size_t) {
        const bool capital = has_property(cp, Property::upper) || has_property(cp, Property::title);
        const bool small = has_property(cp, Property::lower);
        if (capital ? previous_cased : small && !previous_cased) return false;
        previous_cased = capital || small;
        cased = cased || previous_cased;
        return true;
    });
    return Value::boolean(fits.as_bool() && cased);
}
template <Property wanted, Property unwanted>
Value is_case(Interpreter& in, const Value& self, Args& args) {
    bool cased = false;
    const Value none_unwanted = all_characters(in, self, args, [&](char32_t cp, size_t) {
        cased = cased || has_property(cp, wanted);
        return !has_property(cp, unwanted) && !has_property(cp, Property::title);
    });
    return Value::boolean(none_unwanted.as_bool() && cased);
}

constexpr struct {
    std::string_view name;
    Native method;
} table[] = {
    {"capitalize", case_method<Case::capitalize>},
    {"center", justify<Padding::center>},
    {"count", count},
    {"endswith", starts_or_ends<true>},
    {"find", search<Search::find>},
    {"format", format},
    {"format_map", format_map},
    {"index", search<Search::index>},
    {"isalnum", isalnum},
    {"isalpha", is_property<Property::alpha>},
    {"isascii", isascii},
    {"isdecimal", is_property<Property::decimal>},
    {"isdigit", is_property<Property::digit>},
    {"islower", is_case<Property::lower, Property::upper>},
    {"isnumeric", is_property<Property::numeric>},
    {"isprintable", isprintable},
    {"isspace", isspace},
    {"istitle", istitle},
    {"isupper", is_case<Property::upper, Property::lower>},
    {"join", join},
    {"ljust", justify<Padding::left>},
    {"lower", case_method<Case::lower>},
    {"lstrip", strip_method<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"replace", replace},
    {"rfind", search<Search::rfind>},
    {"rindex", search<Search::rindex>},
    {"rjust", justify<Padding::right>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip_method<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", starts_or_ends<false>},
    {"strip", strip_method<true, true>},
    {"swapcase", case_method<Case::swap>},
    {"title", case_method<Case::title>},
    {"upper", case_method<Case::upper>},
    {"zfill", zfill},
};

}  // namespace

Native find_string_method(std::string_view name) {
    for (const auto& row : table) {
        if (row.name == name) return row.method;
    }
    return nullptr;
}

}  // namespace text::jinja
