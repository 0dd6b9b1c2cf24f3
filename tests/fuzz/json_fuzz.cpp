// The JSON door: simdjson and our own scanner must agree on what is JSON, and what is read must survive writing.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "json/fault.h"
#include "json/parse.h"
#include "json/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto value = json::parse(text);
    std::string_view without_mark = text;
    if (without_mark.starts_with("\xef\xbb\xbf")) without_mark.remove_prefix(3);
    const auto fault = json::find_fault(without_mark, limits::json_depth);
    if (!value.ok()) {
        const bool counted_out = value.error().message.find("values is not accepted") != std::string::npos;
        CHECK(fault.has_value() || counted_out);
        if (fault) CHECK_LE(fault->offset, without_mark.size());
        return 0;
    }
    CHECK(!fault.has_value());
    const std::string written = json::to_text(value.value());
    const auto again = json::parse(written);
    CHECK(again.ok());
    CHECK(again.value() == value.value());
    CHECK(json::to_text(again.value()) == written);
    return 0;
}
