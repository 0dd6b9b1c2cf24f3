#include "text/jinja/interpreter.h"

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"

namespace text::jinja {

using base::cat;

Interpreter::Interpreter(const Template& source, const ValueObject& variables, std::span<const std::string_view> trusted,
                         const base::Clock& clock)
    : template_(source),
      variables_(variables),
      trusted_(trusted),
      clock_(clock),
      heap_(clock),
      context_(source.names.size()),
      scope_(new Scope(heap_, Ref<Scope>())),
      output_(heap_, true),
      out_(&output_) {
    for (NameId id = 0; id < template_.names.size(); ++id) {
        const std::string& name = template_.names[id];
        if (name == "loop") loop_name_ = id;
        if (name == "caller") caller_name_ = id;
        if (name == "kwargs") kwargs_name_ = id;
        if (name == "varargs") varargs_name_ = id;
    }
}

Interpreter::Frame::Frame(Interpreter& in) : in(in) {
    if (++in.frames_ > limits::template_frames) {
        --in.frames_;
        fail_limit(cat("evaluation is nested deeper than ", limits::template_frames));
    }
}

Interpreter::CallDepth::CallDepth(Interpreter& in) : in(in) {
    if (++in.calls_ > limits::template_depth) {
        --in.calls_;
        fail_limit(cat("macros and recursive loops call each other deeper than ", limits::template_depth));
    }
}

Value Interpreter::string(std::string text, bool user) {
    UserRanges ranges;
    if (user && !text.empty()) ranges.push_back({0, static_cast<uint32_t>(text.size())});
    return make_string(heap_, std::move(text), std::move(ranges));
}

Value Interpreter::convert(const text::Value& value, bool user, uint32_t depth) {
    if (depth > limits::template_value_depth) fail("a variable is nested too deep");
    heap_.step();
    struct Visitor {
        Interpreter& in;
        bool user;
        uint32_t depth;
        Value operator()(std::nullptr_t) const { return Value(); }
        Value operator()(bool b) const { return Value::boolean(b); }
        Value operator()(int64_t i) const { return Value::integer(i); }
        Value operator()(double d) const { return Value::real(d); }
        Value operator()(const std::string& s) const { return text(s); }
        Value operator()(const ValueArray& items) const {
            std::vector<Value> converted;
            converted.reserve(items.size());
            for (const text::Value& item : items) converted.push_back(in.convert(item, user, depth + 1));
            return make_list(in.heap_, std::move(converted));
        }
        Value operator()(const ValueObject& entries) const {
            Value result = make_dict(in.heap_);
            for (const auto& [key, item] : entries) result.dict().set(text(key), in.convert(item, user, depth + 1));
            return result;
        }
        Value text(const std::string& s) const {
            if (!base::utf8::is_valid(s)) return in.string(base::utf8::replace_invalid(s), user);
            return Value::object(Kind::string, new Str(in.heap_, Str::Borrowed(), s, user));
        }
    };
    return std::visit(Visitor{*this, user, depth}, value.data);
}

Value Interpreter::lookup(NameId id) {
    for (Scope* scope = scope_.get(); scope; scope = scope->parent.get()) {
        if (const Value* value = scope->find(id)) return *value;
    }
    if (!context_[id]) {
        const std::string& name = template_.names[id];
        for (const auto& [key, value] : variables_) {
            if (key != name) continue;
            bool user = true;
            for (const std::string_view trusted : trusted_) user = user && trusted != name;
            context_[id] = convert(value, user, 0);
            break;
        }
        if (!context_[id]) context_[id] = find_global(*this, name);
        if (!context_[id]) context_[id] = undefined(cat("'", base::printable(name), "' is undefined"));
    }
    return *context_[id];
}

}  // namespace text::jinja
