// Typed access to parsed metadata, and files as one.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/limits.h"
#include "base/message.h"
#include "gguf/file.h"

namespace gguf {
namespace {

using base::cat;

std::string type_text(const Value& value) {
    if (const auto* array = std::get_if<Array>(&value.data)) return cat("an array of ", type_name(array->element_type));
    return std::string(type_name(value.type));
}

base::Error missing(std::string_view key, std::string_view expected) {
    return {base::ErrorCode::bad_file, cat("metadata key '", base::printable(key), "' is missing, expected ", expected), ""};
}

base::Error mismatch(std::string_view key, const Value& value, std::string_view problem) {
    return {base::ErrorCode::bad_file, cat("metadata key '", base::printable(key), "' at byte ", value.offset, " ", problem), ""};
}

// The value of `key` when it holds a T.
template <typename T>
base::Result<const T*> typed(const File& file, std::string_view key, std::string_view expected) {
    const Value* value = file.find(key);
    if (!value) return missing(key, expected);
    const T* data = std::get_if<T>(&value->data);
    if (!data) return mismatch(key, *value, cat("is ", type_text(*value), ", expected ", expected));
    return data;
}

template <typename T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// Calls each(element) for the elements of a scalar array of C++ type T.
template <typename T, typename Each>
void for_each(const Array& array, Each&& each) {
    for (uint64_t i = 0; i < array.count; ++i) each(load<T>(array.bytes.data() + i * sizeof(T)));
}

}  // namespace

std::string_view type_name(ValueType type) {
    switch (type) {
        case ValueType::u8: return "u8";
        case ValueType::i8: return "i8";
        case ValueType::u16: return "u16";
        case ValueType::i16: return "i16";
        case ValueType::u32: return "u32";
        case ValueType::i32: return "i32";
        case ValueType::f32: return "f32";
        case ValueType::boolean: return "bool";
        case ValueType::string: return "string";
        case ValueType::array: return "array";
        case ValueType::u64: return "u64";
        case ValueType::i64: return "i64";
        case ValueType::f64: return "f64";
    }
    return "unknown";
}

const Value* File::find(std::string_view key) const {
    const auto it = std::lower_bound(metadata_order_.begin(), metadata_order_.end(), key,
                                     [&](uint32_t i, std::string_view k) { return metadata_[i].first < k; });
    return it != metadata_order_.end() && metadata_[*it].first == key ? &metadata_[*it].second : nullptr;
}

const TensorInfo* File::find_tensor(std::string_view name) const {
    const auto it = std::lower_bound(tensor_order_.begin(), tensor_order_.end(), name,
                                     [&](uint32_t i, std::string_view n) { return tensors_[i].name < n; });
    return it != tensor_order_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
}

base::Result<uint64_t> File::get_uint(std::string_view key) const {
    const Value* value = find(key);
    if (!value) return missing(key, "an unsigned integer");
    if (const auto* number = std::get_if<uint64_t>(&value->data)) return *number;
    if (const auto* number = std::get_if<int64_t>(&value->data)) {
        if (*number >= 0) return static_cast<uint64_t>(*number);
        return mismatch(key, *value, cat("is ", *number, ", expected 0 or more"));
    }
    return mismatch(key, *value, cat("is ", type_text(*value), ", expected an unsigned integer"));
}

base::Result<double> File::get_float(std::string_view key) const {
    auto data = typed<double>(*this, key, "a floating-point number");
    if (!data) return data.take_error();
    return *data.value();
}

base::Result<bool> File::get_bool(std::string_view key) const {
    auto data = typed<bool>(*this, key, "a bool");
    if (!data) return data.take_error();
    return *data.value();
}

base::Result<std::string_view> File::get_string(std::string_view key) const {
    auto data = typed<std::string_view>(*this, key, "a string");
    if (!data) return data.take_error();
    return *data.value();
}

base::Result<std::vector<std::string_view>> File::get_strings(std::string_view key) const {
    auto data = typed<Array>(*this, key, "an array of strings");
    if (!data) return data.take_error();
    const Array& array = *data.value();
    if (array.element_type != ValueType::string) return mismatch(key, *find(key), cat("is ", type_text(*find(key)), ", expected an array of strings"));
    return strings(array);
}

base::Result<std::vector<int64_t>> File::get_ints(std::string_view key) const {
    auto data = typed<Array>(*this, key, "an array of integers");
    if (!data) return data.take_error();
    const Array& array = *data.value();
    std::vector<int64_t> out;
    out.reserve(array.count);
    const auto push = [&](auto element) { out.push_back(static_cast<int64_t>(element)); };
    switch (array.element_type) {
        case ValueType::u8: for_each<uint8_t>(array, push); break;
        case ValueType::i8: for_each<int8_t>(array, push); break;
        case ValueType::u16: for_each<uint16_t>(array, push); break;
        case ValueType::i16: for_each<int16_t>(array, push); break;
        case ValueType::u32: for_each<uint32_t>(array, push); break;
        case ValueType::i32: for_each<int32_t>(array, push); break;
        case ValueType::i64: for_each<int64_t>(array, push); break;
        case ValueType::u64: {
            for_each<uint64_t>(array, push);
            // A negative number in the widened array was above INT64_MAX.
            const auto above = std::find_if(out.begin(), out.end(), [](int64_t element) { return element < 0; });
            if (above != out.end())
                return mismatch(key, *find(key), cat("has element ", above - out.begin(), " = ", static_cast<uint64_t>(*above),
                                                     ", allowed are values below 2^63"));
            break;
        }
        default: return mismatch(key, *find(key), cat("is ", type_text(*find(key)), ", expected an array of integers"));
    }
    return out;
}

base::Result<std::vector<float>> File::get_floats(std::string_view key) const {
    auto data = typed<Array>(*this, key, "an array of floating-point numbers");
    if (!data) return data.take_error();
    const Array& array = *data.value();
    std::vector<float> out;
    out.reserve(array.count);
    const auto push = [&](auto element) { out.push_back(static_cast<float>(element)); };
    if (array.element_type == ValueType::f32)
        for_each<float>(array, push);
    else if (array.element_type == ValueType::f64)
        for_each<double>(array, push);
    else
        return mismatch(key, *find(key), cat("is ", type_text(*find(key)), ", expected an array of floating-point numbers"));
    return out;
}

std::vector<std::string_view> strings(const Array& array) {
    CHECK(array.element_type == ValueType::string);
    std::vector<std::string_view> out;
    out.reserve(array.count);
    uint64_t at = 0;
    for (uint64_t i = 0; i < array.count; ++i) {
        const auto length = load<uint64_t>(array.bytes.data() + at);
        out.emplace_back(reinterpret_cast<const char*>(array.bytes.data() + at + 8), length);
        at += 8 + length;
    }
    return out;
}

std::string place(const TensorInfo& tensor) {
    return tensor.part.empty() ? cat("byte ", tensor.offset) : cat("byte ", tensor.offset, " of ", tensor.part);
}

base::Result<File> File::join(std::vector<File> parts, std::span<const std::string> names) {
    CHECK_EQ(parts.size(), names.size());
    CHECK(!parts.empty());
    File out = std::move(parts[0]);
    size_t total = 0;
    for (const File& part : parts) total += part.tensors_.size();
    total += out.tensors_.size();
    if (total > limits::gguf_tensors_count)
        return base::Error{base::ErrorCode::bad_file, cat("the parts have ", total, " tensors, allowed are 0 to ", limits::gguf_tensors_count), ""};
    for (TensorInfo& tensor : out.tensors_) tensor.part = names[0];
    for (size_t i = 1; i < parts.size(); ++i) {
        out.size_bytes_ += parts[i].size_bytes_;
        for (TensorInfo& tensor : parts[i].tensors_) {
            tensor.part = names[i];
            out.tensors_.push_back(tensor);
        }
    }
    out.tensor_order_.resize(out.tensors_.size());
    std::iota(out.tensor_order_.begin(), out.tensor_order_.end(), 0u);
    std::sort(out.tensor_order_.begin(), out.tensor_order_.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(out.tensors_[a].name, a) < std::pair(out.tensors_[b].name, b);
    });
    for (size_t i = 1; i < out.tensor_order_.size(); ++i) {
        const TensorInfo &before = out.tensors_[out.tensor_order_[i - 1]], &here = out.tensors_[out.tensor_order_[i]];
        if (before.name == here.name)
            return base::Error{base::ErrorCode::bad_file,
                               cat("tensor '", base::printable(here.name), "' is in ", before.part, " and in ", here.part, ", allowed is each name once"), ""};
    }
    return out;
}

}  // namespace gguf
