// Uses everything that an accepted GGUF file offers and checks what the parser promises. For mutation tests and fuzzing:
// a promise that does not hold aborts (CHECK), a read outside the file is the sanitizer's to find.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "gguf/file.h"

namespace support {

inline void exercise(const gguf::File& file, std::span<const std::byte> image) {
    const auto inside = [&](std::span<const std::byte> part) {
        return part.empty() || (part.data() >= image.data() && part.data() + part.size() <= image.data() + image.size());
    };
    for (const auto& [key, value] : file.metadata()) {
        CHECK(!key.empty() && file.find(key) == &value);
        CHECK(value.offset < image.size());
        // Each accessor either gives a value or a message of one line; none may do worse.
        const auto note = [](const auto& result) {
            if (!result.ok()) CHECK(!result.error().message.empty() && result.error().message.find('\n') == std::string::npos);
            return result.ok();
        };
        int accepted = note(file.get_uint(key)) + note(file.get_float(key)) + note(file.get_bool(key)) + note(file.get_string(key));
        accepted += note(file.get_strings(key)) + note(file.get_ints(key)) + note(file.get_floats(key));
        CHECK_LE(accepted, 1);
        if (const auto* array = std::get_if<gguf::Array>(&value.data)) {
            CHECK(inside(array->bytes));
            if (auto strings = file.get_strings(key); strings.ok()) {
                CHECK_EQ(strings.value().size(), array->count);
                for (const std::string_view text : strings.value()) CHECK(inside(std::as_bytes(std::span(text))));
            }
        }
    }
    std::vector<std::span<const std::byte>> extents;
    for (const gguf::TensorInfo& tensor : file.tensors()) {
        CHECK(file.find_tensor(tensor.name) == &tensor);
        CHECK(inside(tensor.data) && !tensor.data.empty());
        CHECK_EQ(tensor.data.data() - image.data(), static_cast<std::ptrdiff_t>(tensor.offset));
        CHECK_EQ(tensor.offset % file.alignment(), 0u);
        CHECK(tensor.n_dims >= 1 && tensor.n_dims <= 4 && tensor.n_elements() > 0);
        CHECK_EQ(tensor.data.size(), quant::row_bytes(tensor.type, tensor.n_elements()));
        volatile std::byte sink = tensor.data.front();
        sink = tensor.data.back();
        (void)sink;
        extents.push_back(tensor.data);
    }
    std::sort(extents.begin(), extents.end(), [](auto a, auto b) { return a.data() < b.data(); });
    for (size_t i = 1; i < extents.size(); ++i) CHECK(extents[i - 1].data() + extents[i - 1].size() <= extents[i].data());
}

}  // namespace support
