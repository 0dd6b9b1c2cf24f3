// Jinja's lexer with transformers' settings: trim_blocks, lstrip_blocks, no line statements, no trailing newline kept.
// Gives one token at a time, linear in the source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace text::jinja {

enum class TokenKind : uint8_t {
    end,
    data,  // text between tags
    block_begin,
    block_end,
    print_begin,
    print_end,
    name,
    string,
    integer,
    real,
    add,
    sub,
    mul,
    div,
    floordiv,
    mod,
    pow,
    tilde,
    lparen,
    rparen,
    lbracket,
    rbracket,
    lbrace,
    rbrace,
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    assign,
    dot,
    colon,
    pipe,
    comma,
    semicolon,
};

struct Token {
    TokenKind kind = TokenKind::end;
    uint32_t position = 0;
    std::string text;  // name; contents of a string or of data
    int64_t integer = 0;
    double real = 0;
};

// \r\n and \r become \n; one newline at the end goes away.
std::string normalize_source(std::string_view source);

class Lexer {
  public:
    // `source` is normalized, valid UTF-8, and outlives the lexer.
    explicit Lexer(std::string_view source) : source_(source) {}
    // Fails with a position on what is no Jinja.
    Token next();

  private:
    enum class State : uint8_t { text, block, print };
    Token lex_text();
    Token lex_tag();
    bool end_of_tag(Token& token);
    Token lex_string();
    Token lex_number();
    Token lex_operator();
    void skip_comment();
    Token lex_raw(size_t tag_end);
    bool starts(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
    // The text [begin, end) before a tag with the given sign, stripped as the settings say.
    std::string strip_before_tag(size_t begin, size_t end, char sign, bool print) const;

    std::string_view source_;
    size_t at_ = 0;
    State state_ = State::text;
    bool line_starting_ = true;  // the last match ended a line
    size_t tag_position_ = 0;
    char pending_ = 0;            // the kind of tag to open next: '%' or '{'
    std::vector<char> brackets_;  // open ones of the current tag
};

// White space as Python's str.isspace and re's \s see it: bytes of the character at `at`, 0 when it is none.
size_t space_at(std::string_view text, size_t at);

}  // namespace text::jinja
