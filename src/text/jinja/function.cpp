#include "text/jinja/function.h"

#include "base/message.h"
#include "text/jinja/failure.h"

namespace text::jinja {

using base::cat;

void Args::bind_to(std::string_view what, const char* const* names, const Value** out, size_t n, size_t required) const {
    if (positional.size() > n) fail(cat(what, " takes at most ", n, " arguments, ", positional.size(), " were given"));
    for (size_t i = 0; i < n; ++i) out[i] = i < positional.size() ? &positional[i] : nullptr;
    for (const auto& [name, value] : named) {
        size_t i = 0;
        while (i < n && name != names[i]) ++i;
        if (i == n) fail(cat(what, " has no parameter '", base::printable(name), "'"));
        if (out[i]) fail(cat(what, " got parameter '", name, "' twice"));
        out[i] = &value;
    }
    for (size_t i = 0; i < required; ++i) {
        if (!out[i]) fail(cat(what, " is missing its argument '", names[i], "'"));
    }
}

void Args::none(std::string_view what) const {
    if (!positional.empty() || !named.empty()) fail(cat(what, " takes no arguments"));
}

namespace {

struct NativeFunction final : Function {
    NativeFunction(Heap& heap, Native f, Value bound, std::string_view python_name)
        : Function(heap), native(f), self(std::move(bound)), name(python_name) {}
    void clear() override { self = Value(); }
    Value call(Interpreter& in, Args& args) override { return native(in, self, args); }
    std::string type_name() const override { return self.is_none() ? "function" : "builtin_function_or_method"; }
    std::string repr() override { return cat("<", type_name(), " ", name, ">"); }

    Native native;
    Value self;
    std::string name;
};

}  // namespace

Value make_native(Heap& heap, Native native, Value self, std::string_view name) {
    return Value::object(Kind::function, new NativeFunction(heap, native, std::move(self), name));
}

}  // namespace text::jinja
