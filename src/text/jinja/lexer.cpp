#include "text/jinja/lexer.h"

#include <charconv>

#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/unicode.h"

namespace text::jinja {

using base::cat;

std::string normalize_source(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
            continue;
        }
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

size_t space_at(std::string_view text, size_t at) {
    const unsigned char c = static_cast<unsigned char>(text[at]);
    if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
    const auto decoded = base::utf8::decode(text, at);
    return decoded.valid && char_class(decoded.code_point) == CharClass::space ? decoded.length : 0;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

size_t skip_space(std::string_view text, size_t at) {
    while (at < text.size()) {
        const size_t bytes = space_at(text, at);
        if (bytes == 0) break;
        at += bytes;
    }
    return at;
}

size_t strip_end(std::string_view text, size_t begin, size_t end) {
    while (end > begin) {
        size_t last = end - 1;
        while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
        if (space_at(text, last) == 0) break;
        end = last;
    }
    return end;
}

// Appends the meaning of the escapes in the body of a string literal: those of Python's unicode-escape.
std::string unescape(std::string_view body, uint32_t position) {
    std::string out;
    for (size_t i = 0; i < body.size(); ++i) {
        if (body[i] != '\\' || i + 1 == body.size()) {
            out += body[i];
            continue;
        }
        const char c = body[++i];
        const auto hex = [&](size_t digits) {
            uint32_t value = 0;
            for (size_t k = 0; k < digits; ++k) {
                ++i;
                const char d = i < body.size() ? body[i] : ' ';
                const int digit = is_digit(d) ? d - '0' : d >= 'a' && d <= 'f' ? d - 'a' + 10 : d >= 'A' && d <= 'F' ? d - 'A' + 10 : -1;
                if (digit < 0) fail(cat("truncated \\", c, " escape in a string"), position);
                value = value << 4 | static_cast<uint32_t>(digit);
            }
            if (value > 0x10FFFF) fail("a \\U escape above 10ffff", position);
            base::utf8::append(out, value);  // a lone surrogate, which no UTF-8 can say, becomes U+FFFD
        };
        switch (c) {
            case '\n': break;
            case 'a': out += '\a'; break;
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case 'n': out += '\n'; break;
            case 'r': out += '\r'; break;
            case 't': out += '\t'; break;
            case 'v': out += '\v'; break;
            case '\\':
            case '\'':
            case '"': out += c; break;
            case 'x': hex(2); break;
            case 'u': hex(4); break;
            case 'U': hex(8); break;
            case 'N': fail("\\N{...} escapes are not built", position);
            default:
                if (c >= '0' && c <= '7') {
                    uint32_t value = static_cast<uint32_t>(c - '0');
                    for (int k = 0; k < 2 && i + 1 < body.size() && body[i + 1] >= '0' && body[i + 1] <= '7'; ++k) {
                        value = value * 8 + static_cast<uint32_t>(body[++i] - '0');
                    }
                    base::utf8::append(out, value);
                } else {  // an unknown escape stays as it is
                    out += '\\';
                    out += c;
                }
        }
    }
    return out;
}

}  // namespace

std::string Lexer::strip_before_tag(size_t begin, size_t end, char sign, bool print) const {
    if (sign == '-') {
        end = strip_end(source_, begin, end);
    } else if (sign != '+' && !print) {
        // lstrip_blocks: only white space between the start of the line and the tag goes away.
        const size_t newline = end > begin ? source_.substr(begin, end - begin).rfind('\n') : std::string_view::npos;
        const size_t line = newline == std::string_view::npos ? begin : begin + newline + 1;
        if ((newline != std::string_view::npos || line_starting_) && skip_space(source_.substr(0, end), line) == end) end = line;
    }
    return std::string(source_.substr(begin, end - begin));
}

Token Lexer::next() {
    if (state_ != State::text) return lex_tag();
    if (pending_) {
        Token token{pending_ == '%' ? TokenKind::block_begin : TokenKind::print_begin, static_cast<uint32_t>(tag_position_), {}, 0, 0};
        state_ = pending_ == '%' ? State::block : State::print;
        pending_ = 0;
        return token;
    }
    return lex_text();
}

Token Lexer::lex_text() {
    Token token;
    while (true) {
        const size_t begin = at_;
        token = {TokenKind::data, static_cast<uint32_t>(begin), {}, 0, 0};
        size_t tag = begin;
        while (true) {
            tag = source_.find('{', tag);
            if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
                tag = std::string_view::npos;
                break;
            }
            const char c = source_[tag + 1];
            if (c == '%' || c == '{' || c == '#') break;
            ++tag;
        }
        if (tag == std::string_view::npos) {
            token.text = source_.substr(begin);
            at_ = source_.size();
            if (token.text.empty()) token.kind = TokenKind::end;
            return token;
        }
        const char kind = source_[tag + 1];
        char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
        if (sign != '-' && sign != '+') sign = 0;
        token.text = strip_before_tag(begin, tag, sign, kind == '{');
        at_ = tag + 2 + (sign != 0);
        tag_position_ = tag;
        if (kind == '#') {
            skip_comment();
        } else {
            if (kind == '%') {
                // {% raw %} is a tag of the lexer: what follows is no Jinja up to {% endraw %}.
                size_t word = skip_space(source_, at_);
                if (source_.substr(word, 3) == "raw") {
                    word = skip_space(source_, word + 3);
                    const bool minus = source_.substr(word, 3) == "-%}";
                    if (minus || source_.substr(word, 2) == "%}") {
                        const size_t after = minus ? skip_space(source_, word + 3) : word + 2;
                        line_starting_ = source_[after - 1] == '\n';
                        Token raw = lex_raw(after);
                        token.text += raw.text;
                        if (!token.text.empty()) return token;
                        continue;
                    }
                }
            }
            line_starting_ = false;
            pending_ = kind;
            if (token.text.empty()) return next();
            return token;
        }
        if (!token.text.empty()) return token;
    }
}

void Lexer::skip_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) {
        if (at_ == source_.size()) return;  // Jinja says nothing of a comment that opens at the very end
        fail("missing end of comment tag", static_cast<uint32_t>(tag_position_));
    }
    const char sign = end > at_ ? source_[end - 1] : ' ';
    at_ = end + 2;
    if (sign == '-') {
        at_ = skip_space(source_, at_);
    } else if (sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
        ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
}

// `begin`: after the {% raw %}. Looks for the first {%[-+] endraw [-+]%}.
Token Lexer::lex_raw(size_t begin) {
    for (size_t tag = source_.find("{%", begin); tag != std::string_view::npos; tag = source_.find("{%", tag + 1)) {
        size_t at = tag + 2;
        char sign = 0;
        if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) sign = source_[at++];
        at = skip_space(source_, at);
        if (source_.substr(at, 6) != "endraw") continue;
        at = skip_space(source_, at + 6);
        if (source_.substr(at, 3) == "-%}") {
            at = skip_space(source_, at + 3);
        } else if (source_.substr(at, 3) == "+%}") {
            at += 3;
        } else if (source_.substr(at, 2) == "%}") {
            at += 2;
            if (at < source_.size() && source_[at] == '\n') ++at;
        } else {
            continue;
        }
        Token token{TokenKind::data, static_cast<uint32_t>(begin), strip_before_tag(begin, tag, sign, false), 0, 0};
        at_ = at;
        line_starting_ = source_[at_ - 1] == '\n';
        return token;
    }
    if (begin == source_.size()) {  // nor of a raw block
        at_ = begin;
        return {TokenKind::data, static_cast<uint32_t>(begin), {}, 0, 0};
    }
    fail("missing end of raw directive", static_cast<uint32_t>(tag_position_));
}

bool Lexer::end_of_tag(Token& token) {
    if (!brackets_.empty()) return false;
    const std::string_view close = state_ == State::block ? "%}" : "}}";
    size_t after;
    if (starts(std::string("-").append(close))) {
        after = skip_space(source_, at_ + 3);
    } else if (state_ == State::block && starts("+%}")) {
        after = at_ + 3;
    } else if (starts(close)) {
        after = at_ + 2;
        if (state_ == State::block && after < source_.size() && source_[after] == '\n') ++after;  // trim_blocks
    } else {
        return false;
    }
    token.kind = state_ == State::block ? TokenKind::block_end : TokenKind::print_end;
    at_ = after;
    line_starting_ = source_[at_ - 1] == '\n';
    state_ = State::text;
    return true;
}

Token Lexer::lex_tag() {
    at_ = [&] {  // the end of a tag comes before white space in the rules, which makes no difference here
        return skip_space(source_, at_);
    }();
    Token token;
    token.position = static_cast<uint32_t>(at_);
    if (at_ >= source_.size()) {
        brackets_.clear();
        state_ = State::text;
        return token;  // end: the parser says what it was looking for
    }
    if (end_of_tag(token)) return token;
    const char c = source_[at_];
    if (is_digit(c)) return lex_number();
    if (is_name_start(c)) {
        const size_t begin = at_;
        while (at_ < source_.size() && is_name(source_[at_]) && space_at(source_, at_) == 0) ++at_;
        if (at_ == begin) fail("unexpected character", token.position);
        token.kind = TokenKind::name;
        token.text = source_.substr(begin, at_ - begin);
        return token;
    }
    if (c == '\'' || c == '"') return lex_string();
    return lex_operator();
}

Token Lexer::lex_string() {
    Token token{TokenKind::string, static_cast<uint32_t>(at_), {}, 0, 0};
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a string without end", token.position);
    token.text = unescape(source_.substr(at_ + 1, end - at_ - 1), token.position);
    at_ = end + 1;
    return token;
}

Token Lexer::lex_number() {
    Token token{TokenKind::integer, static_cast<uint32_t>(at_), {}, 0, 0};
    // Digits with single underscores between them; `at` moves behind them. False: none there.
    const auto digits = [&](size_t& at, int base) {
        const auto digit = [&](size_t i) {
            if (i >= source_.size()) return false;
            const char c = source_[i];
            if (base == 16) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
            return c >= '0' && c < '0' + base;
        };
        if (!digit(at)) return false;
        while (digit(at) || (at < source_.size() && source_[at] == '_' && digit(at + 1))) ++at;
        return true;
    };
    const auto text = [&](size_t begin, size_t end) {
        std::string plain;
        for (const char c : source_.substr(begin, end - begin)) {
            if (c != '_') plain += c;
        }
        return plain;
    };
    const size_t begin = at_;
    const auto integer = [&](size_t from, size_t end, int base) {
        const std::string plain = text(from, end);
        const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), token.integer, base);
        if (result.ec != std::errc()) fail("an integer beyond 64 bits", token.position);
        at_ = end;
    };
    // A float: digits, then .digits and/or an exponent; not right after a dot (a.0.1 are two integers).
    size_t end = begin;
    digits(end, 10);
    size_t real_end = end;
    bool is_real = false;
    if (begin == 0 || source_[begin - 1] != '.') {
        if (real_end < source_.size() && source_[real_end] == '.') {
            size_t at = real_end + 1;
            if (digits(at, 10)) {
                real_end = at;
                is_real = true;
            }
        }
        if (real_end < source_.size() && (source_[real_end] == 'e' || source_[real_end] == 'E')) {
            size_t at = real_end + 1;
            if (at < source_.size() && (source_[at] == '+' || source_[at] == '-')) ++at;
            if (digits(at, 10)) {
                real_end = at;
                is_real = true;
            }
        }
    }
    if (is_real) {
        const std::string plain = text(begin, real_end);
        token.kind = TokenKind::real;
        const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), token.real);
        if (result.ec == std::errc::result_out_of_range)
            token.real = plain.find("e-") == std::string::npos && plain.find("E-") == std::string::npos ? __builtin_inf() : 0;
        at_ = real_end;
        return token;
    }
    if (source_[begin] == '0' && begin + 1 < source_.size()) {
        const char x = static_cast<char>(source_[begin + 1] | 0x20);
        const int base = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 10;
        size_t at = begin + 2;
        if (base != 10) {
            if (at < source_.size() && source_[at] == '_') ++at;
            if (digits(at, base)) {
                integer(begin + 2, at, base);
                return token;
            }
        }
        // 0 and 00 are integers; of 012 only the zero is, and the parser refuses the rest.
        at = begin + 1;
        while (at < source_.size() && (source_[at] == '0' || (source_[at] == '_' && at + 1 < source_.size() && source_[at + 1] == '0')))
            ++at;
        integer(begin, at, 10);
        return token;
    }
    integer(begin, end, 10);
    return token;
}

Token Lexer::lex_operator() {
    struct Row {
        std::string_view text;
        TokenKind kind;
    };
    static constexpr Row rows[] = {
        // the longer ones first
        {"//", TokenKind::floordiv}, {"**", TokenKind::pow},      {"==", TokenKind::eq},    {"!=", TokenKind::ne},
        {">=", TokenKind::ge},       {"<=", TokenKind::le},       {"+", TokenKind::add},    {"-", TokenKind::sub},
        {"/", TokenKind::div},       {"*", TokenKind::mul},       {"%", TokenKind::mod},    {"~", TokenKind::tilde},
        {"[", TokenKind::lbracket},  {"]", TokenKind::rbracket},  {"(", TokenKind::lparen}, {")", TokenKind::rparen},
        {"{", TokenKind::lbrace},    {"}", TokenKind::rbrace},    {">", TokenKind::gt},     {"<", TokenKind::lt},
        {"=", TokenKind::assign},    {".", TokenKind::dot},       {":", TokenKind::colon},  {"|", TokenKind::pipe},
        {",", TokenKind::comma},     {";", TokenKind::semicolon},
    };
    Token token;
    token.position = static_cast<uint32_t>(at_);
    for (const Row& row : rows) {
        if (!starts(row.text)) continue;
        token.kind = row.kind;
        at_ += row.text.size();
        const char c = row.text[0];
        if (c == '(' || c == '[' || c == '{') {
            brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
        } else if (c == ')' || c == ']' || c == '}') {
            if (brackets_.empty()) fail(cat("unexpected '", c, "'"), token.position);
            if (brackets_.back() != c) fail(cat("unexpected '", c, "', expected '", brackets_.back(), "'"), token.position);
            brackets_.pop_back();
        }
        return token;
    }
    fail(cat("unexpected character '", base::printable(source_.substr(at_, base::utf8::decode(source_, at_).length)), "'"), token.position);
}

}  // namespace text::jinja
