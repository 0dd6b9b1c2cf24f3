// A GGUF file (v2, v3) as typed metadata and a tensor directory over a span of bytes.
// Source of the layout: the public GGUF specification. Every length, offset and product is checked before it
// is believed; an error names the field, its byte offset and what was allowed. Nothing here recurses on input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "quant/types.h"

namespace gguf {

// Numbers as the specification gives them.
enum class ValueType : uint32_t {
    u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9, u64 = 10, i64 = 11, f64 = 12,
};

// An array lies in the file; strings of a string array are found by walking it once (`strings()`).
struct Array {
    ValueType element_type = ValueType::u8;
    uint64_t count = 0;
    std::span<const std::byte> bytes;  // raw elements, little-endian, unaligned; for strings: length-prefixed, all checked at parse
};

// The strings of a string array that File::parse accepted, as views into the file.
std::vector<std::string_view> strings(const Array& array);

// "u8", "string", "array" and so on.
std::string_view type_name(ValueType type);

struct Value {
    ValueType type = ValueType::u8;
    std::variant<uint64_t, int64_t, double, bool, std::string_view, Array> data;  // widened: all unsigned to uint64_t and so on
    uint64_t offset = 0;  // byte offset of the value in the file, for messages
};

// Element i of a scalar array that File::parse accepted, widened like any value (offset is 0). i < array.count.
Value element(const Array& array, uint64_t i);

struct TensorInfo {
    std::string_view name;
    quant::Type type = quant::Type::f32;
    uint32_t n_dims = 0;
    uint64_t dims[4] = {1, 1, 1, 1};  // dims[0] is the length of a row (fastest)
    std::span<const std::byte> data;  // inside the file, bounds checked
    uint64_t offset = 0;              // of the data, from the start of the file
    std::string_view part = {};       // printable name of that file when the model is split into several
    uint64_t n_elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

// "byte 4096", and in a split model "byte 4096 of m-00002-of-00003.gguf": where a tensor's data begins, for messages.
std::string place(const TensorInfo& tensor);

// Views point into `bytes`, which must outlive the File. Movable. Const access from any thread.
class File {
  public:
    // Pure: parses a whole file image. `name` is used in messages only.
    static base::Result<File> parse(std::span<const std::byte> bytes, std::string_view name);

    // The parts of a split model as one: metadata of the first, tensors of all. `names` (printable, one a part) must outlive the
    // result. A tensor that two parts have, and too many tensors, are errors; what else makes parts belong together is
    // model_files.h's to check.
    static base::Result<File> join(std::vector<File> parts, std::span<const std::string> names);

    uint32_t version() const { return version_; }
    uint64_t size_bytes() const { return size_bytes_; }  // of all parts
    uint64_t alignment() const { return alignment_; }
    std::span<const std::pair<std::string_view, Value>> metadata() const { return metadata_; }  // in file order
    std::span<const TensorInfo> tensors() const { return tensors_; }                           // in file order
    const Value* find(std::string_view key) const;           // null when absent
    const TensorInfo* find_tensor(std::string_view name) const;

    // Typed access. A missing key and a key of another kind are errors that name the key and its byte offset.
    // Integers accept any integer width whose value fits.
    base::Result<uint64_t> get_uint(std::string_view key) const;
    base::Result<double> get_float(std::string_view key) const;
    base::Result<bool> get_bool(std::string_view key) const;
    base::Result<std::string_view> get_string(std::string_view key) const;
    base::Result<std::vector<std::string_view>> get_strings(std::string_view key) const;
    base::Result<std::vector<int64_t>> get_ints(std::string_view key) const;  // any integer array, widened
    base::Result<std::vector<float>> get_floats(std::string_view key) const;

  private:
    uint64_t size_bytes_ = 0;
    uint32_t version_ = 0;
    uint64_t alignment_ = 32;
    std::vector<std::pair<std::string_view, Value>> metadata_;
    std::vector<TensorInfo> tensors_;
    // Indexes in ascending order of key and name. Sorted rather than hashed: a file cannot make lookups slow by choosing
    // names that collide.
    std::vector<uint32_t> metadata_order_, tensor_order_;
};

}  // namespace gguf
