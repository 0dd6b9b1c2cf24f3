// The parser's class, shared by parser.cpp (statements) and parser_expressions.cpp.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/ast.h"
#include "text/jinja/failure.h"
#include "text/jinja/lexer.h"

namespace text::jinja {

std::string describe(const Token& token);

class Parser {
  public:
    explicit Parser(Template& result) : template_(result), lexer_(result.source), current_(lexer_.next()) {}
    void parse();

  private:
    // --- tokens
    Token take();
    const Token& look();  // the token after the current one
    bool at(TokenKind kind) const { return current_.kind == kind; }
    bool at_name(std::string_view name) const { return current_.kind == TokenKind::name && current_.text == name; }
    bool at_any_name(std::initializer_list<std::string_view> names) const;
    bool skip(TokenKind kind);
    bool skip_name(std::string_view name);
    Token expect(TokenKind kind, const char* what);
    void expect_name(std::string_view name);
    NameId intern(const std::string& name);
    uint32_t position() const { return current_.position; }

    // Counts a node; the memory of a template is bounded by it.
    template <typename Node, typename... Parts>
    std::unique_ptr<Node> make(Parts&&... parts) {
        if (++nodes_ > limits::template_nodes) {
            fail(base::cat("more than ", limits::template_nodes, " statements and expressions"), position());
        }
        return std::make_unique<Node>(std::forward<Parts>(parts)...);
    }
    struct Nest {
        explicit Nest(Parser& parser) : parser(parser) {
            if (++parser.depth_ > limits::template_depth) {
                fail(base::cat("nested deeper than ", limits::template_depth), parser.position());
            }
        }
        ~Nest() { --parser.depth_; }
        Parser& parser;
    };

    // --- statements
    using Ends = std::initializer_list<std::string_view>;
    Body parse_body(Ends ends);             // up to and not including one of the end names, whose tag is open
    Body parse_block_body(Ends ends);       // the same, from the end of the opening tag
    void close_tag(std::string_view name);  // name and end of tag
    StmtPtr parse_statement();
    StmtPtr parse_if();
    StmtPtr parse_for();
    StmtPtr parse_set();
    StmtPtr parse_macro();
    StmtPtr parse_call_block();
    StmtPtr parse_filter_block();
    StmtPtr parse_with();
    StmtPtr parse_scope(std::string_view end);
    StmtPtr parse_block();
    StmtPtr parse_autoescape();
    void parse_print(Body& body);
    void parse_signature(MacroStmt& macro);
    void parse_macro_body(MacroStmt& macro, std::string_view end);
    Target parse_target(bool with_attribute, std::initializer_list<std::string_view> ends = {});
    Target parse_single_target(bool with_attribute);

    // --- expressions
    ExprPtr parse_expression(bool with_conditional = true);
    ExprPtr parse_tuple(bool with_conditional, std::initializer_list<std::string_view> ends, bool parentheses);
    ExprPtr parse_conditional();
    ExprPtr parse_or();
    ExprPtr parse_and();
    ExprPtr parse_not();
    ExprPtr parse_compare();
    ExprPtr parse_sum();
    ExprPtr parse_concat();
    ExprPtr parse_product();
    ExprPtr parse_power();
    ExprPtr parse_unary(bool with_filter = true);
    ExprPtr parse_primary();
    ExprPtr parse_items(TokenKind open, TokenKind close);
    ExprPtr parse_postfix(ExprPtr base);
    ExprPtr parse_filters(ExprPtr base);
    ExprPtr parse_filter_chain(ExprPtr base, bool first_without_pipe);
    PostfixExpr& as_postfix(ExprPtr& base);
    void parse_subscript(PostfixExpr& chain);
    ExprPtr parse_subscribed();
    void parse_filter(PostfixExpr& chain);
    void parse_test(PostfixExpr& chain);
    std::unique_ptr<CallArgs> parse_call_args();
    std::string parse_dotted_name();
    ExprPtr parse_chain(ExprKind kind, ExprPtr (Parser::*inner)(), std::optional<Op> (Parser::*next_op)());
    std::optional<Op> next_or();
    std::optional<Op> next_and();
    std::optional<Op> next_compare();
    std::optional<Op> next_sum();
    std::optional<Op> next_concat();
    std::optional<Op> next_product();
    std::optional<Op> next_power();

    Template& template_;
    Lexer lexer_;
    Token current_;
    std::optional<Token> ahead_;
    std::unordered_map<std::string, NameId> ids_;
    size_t nodes_ = 0;
    uint32_t depth_ = 0;
    std::vector<MacroStmt*> macros_;  // that are open: each learns whether its body says caller, kwargs or varargs
    uint32_t loops_ = 0;              // that are open in the innermost macro
};

}  // namespace text::jinja
