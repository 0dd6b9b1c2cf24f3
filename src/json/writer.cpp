#include "json/writer.h"

#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/utf8.h"

namespace json {
namespace {

constexpr char hex[] = "0123456789abcdef";
constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

// "1" would read back as an integer; a double keeps a point or an exponent.
template <typename T>
void append_real(std::string& out, T number) {
    if (!std::isfinite(number)) {
        out += "null";
        return;
    }
    char text[64];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    CHECK(error == std::errc());
    const std::string_view written(text, static_cast<size_t>(end - text));
    out += written;
    if (written.find_first_of(".e") == std::string_view::npos) out += ".0";
}

template <typename T>
void append_integer(std::string& out, T number) {
    char text[24];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    CHECK(error == std::errc());
    out.append(text, end);
}

}  // namespace

void Writer::before_value() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (!first_[depth_]) {
        CHECK(depth_ > 0);  // one value at the top
        out_ += ',';
    }
    first_[depth_] = false;
}

void Writer::open(char c) {
    before_value();
    out_ += c;
    CHECK_LT(depth_ + 1, depth_max);
    first_[++depth_] = true;
}

void Writer::close(char c) {
    CHECK(depth_ > 0 && !after_key_);
    out_ += c;
    --depth_;
}

Writer& Writer::begin_object() { return open('{'), *this; }
Writer& Writer::end_object() { return close('}'), *this; }
Writer& Writer::begin_array() { return open('['), *this; }
Writer& Writer::end_array() { return close(']'), *this; }

Writer& Writer::key(std::string_view name) {
    before_value();
    append_string(name);
    out_ += ':';
    after_key_ = true;
    return *this;
}

Writer& Writer::value(std::string_view text) { return before_value(), append_string(text), *this; }
Writer& Writer::value(bool flag) { return before_value(), out_ += flag ? "true" : "false", *this; }
Writer& Writer::value(std::nullptr_t) { return before_value(), out_ += "null", *this; }
Writer& Writer::value(double number) { return before_value(), append_real(out_, number), *this; }
Writer& Writer::value(float number) { return before_value(), append_real(out_, number), *this; }
Writer& Writer::value(int64_t number) { return before_value(), append_integer(out_, number), *this; }
Writer& Writer::value(uint64_t number) { return before_value(), append_integer(out_, number), *this; }
Writer& Writer::raw(std::string_view json) { return before_value(), out_ += json, *this; }

Writer& Writer::value(const Value& tree) {
    if (const Array* array = tree.as_array()) {
        begin_array();
        for (const Value& element : *array) value(element);
        return end_array();
    }
    if (const Object* object = tree.as_object()) {
        begin_object();
        for (const Member& member : *object) key(member.first).value(member.second);
        return end_object();
    }
    if (const std::string* text = tree.as_string()) return value(std::string_view(*text));
    if (const bool* flag = tree.as_bool()) return value(*flag);
    if (const int64_t* i = tree.as_int()) return value(*i);
    if (const uint64_t* u = tree.as_uint()) return value(*u);
    if (const double* d = tree.as_double()) return value(*d);
    return value(nullptr);
}

void Writer::append_string(std::string_view text) {
    out_ += '"';
    size_t plain = 0;  // text[plain, i) can be copied as it is
    const auto flush = [&](size_t i) { out_.append(text.data() + plain, i - plain); };
    for (size_t i = 0; i < text.size();) {
        const unsigned char c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') [[likely]] {
            ++i;
            continue;
        }
        if (c >= 0x80) {
            const base::utf8::Decoded next = base::utf8::decode(text, i);
            if (next.valid) {
                i += next.length;
                continue;
            }
            flush(i);
            out_ += replacement;
            plain = i += next.length;
            continue;
        }
        flush(i);
        switch (c) {
            case '"': out_ += "\\\""; break;
            case '\\': out_ += "\\\\"; break;
            case '\n': out_ += "\\n"; break;
            case '\r': out_ += "\\r"; break;
            case '\t': out_ += "\\t"; break;
            case '\b': out_ += "\\b"; break;
            case '\f': out_ += "\\f"; break;
            default: out_ += {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}; break;
        }
        plain = ++i;
    }
    flush(text.size());
    out_ += '"';
}

std::string to_text(const Value& tree) {
    std::string out;
    Writer(out).value(tree);
    return out;
}

}  // namespace json
