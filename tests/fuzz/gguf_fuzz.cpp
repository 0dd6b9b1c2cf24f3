// The GGUF parser: any bytes. What it accepts must keep its promises (support/gguf_exercise.h) and survive being
// written again by our writer.
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/gguf_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::span<const std::byte> image(reinterpret_cast<const std::byte*>(data), size);
    auto file = gguf::File::parse(image, "fuzz");
    if (!file.ok()) {
        CHECK(file.error().message.find('\n') == std::string::npos);
        CHECK(file.error().message.size() < 2000);
        return 0;
    }
    support::exercise(file.value(), image);

    gguf::Writer writer(static_cast<uint32_t>(file.value().alignment()), file.value().version());
    for (const auto& [key, value] : file.value().metadata())
        if (key != "general.alignment") writer.add_value(key, value);
    for (const gguf::TensorInfo& tensor : file.value().tensors())
        writer.add_tensor(tensor.name, tensor.type, std::span(tensor.dims, tensor.n_dims), tensor.data);
    const std::vector<std::byte> written = writer.bytes();
    auto again = gguf::File::parse(written, "again");
    CHECK(again.ok());
    support::exercise(again.value(), written);
    CHECK_EQ(again.value().tensors().size(), file.value().tensors().size());
    for (const gguf::TensorInfo& tensor : file.value().tensors()) {
        const gguf::TensorInfo* copy = again.value().find_tensor(tensor.name);
        CHECK(copy && copy->type == tensor.type && std::equal(copy->data.begin(), copy->data.end(), tensor.data.begin(), tensor.data.end()));
    }
    return 0;
}
