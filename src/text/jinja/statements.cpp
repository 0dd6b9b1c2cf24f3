#include "base/message.h"
#include "text/jinja/failure.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/macro.h"

namespace text::jinja {

using base::cat;

namespace {

// Puts a value back at the end of a block, also when a failure unwinds it.
template <typename T>
class Restore {
  public:
    Restore(T& place, T value) : place_(place), old_(std::move(place)) { place_ = std::move(value); }
    ~Restore() { place_ = std::move(old_); }

  private:
    T& place_;
    T old_;
};

}  // namespace

Interpreter::Flow Interpreter::exec_body(const Body& body) {
    const Frame frame(*this);
    for (const StmtPtr& stmt : body) {
        const Flow flow = exec(*stmt);
        if (flow != Flow::normal) return flow;
    }
    return Flow::normal;
}

Interpreter::Flow Interpreter::exec_in_scope(const Body& body, Ref<Scope> scope) {
    const Restore<Ref<Scope>> restore(scope_, std::move(scope));
    return exec_body(body);
}

Value Interpreter::capture(const Body& body, Ref<Scope> scope) {
    Builder text(heap_);
    const Restore<Builder*> restore(out_, &text);
    exec_in_scope(body, std::move(scope));
    return text.finish();
}

Interpreter::Flow Interpreter::exec(const Stmt& stmt) {
    heap_.step();
    position_ = stmt.position;
    switch (stmt.kind) {
        case StmtKind::text: out_->add(static_cast<const TextStmt&>(stmt).text); break;
        case StmtKind::print: {
            const Value value = eval(*static_cast<const PrintStmt&>(stmt).value);
            position_ = stmt.position;
            print(*out_, value);
            break;
        }
        case StmtKind::branch: return exec_branch(static_cast<const BranchStmt&>(stmt));
        case StmtKind::loop: {
            const auto& loop = static_cast<const LoopStmt&>(stmt);
            Value source = eval(*loop.source);
            position_ = loop.position;
            run_loop(loop, scope_, std::move(source), 0);
            break;
        }
        case StmtKind::set: {
            const auto& set = static_cast<const SetStmt&>(stmt);
            Value value = eval(*set.value);
            assign(set.target, std::move(value));
            break;
        }
        case StmtKind::set_block: {
            const auto& set = static_cast<const SetBlockStmt&>(stmt);
            Value text = capture(set.body, Ref<Scope>(new Scope(heap_, scope_)));
            if (set.filters) text = eval_postfix(static_cast<const PostfixExpr&>(*set.filters), &text);
            assign(set.target, std::move(text));
            break;
        }
        case StmtKind::macro: {
            const auto& macro = static_cast<const MacroStmt&>(stmt);
            scope_->set(macro.name, make_macro(heap_, macro, scope_, name(macro.name)));
            break;
        }
        case StmtKind::call_block: exec_call_block(static_cast<const CallBlockStmt&>(stmt)); break;
        case StmtKind::filter_block: {
            const auto& block = static_cast<const FilterBlockStmt&>(stmt);
            const Value text = capture(block.body, Ref<Scope>(new Scope(heap_, scope_)));
            const Value filtered = eval_postfix(static_cast<const PostfixExpr&>(*block.filters), &text);
            if (!filtered.is_string()) fail(cat("a filter block must give a string, not ", type_name(filtered)));
            print(*out_, filtered);
            break;
        }
        case StmtKind::with: exec_with(static_cast<const WithStmt&>(stmt)); break;
        case StmtKind::scope: return exec_in_scope(static_cast<const ScopeStmt&>(stmt).body, Ref<Scope>(new Scope(heap_, scope_)));
        case StmtKind::loop_break: return Flow::loop_break;
        case StmtKind::loop_continue: return Flow::loop_continue;
    }
    return Flow::normal;
}

Interpreter::Flow Interpreter::exec_branch(const BranchStmt& branch) {
    for (const auto& arm : branch.arms) {
        if (!arm.test || truthy(eval(*arm.test))) return exec_body(arm.body);
    }
    return Flow::normal;
}

void Interpreter::assign(const Target& target, Value value) {
    switch (target.kind) {
        case Target::Kind::name: scope_->set(target.name, std::move(value)); return;
        case Target::Kind::attribute: {
            position_ = target.position;
            const Value object = lookup(target.name);
            if (!object.is(Kind::space)) fail("cannot assign attribute on non-namespace object");
            const std::string_view attribute = name(target.attribute);
            if (attribute.starts_with('_'))
                fail(cat("a namespace can't hold '", base::printable(attribute), "': it begins with an underscore"));
            object.space().attributes.dict().set(string(std::string(attribute)), std::move(value));
            return;
        }
        case Target::Kind::tuple: {
            position_ = target.position;
            if (!is_iterable(value)) fail(cat("cannot unpack non-iterable ", type_name(value), " object"));
            const std::vector<Value> items = elements(heap_, value);
            if (items.size() != target.parts.size()) {
                fail(items.size() > target.parts.size()
                         ? cat("too many values to unpack (expected ", target.parts.size(), ")")
                         : cat("not enough values to unpack (expected ", target.parts.size(), ", got ", items.size(), ")"));
            }
            for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
            return;
        }
    }
}

void Interpreter::exec_call_block(const CallBlockStmt& block) {
    const Value caller = make_macro(heap_, *block.macro, scope_, "caller");
    const auto& call = static_cast<const PostfixExpr&>(*block.call);
    // All links but the last give what is called; the last is the call.
    Value callee = eval(*call.base);
    for (size_t i = 0; i + 1 < call.links.size(); ++i) callee = eval_link(call.links[i], callee);
    print(*out_, eval_call(call.links.back(), callee, &caller));
}

void Interpreter::exec_with(const WithStmt& with) {
    // The values are those of the outside, also when an earlier variable has the same name.
    std::vector<Value> values;
    for (const auto& [target, expr] : with.variables) values.push_back(eval(*expr));
    const Restore<Ref<Scope>> restore(scope_, Ref<Scope>(new Scope(heap_, scope_)));
    for (size_t i = 0; i < values.size(); ++i) assign(with.variables[i].first, std::move(values[i]));
    exec_body(with.body);
}

// --- macros

Value Interpreter::call_macro(const MacroStmt& macro, const Ref<Scope>& scope, Args& args) {
    const CallDepth depth(*this);
    const uint32_t call_position = position_;
    const std::string_view macro_name = name(macro.name);
    Ref<Scope> inner(new Scope(heap_, scope));
    const size_t n = macro.parameters.size();
    const auto take_named = [&](std::string_view wanted) -> std::optional<Value> {
        for (size_t i = 0; i < args.named.size(); ++i) {
            if (args.named[i].first != wanted) continue;
            Value value = std::move(args.named[i].second);
            args.named.erase(args.named.begin() + static_cast<std::ptrdiff_t>(i));
            return value;
        }
        return std::nullopt;
    };
    std::vector<bool> given(n, false);
    for (size_t i = 0; i < n; ++i) {
        if (i < args.positional.size()) {
            inner->set(macro.parameters[i], args.positional[i]);
            given[i] = true;
        } else if (auto value = take_named(name(macro.parameters[i]))) {
            inner->set(macro.parameters[i], std::move(*value));
            given[i] = true;
        }
    }
    if (macro.uses_caller) {
        auto caller = take_named("caller");
        inner->set(caller_name_, caller && !caller->is_none() ? std::move(*caller) : undefined("No caller defined"));
    }
    if (macro.uses_kwargs) {
        Value kwargs = make_dict(heap_);
        for (auto& [key, value] : args.named) kwargs.dict().set(string(key, args.user_names), std::move(value));
        inner->set(kwargs_name_, std::move(kwargs));
    } else if (!args.named.empty()) {
        fail(cat("macro '", macro_name, "' takes no keyword argument '", base::printable(args.named[0].first), "'"));
    }
    if (macro.uses_varargs) {
        std::vector<Value> rest;
        for (size_t i = n; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
        inner->set(varargs_name_, make_list(heap_, std::move(rest), Flavor::tuple));
    } else if (args.positional.size() > n) {
        fail(cat("macro '", macro_name, "' takes not more than ", n, " argument(s)"));
    }

    Builder text(heap_);
    const Restore<Builder*> restore_out(out_, &text);
    {
        const Restore<Ref<Scope>> restore_scope(scope_, inner);
        for (size_t i = 0; i < n; ++i) {
            if (given[i]) continue;
            const size_t from_end = n - i;
            if (from_end <= macro.defaults.size()) {
                inner->set(macro.parameters[i], eval(*macro.defaults[macro.defaults.size() - from_end]));
            } else {
                inner->set(macro.parameters[i], undefined(cat("parameter '", name(macro.parameters[i]), "' was not provided")));
            }
        }
        exec_body(macro.body);
    }
    position_ = call_position;
    return text.finish();
}

// --- loops

bool Interpreter::loop_test(const LoopStmt& loop, const Ref<Scope>& outer, const Value& item) {
    const Restore<Ref<Scope>> restore(scope_, Ref<Scope>(new Scope(heap_, outer)));
    assign(loop.target, item);
    return truthy(eval(*loop.test));
}

void Interpreter::run_loop(const LoopStmt& loop, const Ref<Scope>& outer, Value source, int64_t depth0) {
    const Frame frame(*this);
    const Value state = make_loop(*this, loop, outer, std::move(source), depth0);
    LoopObject& object = loop_of(state);
    bool any = false;
    Value item;
    Ref<Scope> scope;
    while (object.advance(item)) {
        any = true;
        // A scope of its own for each turn; the last one is used again when nothing holds on to it.
        if (scope && scope->refs == 1) {
            scope->variables.clear();
        } else {
            scope = Ref<Scope>(new Scope(heap_, outer));
        }
        const Restore<Ref<Scope>> restore(scope_, scope);
        if (loop_name_ != UINT32_MAX) scope->set(loop_name_, state);
        assign(loop.target, std::move(item));
        const Flow flow = exec_body(loop.body);
        if (flow == Flow::loop_break) break;
    }
    if (!any && !loop.otherwise.empty()) exec_in_scope(loop.otherwise, Ref<Scope>(new Scope(heap_, outer)));
}

Value Interpreter::render_loop(const LoopStmt& loop, const Ref<Scope>& outer, const Value& source, int64_t depth0) {
    const CallDepth depth(*this);
    Builder text(heap_);
    const Restore<Builder*> restore(out_, &text);
    run_loop(loop, outer, source, depth0);
    return text.finish();
}

}  // namespace text::jinja
