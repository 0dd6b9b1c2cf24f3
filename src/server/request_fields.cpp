#include "server/request_fields.h"

#include <cmath>

#include "json/writer.h"
#include "server/openai.h"

namespace server {
namespace {

constexpr size_t shown_bytes_max = 40;

std::string number_text(double number) {
    if (number == std::floor(number) && std::fabs(number) < 1e15) return std::to_string(static_cast<int64_t>(number));
    json::Value value;
    value.data = number;
    return json::to_text(value);
}

}  // namespace

std::string shown(const json::Value& value) {
    if (value.as_array() || value.as_object()) return std::string(value.kind_name());
    std::string text = json::to_text(value);
    if (text.size() <= shown_bytes_max) return text;
    size_t cut = shown_bytes_max;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // whole characters only
    text.resize(cut);
    return text + "...";
}

base::Error must_be(std::string_view field, std::string_view what, const json::Value& got) {
    std::string message(field);
    message.append(" must be ").append(what).append(", got ").append(shown(got));
    return invalid(std::string(field), std::move(message));
}

base::Result<bool> read_bool(std::string_view field, const json::Value& value) {
    if (const bool* flag = value.as_bool()) return *flag;
    return must_be(field, "true or false", value);
}

base::Result<int64_t> read_int(std::string_view field, const json::Value& value, int64_t low, int64_t high) {
    const std::string what = "an integer from " + std::to_string(low) + " to " + std::to_string(high);
    if (const int64_t* i = value.as_int()) {
        if (*i >= low && *i <= high) return *i;
    } else if (const double* d = value.as_double()) {
        // 2^63 is exact as a double, so the cast below is defined.
        if (*d == std::floor(*d) && std::fabs(*d) < 9.2e18 && *d >= static_cast<double>(low) && *d <= static_cast<double>(high))
            return static_cast<int64_t>(*d);
    }
    return must_be(field, what, value);
}

base::Result<double> read_number(std::string_view field, const json::Value& value, double low, double high) {
    double number = 0;
    if (value.number(number) && number >= low && number <= high) return number;
    return must_be(field, "a number from " + number_text(low) + " to " + number_text(high), value);
}

base::Result<std::string> read_string(std::string_view field, const json::Value& value) {
    if (const std::string* text = value.as_string()) return *text;
    return must_be(field, "a string", value);
}

std::string element_field(std::string_view array, size_t index, std::string_view member) {
    std::string out(array);
    out.append("[").append(std::to_string(index)).append("]");
    if (!member.empty()) out.append(".").append(member);
    return out;
}

}  // namespace server
