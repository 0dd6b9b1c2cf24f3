// The parsed template. Left-leaning chains (a + b + c, x.y(z)|f|g) are lists, not trees, so that depth is true nesting
// and no honest template meets its limit. Nodes are const after parsing and shared by all renderings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace text::jinja {

using NameId = uint32_t;  // index into Template::names

enum class ExprKind : uint8_t {
    none,
    boolean,
    integer,
    real,
    string,
    name,
    tuple,
    list,
    dict,
    logical,
    negation,
    compare,
    chain,
    unary,
    conditional,
    slice,
    postfix
};

struct Expr {
    Expr(ExprKind kind, uint32_t position) : kind(kind), position(position) {}
    virtual ~Expr() = default;
    ExprKind kind;
    uint32_t position;
};
using ExprPtr = std::unique_ptr<Expr>;

struct NumberExpr final : Expr {  // none, boolean, integer, real
    using Expr::Expr;
    int64_t integer = 0;
    double real = 0;
};
struct StringExpr final : Expr {
    StringExpr(uint32_t position, std::string value) : Expr(ExprKind::string, position), value(std::move(value)) {}
    std::string value;
};
struct NameExpr final : Expr {
    NameExpr(uint32_t position, NameId name) : Expr(ExprKind::name, position), name(name) {}
    NameId name;
};
struct ItemsExpr final : Expr {  // tuple, list; dict: key, value, key, value
    using Expr::Expr;
    std::vector<ExprPtr> items;
};

enum class Op : uint8_t {
    logical_or,
    logical_and,
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    in,
    not_in,
    add,
    sub,
    mul,
    div,
    floordiv,
    mod,
    pow,
    concat,
    neg,
    pos
};

struct Step {
    Op op;
    uint32_t position;
    ExprPtr operand;
};
struct ChainExpr final : Expr {  // logical, compare, chain: first op operand op operand ...
    using Expr::Expr;
    ExprPtr first;
    std::vector<Step> steps;
};
struct UnaryExpr final : Expr {  // negation (not), unary (- and +)
    using Expr::Expr;
    Op op = Op::neg;
    ExprPtr operand;
};
struct ConditionalExpr final : Expr {  // then if test else otherwise; `otherwise` may be null
    using Expr::Expr;
    ExprPtr test, then, otherwise;
};
struct SliceExpr final : Expr {  // each may be null
    using Expr::Expr;
    ExprPtr start, stop, step;
};

struct Keyword {
    std::string name;
    ExprPtr value;
};
struct CallArgs {
    std::vector<ExprPtr> positional;
    std::vector<Keyword> named;
    ExprPtr more_positional, more_named;  // *args, **kwargs
};

struct FilterEntry;
struct TestEntry;

enum class LinkKind : uint8_t { attribute, item, call, filter, test, not_test };
struct Link {
    LinkKind kind;
    uint32_t position;
    NameId name = 0;                      // attribute, filter, test
    const FilterEntry* filter = nullptr;  // null: no such filter, an error when it is reached
    const TestEntry* test = nullptr;
    ExprPtr item;
    std::unique_ptr<CallArgs> args;  // null: none
};
struct PostfixExpr final : Expr {
    using Expr::Expr;
    ExprPtr base;  // null in a filter block: the block's text
    std::vector<Link> links;
};

enum class StmtKind : uint8_t {
    text,
    print,
    branch,
    loop,
    set,
    set_block,
    macro,
    call_block,
    filter_block,
    with,
    scope,
    loop_break,
    loop_continue
};

struct Stmt {
    Stmt(StmtKind kind, uint32_t position) : kind(kind), position(position) {}
    virtual ~Stmt() = default;
    StmtKind kind;
    uint32_t position;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// Where a value goes: a name, an attribute of a namespace, or several targets in parentheses or with commas.
struct Target {
    enum class Kind : uint8_t { name, attribute, tuple } kind = Kind::name;
    uint32_t position = 0;
    NameId name = 0, attribute = 0;
    std::vector<Target> parts;
};

struct TextStmt final : Stmt {
    TextStmt(uint32_t position, std::string text) : Stmt(StmtKind::text, position), text(std::move(text)) {}
    std::string text;
};
struct PrintStmt final : Stmt {
    using Stmt::Stmt;
    ExprPtr value;
};
struct BranchStmt final : Stmt {  // if / elif / else
    using Stmt::Stmt;
    struct Arm {
        ExprPtr test;  // null: else
        Body body;
    };
    std::vector<Arm> arms;
};
struct LoopStmt final : Stmt {
    using Stmt::Stmt;
    Target target;
    ExprPtr source, test;
    Body body, otherwise;
    bool recursive = false;
};
struct SetStmt final : Stmt {
    using Stmt::Stmt;
    Target target;
    ExprPtr value;
};
struct SetBlockStmt final : Stmt {
    using Stmt::Stmt;
    Target target;
    ExprPtr filters;  // PostfixExpr without base, or null
    Body body;
};
struct MacroStmt final : Stmt {  // also the body of a call block
    using Stmt::Stmt;
    NameId name = 0;
    std::vector<NameId> parameters;
    std::vector<ExprPtr> defaults;  // of the last parameters
    Body body;
    bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};
struct CallBlockStmt final : Stmt {
    using Stmt::Stmt;
    ExprPtr call;  // PostfixExpr whose last link is a call
    std::unique_ptr<MacroStmt> macro;
};
struct FilterBlockStmt final : Stmt {
    using Stmt::Stmt;
    ExprPtr filters;
    Body body;
};
struct WithStmt final : Stmt {
    using Stmt::Stmt;
    std::vector<std::pair<Target, ExprPtr>> variables;
    Body body;
};
struct ScopeStmt final : Stmt {  // generation, block, autoescape false
    using Stmt::Stmt;
    Body body;
};
struct JumpStmt final : Stmt {  // break, continue
    using Stmt::Stmt;
};

struct Template {
    std::string source;              // newlines normalized, without one final newline
    std::vector<std::string> names;  // every identifier once
    Body body;
};

}  // namespace text::jinja
