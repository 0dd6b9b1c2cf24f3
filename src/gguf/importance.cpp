#include "gguf/importance.h"

#include <cmath>
#include <cstring>

#include "base/limits.h"
#include "base/message.h"
#include "gguf/file.h"

namespace gguf {
namespace {

using base::cat;
using base::printable;

base::Error bad(std::string_view file, std::string what) {
    return {base::ErrorCode::bad_file, cat(printable(file, limits::file_name_bytes_shown), ": ", what), ""};
}

// Index of the first value that is no importance, or the count.
size_t first_wrong(const std::vector<float>& values) {
    size_t i = 0;
    while (i < values.size() && std::isfinite(values[i]) && values[i] >= 0) ++i;
    return i;
}

base::Result<Importance> parse_gguf(std::span<const std::byte> bytes, std::string_view name) {
    auto parsed = File::parse(bytes, name);
    if (!parsed) return parsed.take_error();
    const File& file = parsed.value();
    Importance out;
    if (file.find("imatrix.datasets")) {
        auto datasets = file.get_strings("imatrix.datasets");
        if (!datasets) return datasets.take_error();
        for (const std::string_view text : datasets.value()) out.datasets.emplace_back(text);
    }
    if (file.find("imatrix.chunk_count")) {
        auto chunks = file.get_uint("imatrix.chunk_count");
        if (!chunks) return chunks.take_error();
        out.chunks = static_cast<uint32_t>(chunks.value());
    }
    constexpr std::string_view sums_suffix = ".in_sum2";
    for (const TensorInfo& sums : file.tensors()) {
        if (!sums.name.ends_with(sums_suffix)) continue;
        const std::string tensor(sums.name.substr(0, sums.name.size() - sums_suffix.size()));
        const TensorInfo* counts = file.find_tensor(tensor + ".counts");
        if (!counts) return bad(name, cat("tensor '", printable(sums.name), "' has no counts beside it, expected '", printable(tensor), ".counts'"));
        if (sums.type != quant::Type::f32 || counts->type != quant::Type::f32)
            return bad(name, cat("sums and counts of '", printable(tensor), "' are ", quant::info(sums.type).name, " and ", quant::info(counts->type).name,
                                 ", allowed is F32"));
        const uint64_t experts = counts->n_elements();
        if (sums.n_elements() % experts != 0)
            return bad(name, cat("'", printable(tensor), "' has ", sums.n_elements(), " sums for ", experts, " counts, allowed is a multiple"));
        const uint64_t columns = sums.n_elements() / experts;
        std::vector<float> values(sums.n_elements()), divisors(experts);
        std::memcpy(values.data(), sums.data.data(), sums.data.size());
        std::memcpy(divisors.data(), counts->data.data(), counts->data.size());
        for (uint64_t i = 0; i < values.size(); ++i) {
            // An expert that nothing was routed to: every column alike.
            const float count = std::round(divisors[i / columns]);
            values[i] = count > 0 ? values[i] / count : 1.0f;
        }
        if (const size_t wrong = first_wrong(values); wrong < values.size())
            return bad(name, cat("sum ", wrong, " of '", printable(tensor), "' gives no importance, allowed are finite values of 0 and more"));
        out.columns.emplace(tensor, std::move(values));
    }
    if (out.columns.empty()) return bad(name, "is a GGUF file without importance: no tensor's name ends with .in_sum2");
    return out;
}

// i32 entries; each: i32 length, name, i32 calls, i32 values, f32 values; at the end, optional: i32 chunks, i32 length, dataset.
base::Result<Importance> parse_binary(std::span<const std::byte> bytes, std::string_view name) {
    Importance out;
    size_t at = 0;
    const auto number = [&](int32_t& value) {
        if (bytes.size() - at < sizeof value) return false;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        at += sizeof value;
        return true;
    };
    const auto cut = [&] { return bad(name, cat("ends at byte ", bytes.size(), " in the middle of an importance entry")); };
    const auto wrong_length = [&](std::string_view what, int32_t value) {
        return bad(name, cat(what, " at byte ", at - 4, " is ", value, ", more than the file holds or none; is this an importance matrix?"));
    };
    int32_t entries = 0;
    if (!number(entries)) return cut();
    if (entries < 1 || static_cast<uint64_t>(entries) > limits::gguf_tensors_count) return wrong_length("the number of entries", entries);
    for (int32_t k = 0; k < entries; ++k) {
        int32_t length = 0, calls = 0, count = 0;
        if (!number(length)) return cut();
        if (length < 1 || static_cast<size_t>(length) > bytes.size() - at) return wrong_length("a name's length", length);
        std::string tensor(reinterpret_cast<const char*>(bytes.data() + at), static_cast<size_t>(length));
        at += static_cast<size_t>(length);
        if (!number(calls) || !number(count)) return cut();
        if (count < 1 || static_cast<size_t>(count) > (bytes.size() - at) / sizeof(float)) return wrong_length("a number of values", count);
        std::vector<float> values(static_cast<size_t>(count));
        std::memcpy(values.data(), bytes.data() + at, values.size() * sizeof(float));
        at += values.size() * sizeof(float);
        if (calls > 0)
            for (float& value : values) value /= static_cast<float>(calls);
        if (const size_t wrong = first_wrong(values); wrong < values.size())
            return bad(name, cat("value ", wrong, " of '", printable(tensor), "' is no importance, allowed are finite values of 0 and more"));
        out.columns[std::move(tensor)] = std::move(values);
    }
    int32_t chunks = 0, length = 0;
    if (number(chunks) && chunks > 0) out.chunks = static_cast<uint32_t>(chunks);
    if (number(length) && length > 0 && static_cast<size_t>(length) <= bytes.size() - at)
        out.datasets.emplace_back(reinterpret_cast<const char*>(bytes.data() + at), static_cast<size_t>(length));
    return out;
}

}  // namespace

base::Result<Importance> Importance::parse(std::span<const std::byte> bytes, std::string_view name) {
    if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) return parse_gguf(bytes, name);
    return parse_binary(bytes, name);
}

}  // namespace gguf
