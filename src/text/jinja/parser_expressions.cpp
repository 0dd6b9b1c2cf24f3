#include "text/jinja/filters.h"
#include "text/jinja/parser_impl.h"
#include "text/jinja/tests.h"

namespace text::jinja {

using base::cat;

ExprPtr Parser::parse_expression(bool with_conditional) {
    const Nest nest(*this);
    return with_conditional ? parse_conditional() : parse_or();
}

ExprPtr Parser::parse_tuple(bool with_conditional, std::initializer_list<std::string_view> ends, bool parentheses) {
    const uint32_t where = position();
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    const auto at_end = [&] { return at(TokenKind::print_end) || at(TokenKind::block_end) || at(TokenKind::rparen) || at_any_name(ends); };
    while (true) {
        if (!items.empty()) expect(TokenKind::comma, "','");
        if (at_end()) break;
        items.push_back(parse_expression(with_conditional));
        if (!at(TokenKind::comma)) break;
        is_tuple = true;
    }
    if (!is_tuple) {
        if (!items.empty()) return std::move(items[0]);
        if (!parentheses) fail(cat("expected an expression, got ", describe(current_)), position());
    }
    auto tuple = make<ItemsExpr>(ExprKind::tuple, where);
    tuple->items = std::move(items);
    return tuple;
}

ExprPtr Parser::parse_conditional() {
    ExprPtr value = parse_or();
    // `a if b if c` nests to the left and is written by nobody; each link still counts as depth.
    uint32_t links = 0;
    while (at_name("if")) {
        if (++links > limits::template_depth) fail(cat("nested deeper than ", limits::template_depth), position());
        auto conditional = make<ConditionalExpr>(ExprKind::conditional, take().position);
        conditional->then = std::move(value);
        conditional->test = parse_or();
        if (skip_name("else")) conditional->otherwise = parse_expression();
        value = std::move(conditional);
    }
    return value;
}

ExprPtr Parser::parse_chain(ExprKind kind, ExprPtr (Parser::*inner)(), std::optional<Op> (Parser::*next_op)()) {
    ExprPtr first = (this->*inner)();
    std::unique_ptr<ChainExpr> chain;
    while (true) {
        const uint32_t where = position();
        const auto op = (this->*next_op)();
        if (!op) break;
        if (!chain) {
            chain = make<ChainExpr>(kind, where);
            chain->first = std::move(first);
        }
        chain->steps.push_back({*op, where, (this->*inner)()});
    }
    if (chain) return chain;
    return first;
}

std::optional<Op> Parser::next_or() { return skip_name("or") ? std::optional(Op::logical_or) : std::nullopt; }
std::optional<Op> Parser::next_and() { return skip_name("and") ? std::optional(Op::logical_and) : std::nullopt; }

std::optional<Op> Parser::next_compare() {
    static constexpr std::pair<TokenKind, Op> rows[] = {{TokenKind::eq, Op::eq}, {TokenKind::ne, Op::ne}, {TokenKind::lt, Op::lt},
                                                        {TokenKind::le, Op::le}, {TokenKind::gt, Op::gt}, {TokenKind::ge, Op::ge}};
    for (const auto& [kind, op] : rows) {
        if (skip(kind)) return op;
    }
    if (skip_name("in")) return Op::in;
    if (at_name("not") && look().kind == TokenKind::name && look().text == "in") {
        take();
        take();
        return Op::not_in;
    }
    return std::nullopt;
}

std::optional<Op> Parser::next_sum() {
    if (skip(TokenKind::add)) return Op::add;
    if (skip(TokenKind::sub)) return Op::sub;
    return std::nullopt;
}

std::optional<Op> Parser::next_concat() { return skip(TokenKind::tilde) ? std::optional(Op::concat) : std::nullopt; }

std::optional<Op> Parser::next_product() {
    static constexpr std::pair<TokenKind, Op> rows[] = {
        {TokenKind::mul, Op::mul}, {TokenKind::div, Op::div}, {TokenKind::floordiv, Op::floordiv}, {TokenKind::mod, Op::mod}};
    for (const auto& [kind, op] : rows) {
        if (skip(kind)) return op;
    }
    return std::nullopt;
}

std::optional<Op> Parser::next_power() { return skip(TokenKind::pow) ? std::optional(Op::pow) : std::nullopt; }

ExprPtr Parser::parse_or() { return parse_chain(ExprKind::logical, &Parser::parse_and, &Parser::next_or); }
ExprPtr Parser::parse_and() { return parse_chain(ExprKind::logical, &Parser::parse_not, &Parser::next_and); }

ExprPtr Parser::parse_not() {
    if (!at_name("not")) return parse_compare();
    const Nest nest(*this);
    auto negation = make<UnaryExpr>(ExprKind::negation, take().position);
    negation->operand = parse_not();
    return negation;
}

ExprPtr Parser::parse_compare() { return parse_chain(ExprKind::compare, &Parser::parse_sum, &Parser::next_compare); }
ExprPtr Parser::parse_sum() { return parse_chain(ExprKind::chain, &Parser::parse_concat, &Parser::next_sum); }
ExprPtr Parser::parse_concat() { return parse_chain(ExprKind::chain, &Parser::parse_product, &Parser::next_concat); }
ExprPtr Parser::parse_product() { return parse_chain(ExprKind::chain, &Parser::parse_power, &Parser::next_product); }

ExprPtr Parser::parse_power() {
    // Jinja's ** leans to the left, unlike Python's.
    ExprPtr first = parse_unary();
    std::unique_ptr<ChainExpr> chain;
    while (true) {
        const uint32_t where = position();
        const auto op = next_power();
        if (!op) break;
        if (!chain) {
            chain = make<ChainExpr>(ExprKind::chain, where);
            chain->first = std::move(first);
        }
        chain->steps.push_back({*op, where, parse_unary()});
    }
    if (chain) return chain;
    return first;
}

ExprPtr Parser::parse_unary(bool with_filter) {
    ExprPtr value;
    if (at(TokenKind::sub) || at(TokenKind::add)) {
        const Nest nest(*this);
        auto unary = make<UnaryExpr>(ExprKind::unary, position());
        unary->op = take().kind == TokenKind::sub ? Op::neg : Op::pos;
        unary->operand = parse_unary(false);
        value = std::move(unary);
    } else {
        value = parse_primary();
    }
    value = parse_postfix(std::move(value));
    return with_filter ? parse_filters(std::move(value)) : std::move(value);
}

ExprPtr Parser::parse_primary() {
    const uint32_t where = position();
    switch (current_.kind) {
        case TokenKind::name: {
            const Token name = take();
            if (name.text == "true" || name.text == "True" || name.text == "false" || name.text == "False") {
                auto constant = make<NumberExpr>(ExprKind::boolean, where);
                constant->integer = name.text[0] == 't' || name.text[0] == 'T';
                return constant;
            }
            if (name.text == "none" || name.text == "None") return make<NumberExpr>(ExprKind::none, where);
            for (MacroStmt* macro : macros_) {
                if (name.text == "caller") macro->uses_caller = true;
                if (name.text == "kwargs") macro->uses_kwargs = true;
                if (name.text == "varargs") macro->uses_varargs = true;
            }
            return make<NameExpr>(where, intern(name.text));
        }
        case TokenKind::string: {
            std::string text = take().text;
            while (at(TokenKind::string)) text += take().text;
            return make<StringExpr>(where, std::move(text));
        }
        case TokenKind::integer: {
            auto number = make<NumberExpr>(ExprKind::integer, where);
            number->integer = take().integer;
            return number;
        }
        case TokenKind::real: {
            auto number = make<NumberExpr>(ExprKind::real, where);
            number->real = take().real;
            return number;
        }
        case TokenKind::lparen: {
            take();
            ExprPtr inner = parse_tuple(true, {}, true);
            expect(TokenKind::rparen, "')'");
            return inner;
        }
        case TokenKind::lbracket: return parse_items(TokenKind::lbracket, TokenKind::rbracket);
        case TokenKind::lbrace: return parse_items(TokenKind::lbrace, TokenKind::rbrace);
        default: fail(cat("unexpected ", describe(current_)), where);
    }
}

ExprPtr Parser::parse_items(TokenKind open, TokenKind close) {
    const bool is_dict = open == TokenKind::lbrace;
    auto list = make<ItemsExpr>(is_dict ? ExprKind::dict : ExprKind::list, take().position);
    while (!at(close)) {
        if (!list->items.empty()) {
            expect(TokenKind::comma, "','");
            if (at(close)) break;
        }
        list->items.push_back(parse_expression());
        if (is_dict) {
            expect(TokenKind::colon, "':'");
            list->items.push_back(parse_expression());
        }
    }
    take();
    return list;
}

PostfixExpr& Parser::as_postfix(ExprPtr& base) {
    if (!base || base->kind != ExprKind::postfix) {
        auto chain = make<PostfixExpr>(ExprKind::postfix, base ? base->position : position());
        chain->base = std::move(base);
        base = std::move(chain);
    }
    return static_cast<PostfixExpr&>(*base);
}

ExprPtr Parser::parse_postfix(ExprPtr base) {
    while (true) {
        if (at(TokenKind::dot) || at(TokenKind::lbracket)) {
            parse_subscript(as_postfix(base));
        } else if (at(TokenKind::lparen)) {
            const uint32_t where = position();
            PostfixExpr& chain = as_postfix(base);
            chain.links.push_back({LinkKind::call, where, 0, nullptr, nullptr, nullptr, parse_call_args()});
        } else {
            return base;
        }
        if (++nodes_ > limits::template_nodes) fail(cat("more than ", limits::template_nodes, " statements and expressions"), position());
    }
}

ExprPtr Parser::parse_filters(ExprPtr base) {
    while (true) {
        if (at(TokenKind::pipe)) {
            take();
            parse_filter(as_postfix(base));
        } else if (at_name("is")) {
            parse_test(as_postfix(base));
        } else if (at(TokenKind::lparen)) {
            const uint32_t where = position();
            PostfixExpr& chain = as_postfix(base);
            chain.links.push_back({LinkKind::call, where, 0, nullptr, nullptr, nullptr, parse_call_args()});
        } else {
            return base;
        }
        if (++nodes_ > limits::template_nodes) fail(cat("more than ", limits::template_nodes, " statements and expressions"), position());
    }
}

// a|b(c)|d without the value in front: for filter and set blocks.
ExprPtr Parser::parse_filter_chain(ExprPtr base, bool first_without_pipe) {
    PostfixExpr& chain = as_postfix(base);
    if (first_without_pipe) parse_filter(chain);
    while (skip(TokenKind::pipe)) parse_filter(chain);
    return base;
}

void Parser::parse_subscript(PostfixExpr& chain) {
    const Token token = take();
    if (token.kind == TokenKind::dot) {
        if (at(TokenKind::name)) {
            chain.links.push_back({LinkKind::attribute, token.position, intern(take().text), nullptr, nullptr, nullptr, nullptr});
            return;
        }
        const Token number = expect(TokenKind::integer, "name or number");
        auto item = make<NumberExpr>(ExprKind::integer, number.position);
        item->integer = number.integer;
        chain.links.push_back({LinkKind::item, token.position, 0, nullptr, nullptr, std::move(item), nullptr});
        return;
    }
    std::vector<ExprPtr> items;
    while (!at(TokenKind::rbracket)) {
        if (!items.empty()) expect(TokenKind::comma, "','");
        items.push_back(parse_subscribed());
    }
    take();
    ExprPtr item;
    if (items.size() == 1) {
        item = std::move(items[0]);
    } else {
        auto tuple = make<ItemsExpr>(ExprKind::tuple, token.position);
        tuple->items = std::move(items);
        item = std::move(tuple);
    }
    chain.links.push_back({LinkKind::item, token.position, 0, nullptr, nullptr, std::move(item), nullptr});
}

ExprPtr Parser::parse_subscribed() {
    const uint32_t where = position();
    ExprPtr start;
    if (!at(TokenKind::colon)) {
        start = parse_expression();
        if (!at(TokenKind::colon)) return start;
    }
    take();
    auto slice = make<SliceExpr>(ExprKind::slice, where);
    slice->start = std::move(start);
    const auto at_end = [&] { return at(TokenKind::rbracket) || at(TokenKind::comma); };
    if (!at(TokenKind::colon) && !at_end()) slice->stop = parse_expression();
    if (skip(TokenKind::colon) && !at_end()) slice->step = parse_expression();
    return slice;
}

std::string Parser::parse_dotted_name() {
    std::string name = expect(TokenKind::name, "a name").text;
    while (skip(TokenKind::dot)) name.append(".").append(expect(TokenKind::name, "a name").text);
    return name;
}

void Parser::parse_filter(PostfixExpr& chain) {
    const uint32_t where = position();
    const std::string name = parse_dotted_name();
    Link link{LinkKind::filter, where, intern(name), find_filter(name), nullptr, nullptr, nullptr};
    if (at(TokenKind::lparen)) link.args = parse_call_args();
    chain.links.push_back(std::move(link));
}

void Parser::parse_test(PostfixExpr& chain) {
    const uint32_t where = take().position;
    const bool negated = skip_name("not");
    const std::string name = parse_dotted_name();
    Link link{negated ? LinkKind::not_test : LinkKind::test, where, intern(name), nullptr, find_test(name), nullptr, nullptr};
    if (at(TokenKind::lparen)) {
        link.args = parse_call_args();
    } else {
        const bool argument = at(TokenKind::name) || at(TokenKind::string) || at(TokenKind::integer) || at(TokenKind::real) ||
                              at(TokenKind::lbracket) || at(TokenKind::lbrace);
        if (argument && !at_any_name({"else", "or", "and"})) {
            if (at_name("is")) fail("you cannot chain multiple tests with is", position());
            const Nest nest(*this);
            link.args = std::make_unique<CallArgs>();
            link.args->positional.push_back(parse_postfix(parse_primary()));
        }
    }
    chain.links.push_back(std::move(link));
}

std::unique_ptr<CallArgs> Parser::parse_call_args() {
    auto args = std::make_unique<CallArgs>();
    const uint32_t where = take().position;
    bool comma = false;
    const auto ensure = [&](bool ok) {
        if (!ok) fail("invalid syntax for function call expression", where);
    };
    while (!at(TokenKind::rparen)) {
        if (comma) {
            expect(TokenKind::comma, "','");
            if (at(TokenKind::rparen)) break;
        }
        if (skip(TokenKind::mul)) {
            ensure(!args->more_positional && !args->more_named);
            args->more_positional = parse_expression();
        } else if (skip(TokenKind::pow)) {
            ensure(!args->more_named);
            args->more_named = parse_expression();
        } else if (at(TokenKind::name) && look().kind == TokenKind::assign) {
            ensure(!args->more_named);
            std::string name = take().text;
            take();
            args->named.push_back({std::move(name), parse_expression()});
        } else {
            ensure(!args->more_positional && !args->more_named && args->named.empty());
            args->positional.push_back(parse_expression());
        }
        comma = true;
    }
    take();
    return args;
}

}  // namespace text::jinja
