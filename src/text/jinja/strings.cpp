#include "text/jinja/strings.h"

#include <algorithm>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"

namespace text::jinja {

void add_escaped(Interpreter& in, Builder& out, const Str& str, bool force) {
    if (str.markup && !force) return out.add(str);
    size_t from = 0;
    for (size_t at = 0; at < str.text.size(); ++at) {
        const char c = str.text[at];
        const char* entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&#34;"
                             : c == '\'' ? "&#39;"
                                         : nullptr;
        if (!entity) continue;
        in.heap().step();
        out.add(str, from, at);
        out.add(entity, has_user_bytes(str, at, at + 1));
        from = at + 1;
    }
    out.add(str, from, str.text.size());
}

Value strip_string(Interpreter& in, const Str& str, const Value* chars, bool left, bool right) {
    std::string_view set;
    const bool given = chars && !chars->is_none();
    if (given) set = string_argument(*chars, "the characters to strip").text;
    in.heap().work(str.text.size() + 16 * set.size());  // the set is sorted
    const Span span = strip(str.text, given ? &set : nullptr, left, right);
    return marked(substring(in.heap(), str, span.begin, span.end), str);
}

Value replace_string(Interpreter& in, const Str& str, const Str& from, const Str& to, int64_t count) {
    Builder out(in.heap());
    in.heap().work(str.text.size());
    if (from.text.empty()) {  // before each character and at the end
        size_t at = 0;
        while (count != 0) {
            in.heap().step();
            out.add(to);
            --count;
            if (at == str.text.size()) return out.finish();
            const size_t length = base::utf8::decode(str.text, at).length;
            out.add(str, at, at + length);
            at += length;
        }
        out.add(str, at, str.text.size());
        return out.finish();
    }
    size_t at = 0;
    while (count != 0) {
        const size_t found = find_text(str.text, from.text, at);
        if (found == std::string_view::npos) break;
        in.heap().step();
        out.add(str, at, found);
        out.add(to);
        at = found + from.text.size();
        --count;
    }
    out.add(str, at, str.text.size());
    return out.finish();
}

std::vector<Span> split_lines(std::string_view text, bool final_newline, bool keep_ends) {
    std::vector<Span> lines;
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
        const auto c = base::utf8::decode(text, at);
        const char32_t cp = c.code_point;
        const bool ends = (cp >= 0x0A && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
        const size_t line_end = at;
        at += c.length;
        if (!ends) continue;
        if (cp == '\r' && at < text.size() && text[at] == '\n') ++at;
        // A final \r and the newline that is thought after it would be one line end.
        lines.push_back({begin, keep_ends ? at : line_end});
        begin = at;
        if (final_newline && at == text.size() && cp == '\r' && text[at - 1] == '\r') return lines;
    }
    if (begin < text.size() || final_newline) lines.push_back({begin, text.size()});
    return lines;
}

Value pad_string(Interpreter& in, const Str& str, int64_t width, const Value* fill, Padding padding) {
    const Value space = fill ? *fill : in.string(" ");
    const Str& filler = string_argument(space, "the fill character");
    if (filler.length() != 1) fail("the fill character must be exactly one character long");
    const int64_t length = static_cast<int64_t>(str.length());
    if (width <= length) return marked(substring(in.heap(), str, 0, str.text.size()), str);
    if (width > static_cast<int64_t>(limits::template_output_bytes)) fail_limit("a width is too large");
    const int64_t total = width - length;
    // As CPython: of an odd rest the left gets the larger part only when the width is odd.
    const int64_t left = padding == Padding::left ? 0 : padding == Padding::right ? total : total / 2 + (total & width & 1);
    in.heap().step(static_cast<uint64_t>(total) / 16);
    Builder out(in.heap());
    for (int64_t i = 0; i < left; ++i) out.add(filler);
    out.add(str);
    for (int64_t i = left; i < total; ++i) out.add(filler);
    return marked(out.finish(), str);
}

}  // namespace text::jinja
