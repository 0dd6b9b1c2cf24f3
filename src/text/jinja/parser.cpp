#include "text/jinja/parser.h"

#include "text/jinja/parser_impl.h"

namespace text::jinja {

using base::cat;

std::string describe(const Token& token) {
    switch (token.kind) {
        case TokenKind::end: return "end of template";
        case TokenKind::data: return "template text";
        case TokenKind::block_begin: return "begin of statement block";
        case TokenKind::block_end: return "end of statement block";
        case TokenKind::print_begin: return "begin of print statement";
        case TokenKind::print_end: return "end of print statement";
        case TokenKind::name: return cat("'", base::printable(token.text), "'");
        case TokenKind::string: return "string";
        case TokenKind::integer: return "integer";
        case TokenKind::real: return "float";
        default: return "operator";
    }
}

Token Parser::take() {
    Token token = std::move(current_);
    if (ahead_) {
        current_ = std::move(*ahead_);
        ahead_.reset();
    } else {
        current_ = lexer_.next();
    }
    return token;
}

const Token& Parser::look() {
    if (!ahead_) ahead_ = lexer_.next();
    return *ahead_;
}

bool Parser::at_any_name(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
        if (at_name(name)) return true;
    }
    return false;
}

bool Parser::skip(TokenKind kind) {
    if (!at(kind)) return false;
    take();
    return true;
}

bool Parser::skip_name(std::string_view name) {
    if (!at_name(name)) return false;
    take();
    return true;
}

Token Parser::expect(TokenKind kind, const char* what) {
    if (!at(kind)) fail(cat("expected ", what, ", got ", describe(current_)), position());
    return take();
}

void Parser::expect_name(std::string_view name) {
    if (!at_name(name)) fail(cat("expected '", name, "', got ", describe(current_)), position());
    take();
}

NameId Parser::intern(const std::string& name) {
    const auto [it, added] = ids_.emplace(name, static_cast<NameId>(template_.names.size()));
    if (added) template_.names.push_back(name);
    return it->second;
}

void Parser::parse() { template_.body = parse_body({}); }

Body Parser::parse_body(Ends ends) {
    const Nest nest(*this);
    Body body;
    while (true) {
        switch (current_.kind) {
            case TokenKind::end:
                if (ends.size() == 0) return body;
                fail(cat("unexpected end of template, looking for '", *ends.begin(), "'"), position());
            case TokenKind::data: {
                Token token = take();
                body.push_back(make<TextStmt>(token.position, std::move(token.text)));
                break;
            }
            case TokenKind::print_begin: {
                auto print = make<PrintStmt>(StmtKind::print, position());
                take();
                print->value = parse_tuple(true, {}, false);
                expect(TokenKind::print_end, "end of print statement");
                body.push_back(std::move(print));
                break;
            }
            case TokenKind::block_begin: {
                take();
                if (at_any_name(ends)) return body;
                if (at_name("print")) {
                    parse_print(body);
                } else {
                    body.push_back(parse_statement());
                }
                expect(TokenKind::block_end, "end of statement block");
                break;
            }
            default: fail(cat("unexpected ", describe(current_)), position());
        }
    }
}

Body Parser::parse_block_body(Ends ends) {
    skip(TokenKind::colon);  // `{% if x: %}`, for people who come from Python
    expect(TokenKind::block_end, "end of statement block");
    return parse_body(ends);
}

StmtPtr Parser::parse_statement() {
    if (!at(TokenKind::name)) fail(cat("tag name expected, got ", describe(current_)), position());
    const std::string& tag = current_.text;
    if (tag == "if") return parse_if();
    if (tag == "for") return parse_for();
    if (tag == "set") return parse_set();
    if (tag == "macro") return parse_macro();
    if (tag == "call") return parse_call_block();
    if (tag == "filter") return parse_filter_block();
    if (tag == "with") return parse_with();
    if (tag == "generation") return parse_scope("endgeneration");
    if (tag == "block") return parse_block();
    if (tag == "autoescape") return parse_autoescape();
    if (tag == "break" || tag == "continue") {
        if (loops_ == 0) fail(cat("'", tag, "' outside a loop"), position());
        const StmtKind kind = tag == "break" ? StmtKind::loop_break : StmtKind::loop_continue;
        return make<JumpStmt>(kind, take().position);
    }
    if (tag == "extends" || tag == "include" || tag == "import" || tag == "from") {
        fail(cat("'", tag, "' needs other templates; a chat template stands alone"), position());
    }
    fail(cat("unknown tag '", base::printable(tag), "'"), position());
}

StmtPtr Parser::parse_if() {
    auto branch = make<BranchStmt>(StmtKind::branch, take().position);
    while (true) {
        ExprPtr test = parse_tuple(false, {}, false);
        Body body = parse_block_body({"elif", "else", "endif"});
        branch->arms.push_back({std::move(test), std::move(body)});
        if (skip_name("elif")) continue;
        if (skip_name("else")) { branch->arms.push_back({nullptr, parse_block_body({"endif"})}); }
        expect_name("endif");
        return branch;
    }
}

StmtPtr Parser::parse_for() {
    auto loop = make<LoopStmt>(StmtKind::loop, take().position);
    loop->target = parse_target(false, {"in"});
    expect_name("in");
    loop->source = parse_tuple(false, {"recursive"}, false);
    if (skip_name("if")) loop->test = parse_expression();
    loop->recursive = skip_name("recursive");
    ++loops_;
    loop->body = parse_block_body({"endfor", "else"});
    --loops_;
    if (skip_name("else")) loop->otherwise = parse_block_body({"endfor"});
    expect_name("endfor");
    return loop;
}

StmtPtr Parser::parse_set() {
    const uint32_t where = take().position;
    Target target = parse_target(true);
    if (skip(TokenKind::assign)) {
        auto set = make<SetStmt>(StmtKind::set, where);
        set->target = std::move(target);
        set->value = parse_tuple(true, {}, false);
        return set;
    }
    auto set = make<SetBlockStmt>(StmtKind::set_block, where);
    set->target = std::move(target);
    if (at(TokenKind::pipe)) set->filters = parse_filter_chain(nullptr, false);
    set->body = parse_block_body({"endset"});
    expect_name("endset");
    return set;
}

void Parser::parse_signature(MacroStmt& macro) {
    expect(TokenKind::lparen, "'('");
    while (!at(TokenKind::rparen)) {
        if (!macro.parameters.empty()) expect(TokenKind::comma, "','");
        const Token name = expect(TokenKind::name, "a parameter name");
        macro.parameters.push_back(intern(name.text));
        if (skip(TokenKind::assign)) {
            macro.defaults.push_back(parse_expression());
        } else if (!macro.defaults.empty()) {
            fail("non-default argument follows default argument", name.position);
        }
    }
    take();
}

void Parser::parse_macro_body(MacroStmt& macro, std::string_view end) {
    macros_.push_back(&macro);
    const uint32_t outer_loops = loops_;
    loops_ = 0;  // a jump can't leave a macro
    macro.body = parse_block_body({end});
    loops_ = outer_loops;
    macros_.pop_back();
    expect_name(end);
    // A parameter of that name is an ordinary one.
    for (const NameId id : macro.parameters) {
        if (template_.names[id] == "caller") macro.uses_caller = false;
        if (template_.names[id] == "kwargs") macro.uses_kwargs = false;
        if (template_.names[id] == "varargs") macro.uses_varargs = false;
    }
}

StmtPtr Parser::parse_macro() {
    auto macro = make<MacroStmt>(StmtKind::macro, take().position);
    macro->name = intern(expect(TokenKind::name, "a macro name").text);
    parse_signature(*macro);
    parse_macro_body(*macro, "endmacro");
    return macro;
}

StmtPtr Parser::parse_call_block() {
    auto block = make<CallBlockStmt>(StmtKind::call_block, take().position);
    block->macro = make<MacroStmt>(StmtKind::macro, block->position);
    block->macro->name = intern("caller");
    if (at(TokenKind::lparen)) parse_signature(*block->macro);
    block->call = parse_expression();
    if (block->call->kind != ExprKind::postfix || static_cast<PostfixExpr&>(*block->call).links.back().kind != LinkKind::call) {
        fail("expected call", block->position);
    }
    parse_macro_body(*block->macro, "endcall");
    return block;
}

StmtPtr Parser::parse_filter_block() {
    auto block = make<FilterBlockStmt>(StmtKind::filter_block, take().position);
    block->filters = parse_filter_chain(nullptr, true);
    block->body = parse_block_body({"endfilter"});
    expect_name("endfilter");
    return block;
}

StmtPtr Parser::parse_with() {
    auto with = make<WithStmt>(StmtKind::with, take().position);
    while (!at(TokenKind::block_end) && !at(TokenKind::colon)) {
        if (!with->variables.empty()) expect(TokenKind::comma, "','");
        Target target = parse_target(false);
        expect(TokenKind::assign, "'='");
        with->variables.emplace_back(std::move(target), parse_expression());
    }
    with->body = parse_block_body({"endwith"});
    expect_name("endwith");
    return with;
}

StmtPtr Parser::parse_scope(std::string_view end) {
    auto scope = make<ScopeStmt>(StmtKind::scope, take().position);
    const uint32_t outer_loops = loops_;
    loops_ = 0;
    scope->body = parse_block_body({end});
    loops_ = outer_loops;
    expect_name(end);
    return scope;
}

StmtPtr Parser::parse_block() {
    auto scope = make<ScopeStmt>(StmtKind::scope, take().position);
    const Token name = expect(TokenKind::name, "a block name");
    skip_name("scoped");
    skip_name("required");
    const uint32_t outer_loops = loops_;
    loops_ = 0;
    scope->body = parse_block_body({"endblock"});
    loops_ = outer_loops;
    expect_name("endblock");
    skip_name(name.text);
    return scope;
}

StmtPtr Parser::parse_autoescape() {
    const uint32_t where = look().position;
    auto scope = make<ScopeStmt>(StmtKind::scope, take().position);
    if (!skip_name("false") && !skip_name("False")) fail("only 'autoescape false' is built: a prompt is no HTML", where);
    scope->body = parse_block_body({"endautoescape"});
    expect_name("endautoescape");
    return scope;
}

void Parser::parse_print(Body& body) {
    take();
    bool first = true;
    while (!at(TokenKind::block_end)) {
        if (!first) expect(TokenKind::comma, "','");
        auto print = make<PrintStmt>(StmtKind::print, position());
        print->value = parse_expression();
        body.push_back(std::move(print));
        first = false;
    }
}

Target Parser::parse_single_target(bool with_attribute) {
    const Nest nest(*this);
    Target target;
    target.position = position();
    if (skip(TokenKind::lparen)) {
        target.kind = Target::Kind::tuple;
        bool tuple = false;
        while (!at(TokenKind::rparen)) {
            if (!target.parts.empty()) {
                expect(TokenKind::comma, "','");
                tuple = true;
                if (at(TokenKind::rparen)) break;
            }
            target.parts.push_back(parse_single_target(with_attribute));
        }
        take();
        if (target.parts.size() == 1 && !tuple) {
            Target only = std::move(target.parts[0]);
            return only;
        }
        return target;
    }
    const Token name = expect(TokenKind::name, "a name to assign to");
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
        if (name.text == constant) fail(cat("can't assign to ", constant), name.position);
    }
    target.name = intern(name.text);
    if (with_attribute && skip(TokenKind::dot)) {
        target.kind = Target::Kind::attribute;
        target.attribute = intern(expect(TokenKind::name, "an attribute name").text);
    }
    return target;
}

Target Parser::parse_target(bool with_attribute, std::initializer_list<std::string_view> ends) {
    Target first = parse_single_target(with_attribute);
    if (!at(TokenKind::comma)) return first;
    Target tuple;
    tuple.kind = Target::Kind::tuple;
    tuple.position = first.position;
    tuple.parts.push_back(std::move(first));
    while (skip(TokenKind::comma)) {
        if (at_any_name(ends) || at(TokenKind::assign) || at(TokenKind::block_end)) break;
        tuple.parts.push_back(parse_single_target(with_attribute));
    }
    return tuple;
}

std::unique_ptr<Template> parse_template(std::string_view source) {
    auto result = std::make_unique<Template>();
    result->source = normalize_source(source);
    Parser(*result).parse();
    return result;
}

}  // namespace text::jinja
