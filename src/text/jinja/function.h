// What can be called: globals, methods bound to a value, macros; and objects with attributes of their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/message.h"
#include "text/jinja/value.h"

namespace text::jinja {

class Interpreter;

// Arguments of one call: f(1, x=2) has one positional and one named.
struct Args {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
    bool user_names = false;  // some names came out of a dict (**d) with keys that a user wrote

    // Arguments by the names of the parameters; an absent one is null. Fails on too many, doubled and unknown ones.
    // `what` names the callee in messages; the first `required` parameters must be given.
    template <size_t N>
    void bind(std::string_view what, const char* const (&names)[N], const Value* (&out)[N], size_t required = 0) const {
        bind_to(what, names, out, N, required);
    }
    void none(std::string_view what) const;  // fails when there is any argument

  private:
    void bind_to(std::string_view what, const char* const* names, const Value** out, size_t n, size_t required) const;
};

struct Function : Object {
    using Object::Object;
    virtual Value call(Interpreter& in, Args& args) = 0;
    virtual std::string type_name() const { return "function"; }
    virtual std::string repr() { return base::cat("<", type_name(), ">"); }
    // False: there is no such attribute.
    virtual bool attribute(Interpreter&, std::string_view, Value&) { return false; }
    virtual bool is_callable() const { return true; }
    virtual bool truthy() const { return true; }
    virtual bool is_iterable() const { return false; }
    virtual bool next(Value&) { return false; }
    virtual std::optional<int64_t> length() { return std::nullopt; }
};

inline Function& Value::function() const { return static_cast<Function&>(*bits_.object); }

// A function of this program, with the value that it is a method of (none for globals).
using Native = Value (*)(Interpreter& in, const Value& self, Args& args);
Value make_native(Heap& heap, Native native, Value self, std::string_view name);

}  // namespace text::jinja
