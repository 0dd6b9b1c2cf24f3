#include "json/parse.h"

#include <simdjson.h>

#include <algorithm>

#include "base/limits.h"
#include "json/fault.h"

namespace json {
namespace {

namespace dom = simdjson::dom;

// Copies simdjson's tape into our tree. Depth is bounded by the parser (limits::json_depth), so recursion is too.
class TreeBuilder {
  public:
    bool build(const dom::element& element, Value& out) {
        if (++values_count_ > limits::json_values_count) return false;
        switch (element.type()) {
            case dom::element_type::ARRAY: return build_array(element.get_array().value_unsafe(), out.data.emplace<Array>());
            case dom::element_type::OBJECT: return build_object(element.get_object().value_unsafe(), out.data.emplace<Object>());
            case dom::element_type::INT64: out.data = element.get_int64().value_unsafe(); break;
            case dom::element_type::UINT64: out.data = element.get_uint64().value_unsafe(); break;
            case dom::element_type::DOUBLE: out.data = element.get_double().value_unsafe(); break;
            case dom::element_type::STRING: out.data.emplace<std::string>(element.get_string().value_unsafe()); break;
            case dom::element_type::BOOL: out.data = element.get_bool().value_unsafe(); break;
            case dom::element_type::NULL_VALUE: out.data = nullptr; break;
        }
        return true;
    }

  private:
    bool build_array(const dom::array& array, Array& out) {
        for (const dom::element child : array)
            if (!build(child, out.emplace_back())) return false;
        return true;
    }

    bool build_object(const dom::object& object, Object& out) {
        for (const dom::key_value_pair field : object) {
            out.emplace_back(std::string(field.key), Value{});
            if (!build(field.value, out.back().second)) return false;
        }
        keep_last_of_equal_keys(out);
        return true;
    }

    // Sorting, not hashing: keys come from a stranger, who could make them collide.
    static void keep_last_of_equal_keys(Object& members) {
        if (members.size() < 2) return;
        std::vector<uint32_t> order(members.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            const int compared = members[a].first.compare(members[b].first);
            return compared != 0 ? compared < 0 : a < b;
        });
        std::vector<bool> dropped(members.size(), false);
        bool any = false;
        uint32_t first = order[0];
        for (size_t i = 1; i < order.size(); ++i) {
            if (members[order[i]].first != members[first].first) {
                first = order[i];
                continue;
            }
            members[first].second = std::move(members[order[i]].second);  // ascending, so the last one stays
            dropped[order[i]] = any = true;
        }
        if (!any) return;
        Object kept;
        for (size_t i = 0; i < members.size(); ++i)
            if (!dropped[i]) kept.push_back(std::move(members[i]));
        members = std::move(kept);
    }

    size_t values_count_ = 0;
};

base::Error invalid(std::string message) { return {base::ErrorCode::invalid_argument, std::move(message), ""}; }

}  // namespace

base::Result<Value> parse(std::string_view text) {
    size_t bom_bytes = 0;
    if (text.starts_with("\xef\xbb\xbf")) bom_bytes = 3, text.remove_prefix(3);

    dom::parser parser;
    const simdjson::padded_string padded(text);
    dom::element root;
    // simdjson refuses when depth >= max_depth, so one more than we allow.
    simdjson::error_code error = parser.allocate(padded.size(), limits::json_depth + 1);
    if (!error) error = parser.parse(padded).get(root);
    if (error) {
        // The slow scan runs only for a refusal, to say where and why.
        const std::optional<Fault> fault = find_fault(text, limits::json_depth);
        if (!fault) return invalid(std::string("not valid JSON: ") + simdjson::error_message(error));
        return invalid("not valid JSON at byte " + std::to_string(fault->offset + bom_bytes) + ": " + fault->reason);
    }
    Value value;
    if (!TreeBuilder().build(root, value))
        return invalid("JSON with more than " + std::to_string(limits::json_values_count) + " values is not accepted");
    return value;
}

}  // namespace json
