// str() and repr(): a value as text.
#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/failure.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

void Interpreter::print(Builder& out, const Value& value) {
    if (value.is_string()) {
        out.add(value.str());
    } else if (!value.is_undefined()) {  // an undefined value prints nothing
        repr(out, value);
    }
}

Value Interpreter::to_string(const Value& value) {
    if (value.is_string()) return value;
    Builder out(heap_);
    print(out, value);
    return out.finish();
}

void Interpreter::repr(Builder& out, const Value& value, uint32_t depth) {
    if (depth > limits::template_value_depth) fail("a value is nested too deep to print");
    heap_.step();
    const auto items = [&](const std::vector<Value>& values, std::string_view open, std::string_view close) {
        out.add(open);
        for (size_t i = 0; i < values.size(); ++i) {
            if (i > 0) out.add(", ");
            repr(out, values[i], depth + 1);
        }
        out.add(close);
    };
    switch (value.kind()) {
        case Kind::undefined: out.add("Undefined"); break;
        case Kind::none: out.add("None"); break;
        case Kind::boolean: out.add(value.as_bool() ? "True" : "False"); break;
        case Kind::integer: out.add(std::to_string(value.as_int())); break;
        case Kind::real: out.add(float_repr(value.as_real())); break;
        case Kind::string:
            if (value.str().markup) out.add("Markup(");
            out.add(string_repr(value.str().text), has_user_bytes(value.str()));
            if (value.str().markup) out.add(")");
            break;
        case Kind::list: {
            const List& list = value.list();
            switch (list.flavor) {
                case Flavor::list: items(list.items, "[", "]"); break;
                case Flavor::tuple:
                case Flavor::group: items(list.items, "(", list.items.size() == 1 ? ",)" : ")"); break;
                case Flavor::dict_keys: items(list.items, "dict_keys([", "])"); break;
                case Flavor::dict_values: items(list.items, "dict_values([", "])"); break;
                case Flavor::dict_items: items(list.items, "dict_items([", "])"); break;
            }
            break;
        }
        case Kind::dict: {
            out.add("{");
            bool first = true;
            for (const auto& [key, item] : value.dict().entries) {
                if (!first) out.add(", ");
                first = false;
                repr(out, key, depth + 1);
                out.add(": ");
                repr(out, item, depth + 1);
            }
            out.add("}");
            break;
        }
        case Kind::iterator: out.add(cat("<", value.iterator().name, " object>")); break;  // Python's would show an address
        case Kind::range: {
            const Range& range = value.range();
            out.add(range.step == 1 ? cat("range(", range.start, ", ", range.stop, ")")
                                    : cat("range(", range.start, ", ", range.stop, ", ", range.step, ")"));
            break;
        }
        case Kind::space:
            out.add("<Namespace ");
            repr(out, value.space().attributes, depth + 1);
            out.add(">");
            break;
        case Kind::function: out.add(value.function().repr()); break;
    }
}

}  // namespace text::jinja
