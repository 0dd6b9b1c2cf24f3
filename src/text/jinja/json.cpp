#include "text/jinja/json.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

namespace {

std::string escape(std::string_view text, bool ensure_ascii) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out;
    const auto unit = [&](uint32_t u) {
        out += "\\u";
        for (int shift = 12; shift >= 0; shift -= 4) out += hex[u >> shift & 15];
    };
    for (size_t at = 0; at < text.size();) {
        const auto c = base::utf8::decode(text, at);
        switch (c.code_point) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            case '\f': out += "\\f"; break;
            case '\b': out += "\\b"; break;
            default:
                if (c.code_point < 0x20 || (ensure_ascii && c.code_point >= 0x7F && c.code_point < 0x10000)) {
                    unit(c.code_point);
                } else if (ensure_ascii && c.code_point >= 0x10000) {
                    const uint32_t v = c.code_point - 0x10000;
                    unit(0xD800 + (v >> 10));
                    unit(0xDC00 + (v & 0x3FF));
                } else {
                    out += text.substr(at, c.length);
                }
        }
        at += c.length;
    }
    return out;
}

class Writer {
  public:
    Writer(Interpreter& in, Builder& out, const JsonStyle& style) : in_(in), out_(out), style_(style) {}

    void write(const Value& value, uint32_t depth) {
        if (depth > limits::template_value_depth) fail("a value is nested too deep for JSON");
        in_.heap().step();
        switch (value.kind()) {
            case Kind::none: out_.add("null"); return;
            case Kind::boolean: out_.add(value.as_bool() ? "true" : "false"); return;
            case Kind::integer: out_.add(std::to_string(value.as_int())); return;
            case Kind::real: out_.add(number(value.as_real())); return;
            case Kind::string: write_string(value.str()); return;
            case Kind::list:
                if (value.list().is_view()) break;
                write_list(value.list().items, depth);
                return;
            case Kind::dict: write_dict(value.dict(), depth); return;
            default: break;
        }
        fail(cat("Object of type ", type_name(value), " is not JSON serializable"));
    }

  private:
    static std::string number(double d) {
        return std::isnan(d) ? "NaN" : std::isinf(d) ? (d > 0 ? "Infinity" : "-Infinity") : float_repr(d);
    }

    void write_string(const Str& str) {
        out_.add("\"");
        // Piece by piece, so that each keeps its writer.
        size_t at = 0;
        const auto piece = [&](size_t end, bool user) {
            if (end > at) out_.add(escape(str.text.substr(at, end - at), style_.ensure_ascii), user);
            at = end;
        };
        for (const UserRange& range : str.user) {
            piece(range.begin, false);
            piece(range.end, true);
        }
        piece(str.text.size(), false);
        out_.add("\"");
    }

    void new_line(uint32_t depth) {
        if (!style_.indent) return;
        out_.add("\n");
        for (uint32_t i = 0; i < depth; ++i) out_.add(style_.indent->str());
    }

    void write_list(const std::vector<Value>& items, uint32_t depth) {
        if (items.empty()) return out_.add("[]");
        out_.add("[");
        for (size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out_.add(style_.item_separator, style_.user_separators);
            new_line(depth + 1);
            write(items[i], depth + 1);
        }
        new_line(depth);
        out_.add("]");
    }

    void write_key(const Value& key) {
        switch (key.kind()) {
            case Kind::string: write_string(key.str()); return;
            case Kind::none: out_.add("\"null\""); return;
            case Kind::boolean: out_.add(key.as_bool() ? "\"true\"" : "\"false\""); return;
            case Kind::integer: out_.add(cat('"', std::to_string(key.as_int()), '"')); return;
            case Kind::real: out_.add(cat('"', number(key.as_real()), '"')); return;
            default: fail(cat("keys must be str, int, float, bool or None, not ", type_name(key)));
        }
    }

    void write_dict(const Dict& dict, uint32_t depth) {
        if (dict.entries.empty()) return out_.add("{}");
        std::vector<size_t> order(dict.entries.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        if (style_.sort_keys) {
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
                in_.heap().step();
                return compare(dict.entries[a].first, dict.entries[b].first, "<") == -1;
            });
        }
        out_.add("{");
        bool first = true;
        for (const size_t i : order) {
            if (!first) out_.add(style_.item_separator, style_.user_separators);
            first = false;
            new_line(depth + 1);
            write_key(dict.entries[i].first);
            out_.add(style_.key_separator, style_.user_separators);
            write(dict.entries[i].second, depth + 1);
        }
        new_line(depth);
        out_.add("}");
    }

    Interpreter& in_;
    Builder& out_;
    const JsonStyle& style_;
};

}  // namespace

void write_json(Interpreter& in, Builder& out, const Value& value, const JsonStyle& style) { Writer(in, out, style).write(value, 0); }

}  // namespace text::jinja
