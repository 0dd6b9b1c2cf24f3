#include "text/jinja/filters.h"

#include "base/message.h"
#include "text/jinja/failure.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

const FilterEntry* find_filter(std::string_view name) {
    for (const auto table : {text_filters(), value_filters(), sequence_filters(), group_filters()}) {
        for (const FilterEntry& entry : table) {
            if (entry.name == name) return &entry;
        }
    }
    return nullptr;
}

Value Interpreter::call_filter(std::string_view name, const Value& value, Args& args) {
    const FilterEntry* entry = find_filter(name);
    if (!entry) fail(cat("no filter named '", base::printable(name), "'"));
    const Frame frame(*this);
    return entry->apply(*this, value, args);
}

int64_t int_argument(const Value& value, std::string_view what) {
    if (value.is_undefined()) fail(value.undefined().message);
    if (!value.is_int_like()) fail(cat(what, " must be an integer, not ", type_name(value)));
    return value.as_int();
}

const Str& string_argument(const Value& value, std::string_view what) {
    if (value.is_undefined()) fail(value.undefined().message);
    if (!value.is_string()) fail(cat(what, " must be a string, not ", type_name(value)));
    return value.str();
}

AttributePath::AttributePath(Interpreter& in, const Value* attribute, const Value* fallback) : in_(in) {
    if (fallback) fallback_ = *fallback;
    if (!attribute || attribute->is_none()) return;
    if (!attribute->is_string()) {
        parts_.push_back(*attribute);
        return;
    }
    std::string_view rest = attribute->str().text;
    while (true) {
        const size_t dot = rest.find('.');
        const std::string_view part = rest.substr(0, dot);
        const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        parts_.push_back(number ? Value::integer(parse_int(part, 10).value_or(0)) : in.string(std::string(part)));
        if (dot == std::string_view::npos) break;
        rest.remove_prefix(dot + 1);
    }
}

Value AttributePath::get(const Value& item) const {
    Value value = item;
    for (const Value& part : parts_) {
        value = in_.get_item(value, part);
        if (value.is_undefined() && !fallback_.is_none()) value = fallback_;
    }
    return value;
}

Value ignore_case(Interpreter& in, const Value& value) {
    if (!value.is_string()) return value;
    Builder out(in.heap());
    add_cased(out, value.str(), Case::lower);
    return out.finish();
}

}  // namespace text::jinja
