#include "json/value.h"

#include <array>

namespace json {

bool Value::number(double& out) const {
    if (const int64_t* i = as_int()) return out = static_cast<double>(*i), true;
    if (const uint64_t* u = as_uint()) return out = static_cast<double>(*u), true;
    if (const double* d = as_double()) return out = *d, true;
    return false;
}

std::string_view Value::kind_name() const {
    // In the order of the variant.
    static constexpr std::array<std::string_view, 8> names = {"null",     "a boolean", "an integer", "an integer",
                                                              "a number", "a string",  "an array",   "an object"};
    static_assert(names.size() == std::variant_size_v<decltype(data)>);
    return names[data.index()];
}

const Value* Value::find(std::string_view key) const {
    const Object* object = as_object();
    if (!object) return nullptr;
    for (const Member& member : *object)
        if (member.first == key) return &member.second;
    return nullptr;
}

}  // namespace json
