// Filters from text to text.
#include <algorithm>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/lexer.h"
#include "text/jinja/strings.h"
#include "text/jinja/text.h"
#include "text/unicode.h"
#include "text/unicode_case.h"

namespace text::jinja {

using base::cat;

namespace {

template <Case what>
Value cased(Interpreter& in, const Value& value, Args& args) {
    args.none("a case filter");
    const Value text = in.to_string(value);
    Builder out(in.heap());
    add_cased(out, text.str(), what);
    return marked(out.finish(), text.str());
}

// Jinja's own title: words begin after white space and -({[<.
Value title(Interpreter& in, const Value& value, Args& args) {
    args.none("title");
    const Value text = in.to_string(value);
    const Str& str = text.str();
    Builder out(in.heap());
    const auto separates = [&](size_t at) {
        return space_at(str.text, at) > 0 || std::string_view("-({[<").find(str.text[at]) != std::string_view::npos;
    };
    for (size_t at = 0; at < str.text.size();) {
        // A run of separators or of others: first character upper, the rest lower.
        const bool separator = separates(at);
        size_t end = at;
        while (end < str.text.size() && separates(end) == separator) end += base::utf8::decode(str.text, end).length;
        const size_t first = at + base::utf8::decode(str.text, at).length;
        add_cased(out, str, at, first, Case::upper);
        add_cased(out, str, first, end, Case::lower);
        at = end;
    }
    return out.finish();
}

Value trim(Interpreter& in, const Value& value, Args& args) {
    const Value* out[1];
    args.bind("trim", {"chars"}, out);
    const Value text = in.to_string(value);
    return strip_string(in, text.str(), out[0], true, true);
}

Value replace(Interpreter& in, const Value& value, Args& args) {
    const Value* out[3];
    args.bind("replace", {"old", "new", "count"}, out, 2);
    const Value text = in.to_string(value), from = in.to_string(*out[0]), to = in.to_string(*out[1]);
    const int64_t count = out[2] && !out[2]->is_none() ? int_argument(*out[2], "replace's count") : -1;
    return replace_string(in, text.str(), from.str(), to.str(), count);
}

Value indent(Interpreter& in, const Value& value, Args& args) {
    const Value* out[3];
    args.bind("indent", {"width", "first", "blank"}, out);
    Value indention;
    if (out[0] && out[0]->is_string()) {
        indention = *out[0];
    } else {
        const int64_t width = out[0] ? int_argument(*out[0], "indent's width") : 4;
        if (width > static_cast<int64_t>(limits::template_output_bytes)) fail_limit("indent's width is too large");
        indention = in.string(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
    }
    const bool first = out[1] && truthy(*out[1]), blank = out[2] && truthy(*out[2]);
    if (value.is_undefined()) fail(value.undefined().message);
    const Str& str = string_argument(value, "what indent works on");
    Builder text(in.heap());
    if (first) text.add(indention.str());
    // s + "\n" split into lines: a text that ends with a newline has an empty line there.
    const std::vector<Span> lines = split_lines(str.text, true);
    for (size_t i = 0; i < lines.size(); ++i) {
        in.heap().step();
        if (i > 0) {
            text.add("\n");
            if (blank || lines[i].end > lines[i].begin) text.add(indention.str());
        }
        text.add(str, lines[i].begin, lines[i].end);
    }
    return marked(text.finish(), str);
}

template <bool force>
Value escape(Interpreter& in, const Value& value, Args& args) {
    args.none("escape");
    const Value text = in.to_string(value);
    Builder out(in.heap());
    add_escaped(in, out, text.str(), force);
    Value escaped = out.finish();
    escaped.str().markup = true;
    return escaped;
}

Value safe(Interpreter& in, const Value& value, Args& args) {
    args.none("safe");
    Builder out(in.heap());
    in.print(out, value);
    Value text = out.finish();
    text.str().markup = true;
    return text;
}

void add_url_quoted(Builder& out, const Str& str, bool query) {
    static constexpr char hex[] = "0123456789ABCDEF";
    std::string quoted;
    for (const char c : str.text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        if (byte < 0x80 && (std::isalnum(byte) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query))) {
            quoted += c;
        } else if (c == ' ' && query) {
            quoted += '+';
        } else {
            quoted += '%';
            quoted += hex[byte >> 4];
            quoted += hex[byte & 15];
        }
    }
    out.add(quoted, has_user_bytes(str));
}

Value urlencode(Interpreter& in, const Value& value, Args& args) {
    args.none("urlencode");
    Builder out(in.heap());
    if (value.is_string() || !is_iterable(value)) {
        add_url_quoted(out, in.to_string(value).str(), false);
        return out.finish();
    }
    std::vector<std::pair<Value, Value>> pairs;
    if (value.is(Kind::dict)) {
        pairs = value.dict().entries;
    } else {
        for (const Value& item : elements(in.heap(), value)) {
            const std::vector<Value> pair = elements(in.heap(), item);
            if (pair.size() != 2) fail("urlencode wants pairs of key and value");
            pairs.emplace_back(pair[0], pair[1]);
        }
    }
    bool first = true;
    for (const auto& [key, item] : pairs) {
        in.heap().step();
        if (!first) out.add("&");
        first = false;
        add_url_quoted(out, in.to_string(key).str(), true);
        out.add("=");
        add_url_quoted(out, in.to_string(item).str(), true);
    }
    return out.finish();
}

// \w+ of re: letters, numbers and the underscore.
Value wordcount(Interpreter& in, const Value& value, Args& args) {
    args.none("wordcount");
    const Value text = in.to_string(value);
    const std::string_view s = text.str().text;
    in.heap().work(s.size());
    int64_t words = 0;
    bool inside = false;
    for (size_t at = 0; at < s.size();) {
        const auto c = base::utf8::decode(s, at);
        const bool word = c.code_point < 0x80
                              ? std::isalnum(static_cast<int>(c.code_point)) || c.code_point == '_'
                              : has_property(c.code_point, Property::alpha) || has_property(c.code_point, Property::numeric);
        words += word && !inside;
        inside = word;
        at += c.length;
    }
    return Value::integer(words);
}

Value format(Interpreter& in, const Value& value, Args& args) {
    const Value text = in.to_string(value);
    if (!args.named.empty()) {
        if (!args.positional.empty()) fail("can't handle positional and keyword arguments at the same time");
        const Value mapping = make_dict(in.heap());
        for (auto& [name, item] : args.named) mapping.dict().set(in.string(name, args.user_names), std::move(item));
        return format_percent(in, text.str(), mapping);
    }
    return format_percent(in, text.str(), make_list(in.heap(), std::move(args.positional), Flavor::tuple));
}

Value center(Interpreter& in, const Value& value, Args& args) {
    const Value* out[1];
    args.bind("center", {"width"}, out);
    const Value text = in.to_string(value);
    return pad_string(in, text.str(), out[0] ? int_argument(*out[0], "center's width") : 80, nullptr, Padding::center);
}

Value truncate(Interpreter& in, const Value& value, Args& args) {
    const Value* out[4];
    args.bind("truncate", {"length", "killwords", "end", "leeway"}, out);
    const Value end = out[2] ? *out[2] : in.string("...");
    const int64_t length = out[0] ? int_argument(*out[0], "truncate's length") : 255;
    const int64_t leeway = out[3] && !out[3]->is_none() ? int_argument(*out[3], "truncate's leeway") : 5;
    const int64_t tail_length = length_of(end);
    if (length < tail_length) fail(cat("truncate: expected length >= ", tail_length, ", got ", length));
    if (leeway < 0) fail(cat("truncate: expected leeway >= 0, got ", leeway));
    if (length_of(value) - leeway <= length) return value;  // of anything that has a length
    const bool killwords = out[1] && truthy(*out[1]);
    if (value.is(Kind::list) && killwords) {  // value[:cut] + end
        const List& list = value.list();
        if (list.is_view()) fail(cat("truncate cannot slice ", type_name(value)));
        const std::vector<Value> kept(list.items.begin(), list.items.begin() + (length - tail_length));
        in.heap().step(kept.size() / 16);
        return binary(in, Op::add, make_list(in.heap(), kept, list.is_tuple() ? Flavor::tuple : Flavor::list), end);
    }
    const Str &str = string_argument(value, "what truncate works on"), &tail = string_argument(end, "truncate's end");
    size_t cut = byte_of(str, static_cast<size_t>(length - tail_length));
    if (!killwords) {
        const size_t space = str.text.substr(0, cut).rfind(' ');
        if (space != std::string_view::npos) cut = space;
    }
    Builder result(in.heap());
    result.add(str, 0, cut);
    result.add(tail);
    return marked(result.finish(), str);
}

Value xmlattr(Interpreter& in, const Value& value, Args& args) {
    const Value* out[1];
    args.bind("xmlattr", {"autospace"}, out);
    if (!value.is(Kind::dict)) fail(cat("xmlattr wants a mapping, not ", type_name(value)));
    Builder text(in.heap());
    bool first = true;
    for (const auto& [key, item] : value.dict().entries) {
        if (item.is_none() || item.is_undefined()) continue;
        const Str& name = string_argument(key, "an attribute name");
        if (name.text.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) fail("invalid character in attribute name");
        if (!first || !out[0] || truthy(*out[0])) text.add(" ");
        first = false;
        add_escaped(in, text, name);
        text.add("=\"");
        add_escaped(in, text, in.to_string(item).str());
        text.add("\"");
    }
    return text.finish();
}

Value to_text(Interpreter& in, const Value& value, Args& args) {
    args.none("string");
    return in.to_string(value);
}

constexpr FilterEntry table[] = {
    {"capitalize", cased<Case::capitalize>},
    {"center", center},
    {"e", escape<false>},
    {"escape", escape<false>},
    {"forceescape", escape<true>},
    {"format", format},
    {"indent", indent},
    {"lower", cased<Case::lower>},
    {"replace", replace},
    {"safe", safe},
    {"string", to_text},
    {"title", title},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", cased<Case::upper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
    {"xmlattr", xmlattr},
};

}  // namespace

std::span<const FilterEntry> text_filters() { return table; }

}  // namespace text::jinja
