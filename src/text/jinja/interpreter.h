// Evaluates a parsed template once. Made, run and thrown away by one thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "text/jinja/ast.h"
#include "text/jinja/builder.h"
#include "text/jinja/function.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"
#include "text/value.h"

namespace text::jinja {

// The variables of a template, a loop body, a macro call ...; what isn't here is looked up in the parent.
struct Scope final : Object {
    // Counted as a few values: macros can keep scopes alive in circles until the end.
    static constexpr size_t counted_values = 4;
    Scope(Heap& owner, Ref<Scope> outer) : Object(owner), parent(std::move(outer)) { owner.take_values(counted_values); }
    ~Scope() override { heap.give_values(counted_values); }
    void clear() override {
        variables.clear();
        parent = Ref<Scope>();
    }
    Value* find(NameId name) {
        for (auto& [id, value] : variables) {
            if (id == name) return &value;
        }
        return nullptr;
    }
    void set(NameId name, Value value) {
        if (Value* there = find(name)) {
            *there = std::move(value);
        } else {
            variables.emplace_back(name, std::move(value));
        }
    }

    std::vector<std::pair<NameId, Value>> variables;
    Ref<Scope> parent;
};

struct LoopObject;

class Interpreter {
  public:
    // `variables` outlives the interpreter. Strings of variables named in `trusted` are the template's own text.
    Interpreter(const Template& source, const ValueObject& variables, std::span<const std::string_view> trusted, const base::Clock& clock);

    void run() { exec_body(template_.body); }
    const Builder& output() const { return output_; }
    uint32_t position() const { return position_; }  // where it was at when it failed
    Heap& heap() { return heap_; }
    const base::Clock& clock() const { return clock_; }

    // --- for functions, filters and tests
    Value call(const Value& callee, Args& args);
    Value get_attribute(const Value& object, std::string_view name);  // object.name
    Value get_item(const Value& object, const Value& key);            // object[key]
    Value call_filter(std::string_view name, const Value& value, Args& args);
    bool call_test(std::string_view name, const Value& value, Args& args);
    void print(Builder& out, const Value& value);  // str(value)
    Value to_string(const Value& value);           // str(value); a string is itself
    void repr(Builder& out, const Value& value, uint32_t depth = 0);
    Value undefined(std::string message) { return make_undefined(heap_, std::move(message)); }
    Value string(std::string text, bool user = false);

    // --- for macros and loops
    enum class Flow : uint8_t { normal, loop_break, loop_continue };
    Value call_macro(const MacroStmt& macro, const Ref<Scope>& scope, Args& args);
    void run_loop(const LoopStmt& loop, const Ref<Scope>& outer, Value source, int64_t depth0);
    Value render_loop(const LoopStmt& loop, const Ref<Scope>& outer, const Value& source, int64_t depth0);
    bool loop_test(const LoopStmt& loop, const Ref<Scope>& outer, const Value& item);
    std::string_view name(NameId id) const { return template_.names[id]; }

    // Counts what waits for something inner: bounds the machine's stack.
    struct Frame {
        explicit Frame(Interpreter& in);
        ~Frame() { --in.frames_; }
        Interpreter& in;
    };
    struct CallDepth {
        explicit CallDepth(Interpreter& in);
        ~CallDepth() { --in.calls_; }
        Interpreter& in;
    };

  private:
    // --- statements (statements.cpp)
    Flow exec_body(const Body& body);
    Flow exec(const Stmt& stmt);
    Flow exec_in_scope(const Body& body, Ref<Scope> scope);
    Value capture(const Body& body, Ref<Scope> scope);  // the text that a body prints
    void assign(const Target& target, Value value);
    Flow exec_branch(const BranchStmt& branch);
    void exec_call_block(const CallBlockStmt& block);
    void exec_with(const WithStmt& with);

    // --- expressions (expressions.cpp)
    Value eval(const Expr& expr);
    Value eval_items(const ItemsExpr& items);
    Value eval_logical(const ChainExpr& chain);
    Value eval_compare(const ChainExpr& chain);
    Value eval_chain(const ChainExpr& chain);
    Value eval_postfix(const PostfixExpr& expr, const Value* block_text = nullptr);
    Value eval_link(const Link& link, Value& value);
    Value eval_call(const Link& link, const Value& callee, const Value* caller = nullptr);
    void eval_args(const CallArgs& source, Args& args);
    Value eval_slice(const SliceExpr& slice, const Value& object);
    Value lookup(NameId name);

    // --- setup (interpreter.cpp)
    Value convert(const text::Value& value, bool user, uint32_t depth);

    const Template& template_;
    const ValueObject& variables_;
    std::span<const std::string_view> trusted_;
    const base::Clock& clock_;
    Heap heap_;                                  // before everything that holds values
    std::vector<std::optional<Value>> context_;  // by NameId: variables of the caller and globals, as they are asked for
    Ref<Scope> scope_;
    Builder output_;
    Builder* out_;
    uint32_t position_ = no_position_;
    uint32_t frames_ = 0, calls_ = 0;
    NameId loop_name_ = UINT32_MAX, caller_name_ = UINT32_MAX, kwargs_name_ = UINT32_MAX, varargs_name_ = UINT32_MAX;

    static constexpr uint32_t no_position_ = UINT32_MAX;
};

// operators.cpp; fail where Python raises
Value binary(Interpreter& in, Op op, const Value& a, const Value& b);
Value unary(Interpreter& in, Op op, const Value& a);
bool contains(Interpreter& in, const Value& container, const Value& item);  // item in container

// A global function or value by name; nothing when there is none (globals.cpp).
std::optional<Value> find_global(Interpreter& in, std::string_view name);
// The method of a value; null when its kind has none of that name (methods_*.cpp).
Native find_string_method(std::string_view name);
Native find_list_method(std::string_view name, bool is_tuple);
Native find_dict_method(std::string_view name);

}  // namespace text::jinja
