// Macros and the `loop` variable as values.
#pragma once

#include <deque>

#include "text/jinja/cursor.h"
#include "text/jinja/interpreter.h"

namespace text::jinja {

Value make_macro(Heap& heap, const MacroStmt& macro, Ref<Scope> scope, std::string_view name);

struct LoopObject final : Function {
    LoopObject(Interpreter& in, const LoopStmt& loop, Ref<Scope> outer, Value source, int64_t depth0);
    void clear() override;
    // The next item that passes the loop's test; false at the end.
    bool advance(Value& item);

    Value call(Interpreter& in, Args& args) override;  // loop(children) of a recursive loop
    std::string type_name() const override { return "LoopContext"; }
    std::string repr() override;
    bool attribute(Interpreter& in, std::string_view name, Value& value) override;
    std::optional<int64_t> length() override { return count_all(); }

    bool fetch(Value& item);
    bool peek();
    int64_t count_all();
    Value cycle(Args& args);
    Value changed(Args& args);

    Interpreter& in;
    const LoopStmt& loop;
    Ref<Scope> outer;
    Value source;
    Cursor cursor;
    std::deque<Value> ahead;  // items looked at before their turn
    int64_t index0 = -1, depth0, known_length = -1;
    Value before, current, last_changed;
    bool has_changed = false;
};

Value make_loop(Interpreter& in, const LoopStmt& loop, Ref<Scope> outer, Value source, int64_t depth0);
inline LoopObject& loop_of(const Value& value) { return static_cast<LoopObject&>(value.function()); }

}  // namespace text::jinja
