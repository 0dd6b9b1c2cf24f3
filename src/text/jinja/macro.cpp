#include "text/jinja/macro.h"

#include "base/message.h"
#include "text/jinja/failure.h"

namespace text::jinja {

using base::cat;

namespace {

struct MacroFunction final : Function {
    MacroFunction(Heap& heap, const MacroStmt& macro, Ref<Scope> scope, std::string_view name)
        : Function(heap), macro(macro), scope(std::move(scope)), name(name) {}
    void clear() override { scope = Ref<Scope>(); }
    Value call(Interpreter& in, Args& args) override { return in.call_macro(macro, scope, args); }
    std::string type_name() const override { return "Macro"; }
    std::string repr() override { return cat("<Macro '", name, "'>"); }
    bool attribute(Interpreter& in, std::string_view wanted, Value& value) override {
        if (wanted == "name") {
            value = in.string(std::string(name));
        } else if (wanted == "arguments") {
            std::vector<Value> names;
            for (const NameId id : macro.parameters) names.push_back(in.string(std::string(in.name(id))));
            value = make_list(in.heap(), std::move(names), Flavor::tuple);
        } else if (wanted == "catch_kwargs") {
            value = Value::boolean(macro.uses_kwargs);
        } else if (wanted == "catch_varargs") {
            value = Value::boolean(macro.uses_varargs);
        } else if (wanted == "caller") {
            value = Value::boolean(macro.uses_caller);
        } else {
            return false;
        }
        return true;
    }

    const MacroStmt& macro;
    Ref<Scope> scope;  // where it was defined: its body sees those variables as they are when it is called
    std::string_view name;
};

}  // namespace

Value make_macro(Heap& heap, const MacroStmt& macro, Ref<Scope> scope, std::string_view name) {
    return Value::object(Kind::function, new MacroFunction(heap, macro, std::move(scope), name));
}

Value make_loop(Interpreter& in, const LoopStmt& loop, Ref<Scope> outer, Value source, int64_t depth0) {
    return Value::object(Kind::function, new LoopObject(in, loop, std::move(outer), std::move(source), depth0));
}

LoopObject::LoopObject(Interpreter& in, const LoopStmt& loop, Ref<Scope> outer, Value source, int64_t depth0)
    : Function(in.heap()),
      in(in),
      loop(loop),
      outer(std::move(outer)),
      source(source),
      cursor(in.heap(), std::move(source)),
      depth0(depth0) {}

void LoopObject::clear() {
    outer = Ref<Scope>();
    source = before = current = last_changed = Value();
    ahead.clear();
}

bool LoopObject::fetch(Value& item) {
    while (cursor.next(item)) {
        if (!loop.test || in.loop_test(loop, outer, item)) return true;
    }
    return false;
}

bool LoopObject::peek() {
    if (!ahead.empty()) return true;
    Value item;
    if (!fetch(item)) return false;
    ahead.push_back(std::move(item));
    return true;
}

bool LoopObject::advance(Value& item) {
    if (!peek()) return false;
    item = std::move(ahead.front());
    ahead.pop_front();
    ++index0;
    before = std::move(current);
    current = item;
    return true;
}

int64_t LoopObject::count_all() {
    if (known_length < 0) {
        if (!loop.test && !source.is(Kind::iterator) && !source.is(Kind::function)) {
            known_length = length_of(source);
        } else {
            Value item;
            while (fetch(item)) ahead.push_back(std::move(item));
            known_length = index0 + 1 + static_cast<int64_t>(ahead.size());
        }
    }
    return known_length;
}

std::string LoopObject::repr() { return cat("<LoopContext ", index0 + 1, "/", count_all(), ">"); }

Value LoopObject::cycle(Args& args) {
    if (args.positional.empty()) fail("no items for cycling given");
    return args.positional[static_cast<size_t>(index0) % args.positional.size()];
}

Value LoopObject::changed(Args& args) {
    Value now = make_list(heap, std::move(args.positional), Flavor::tuple);
    if (has_changed && equal(last_changed, now)) return Value::boolean(false);
    has_changed = true;
    last_changed = std::move(now);
    return Value::boolean(true);
}

Value LoopObject::call(Interpreter& interpreter, Args& args) {
    if (!loop.recursive) fail("the loop must have the 'recursive' marker to be called recursively");
    if (args.positional.size() != 1 || !args.named.empty()) fail("loop() takes one iterable");
    return interpreter.render_loop(loop, outer, args.positional[0], depth0 + 1);
}

bool LoopObject::attribute(Interpreter& interpreter, std::string_view name, Value& value) {
    if (name == "index") {
        value = Value::integer(index0 + 1);
    } else if (name == "index0") {
        value = Value::integer(index0);
    } else if (name == "first") {
        value = Value::boolean(index0 == 0);
    } else if (name == "last") {
        value = Value::boolean(!peek());
    } else if (name == "length") {
        value = Value::integer(count_all());
    } else if (name == "revindex") {
        value = Value::integer(count_all() - index0);
    } else if (name == "revindex0") {
        value = Value::integer(count_all() - index0 - 1);
    } else if (name == "depth") {
        value = Value::integer(depth0 + 1);
    } else if (name == "depth0") {
        value = Value::integer(depth0);
    } else if (name == "previtem") {
        value = index0 == 0 ? interpreter.undefined("there is no previous item") : before;
    } else if (name == "nextitem") {
        value = peek() ? ahead.front() : interpreter.undefined("there is no next item");
    } else if (name == "cycle") {
        value = make_native(
            heap, [](Interpreter&, const Value& self, Args& args) { return loop_of(self).cycle(args); },
            Value::object(Kind::function, this), "cycle");
    } else if (name == "changed") {
        value = make_native(
            heap, [](Interpreter&, const Value& self, Args& args) { return loop_of(self).changed(args); },
            Value::object(Kind::function, this), "changed");
    } else {
        return false;
    }
    return true;
}

}  // namespace text::jinja
