#include "json/fault.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace json {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of the UTF-8 character at `at`, 0 when it is not one (RFC 3629: no overlong form, no surrogate, <= U+10FFFF).
size_t utf8_length(std::string_view text, size_t at) {
    const auto byte = [&](size_t i) -> unsigned { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0; };
    const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned b0 = byte(0);
    if (b0 < 0x80) return 1;
    if (b0 >= 0xc2 && b0 <= 0xdf) return tail(1) ? 2 : 0;
    if (b0 >= 0xe0 && b0 <= 0xef) {
        if (!tail(1) || !tail(2)) return 0;
        if (b0 == 0xe0 && byte(1) < 0xa0) return 0;
        if (b0 == 0xed && byte(1) > 0x9f) return 0;
        return 3;
    }
    if (b0 >= 0xf0 && b0 <= 0xf4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if (b0 == 0xf0 && byte(1) < 0x90) return 0;
        if (b0 == 0xf4 && byte(1) > 0x8f) return 0;
        return 4;
    }
    return 0;
}

class Scanner {
  public:
    Scanner(std::string_view text, uint32_t depth_max) : text_(text), depth_max_(depth_max) {}

    std::optional<Fault> run() {
        skip_space();
        if (at_ == text_.size()) return fail("the text is empty");
        // One turn of the loop reads one value, then closes whatever it completes.
        while (true) {
            if (!value()) return fault_;
            if (entered_) {  // a non-empty container was opened: its first member or element follows
                entered_ = false;
                if (open_.back() == '{' && !key()) return fault_;
                continue;
            }
            while (!open_.empty()) {
                skip_space();
                const char closer = open_.back() == '{' ? '}' : ']';
                if (peek() == closer && at_ < text_.size()) {
                    ++at_;
                    open_.pop_back();
                    continue;
                }
                if (peek() != ',' || at_ >= text_.size()) return expected(closer == '}' ? "',' or '}'" : "',' or ']'");
                ++at_;
                skip_space();
                if (closer == '}' && !key()) return fault_;
                break;
            }
            if (open_.empty()) break;
        }
        skip_space();
        if (at_ != text_.size()) return expected("the end of the text");
        return std::nullopt;
    }

  private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_space() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }

    std::optional<Fault> fail(std::string reason) { return fault_ = Fault{at_, std::move(reason)}; }
    std::optional<Fault> expected(std::string what) {
        if (at_ >= text_.size()) return fail("expected " + what + ", found the end of the text");
        const unsigned char c = static_cast<unsigned char>(text_[at_]);
        if (c > 0x20 && c < 0x7f) return fail("expected " + what + ", found '" + std::string(1, static_cast<char>(c)) + "'");
        static constexpr char hex[] = "0123456789abcdef";
        return fail("expected " + what + ", found byte 0x" + std::string{hex[c >> 4], hex[c & 15]});
    }
    bool failed() const { return fault_.has_value(); }

    bool value() {
        skip_space();
        if (at_ >= text_.size()) return expected("a value"), false;
        switch (text_[at_]) {
            case '{': return open('{', '}');
            case '[': return open('[', ']');
            case '"': return string();
            case 't': return word("true");
            case 'f': return word("false");
            case 'n': return word("null");
            default: break;
        }
        if (text_[at_] == '-' || is_digit(text_[at_])) return number();
        return expected("a value"), false;
    }

    bool open(char opener, char closer) {
        const size_t start = at_++;
        skip_space();
        if (at_ < text_.size() && text_[at_] == closer) return ++at_, true;  // empty: no depth
        if (open_.size() >= depth_max_) {
            at_ = start;
            return fail("nested deeper than " + std::to_string(depth_max_)), false;
        }
        open_.push_back(opener);
        entered_ = true;
        return true;
    }

    bool key() {
        if (at_ >= text_.size() || text_[at_] != '"') return expected("a key in quotes"), false;
        if (!string()) return false;
        skip_space();
        if (at_ >= text_.size() || text_[at_] != ':') return expected("':'"), false;
        ++at_;
        return true;
    }

    bool word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return expected("a value"), false;
        at_ += word.size();
        return at_delimiter();
    }

    // A word or number ends at white space, structure or the end: "truex" and "01" are one wrong token.
    bool at_delimiter() {
        if (at_ >= text_.size()) return true;
        const char c = text_[at_];
        if (is_space(c) || c == ',' || c == ']' || c == '}' || c == ':' || c == '[' || c == '{' || c == '"') return true;
        return expected("the end of the value"), false;
    }

    bool hex4(uint32_t& out) {
        if (text_.size() - at_ < 4) return false;
        const char* end = text_.data() + at_ + 4;
        const auto [stop, error] = std::from_chars(text_.data() + at_, end, out, 16);
        if (error != std::errc() || stop != end) return false;
        at_ += 4;
        return true;
    }

    bool string() {
        ++at_;
        while (true) {
            if (at_ >= text_.size()) return fail("a string is not closed"), false;
            const unsigned char c = static_cast<unsigned char>(text_[at_]);
            if (c == '"') return ++at_, true;
            if (c < 0x20) return fail("a control character inside a string must be escaped"), false;
            if (c != '\\') {
                const size_t length = utf8_length(text_, at_);
                if (length == 0) return fail("not valid UTF-8"), false;
                at_ += length;
                continue;
            }
            const size_t escape_at = at_++;
            const char escape = peek();
            if (escape != 'u') {
                if (at_ >= text_.size() || std::string_view("\"\\/bfnrt").find(escape) == std::string_view::npos)
                    return at_ = escape_at, fail("unknown escape"), false;
                ++at_;
                continue;
            }
            ++at_;
            uint32_t unit = 0, low = 0;
            if (!hex4(unit)) return at_ = escape_at, fail("\\u needs four hexadecimal digits"), false;
            if (unit < 0xd800 || unit > 0xdfff) continue;
            const bool pair = unit <= 0xdbff && text_.substr(at_, 2) == "\\u" && (at_ += 2, hex4(low)) && low >= 0xdc00 && low <= 0xdfff;
            if (!pair) return at_ = escape_at, fail("a surrogate without its other half"), false;
        }
    }

    bool number() {
        const size_t start = at_;
        if (peek() == '-') ++at_;
        if (!is_digit(peek())) return expected("a digit"), false;
        const size_t digits_at = at_;
        while (is_digit(peek())) ++at_;
        if (text_[digits_at] == '0' && at_ - digits_at > 1) return at_ = start, fail("a number must not begin with a zero"), false;
        bool integer = true;
        if (peek() == '.') {
            integer = false;
            ++at_;
            if (!is_digit(peek())) return expected("a digit after the point"), false;
            while (is_digit(peek())) ++at_;
        }
        if (peek() == 'e' || peek() == 'E') {
            integer = false;
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            if (!is_digit(peek())) return expected("a digit of the exponent"), false;
            while (is_digit(peek())) ++at_;
        }
        const std::string token(text_.substr(start, at_ - start));
        if (!at_delimiter()) return false;
        bool fits = true;
        if (integer && token[0] == '-') {
            int64_t value = 0;
            fits = std::from_chars(token.data(), token.data() + token.size(), value).ec == std::errc();
        } else if (integer) {
            uint64_t value = 0;
            fits = std::from_chars(token.data(), token.data() + token.size(), value).ec == std::errc();
        } else {
            fits = std::isfinite(std::strtod(token.c_str(), nullptr));
        }
        if (!fits) {
            at_ = start;
            const std::string shown = token.size() > 40 ? token.substr(0, 40) + "..." : token;
            return fail("the number " + shown + (integer ? " does not fit 64 bits" : " is too large")), false;
        }
        return true;
    }

    std::string_view text_;
    uint32_t depth_max_;
    size_t at_ = 0;
    std::vector<char> open_;  // '{' or '[' of every container around at_; at most depth_max_
    bool entered_ = false;
    std::optional<Fault> fault_;
};

}  // namespace

std::optional<Fault> find_fault(std::string_view text, uint32_t depth_max) { return Scanner(text, depth_max).run(); }

}  // namespace json
