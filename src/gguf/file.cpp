// The parser: one forward walk over the header, then the tensor directory against the size of the data section.
// Nothing is allocated in proportion to a number that the file merely claims: every count is first held against the
// bytes that are really left.
#include "gguf/file.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"

namespace gguf {
namespace {

using base::cat;

constexpr uint32_t magic = 0x46554747;  // "GGUF", little-endian
// The least bytes that an entry can take: key length, one byte of key, type, one byte of value;
// name length, one byte of name, n_dims, one dimension, type, offset.
constexpr uint64_t kv_bytes_min = 8 + 1 + 4 + 1;
constexpr uint64_t tensor_bytes_min = 8 + 1 + 4 + 8 + 4 + 8;

// Bytes of a scalar, 0 for a string, an array or a number that is no type.
uint64_t scalar_bytes(ValueType type) {
    switch (type) {
        case ValueType::u8:
        case ValueType::i8:
        case ValueType::boolean: return 1;
        case ValueType::u16:
        case ValueType::i16: return 2;
        case ValueType::u32:
        case ValueType::i32:
        case ValueType::f32: return 4;
        case ValueType::u64:
        case ValueType::i64:
        case ValueType::f64: return 8;
        case ValueType::string:
        case ValueType::array: return 0;
    }
    return 0;
}

template <typename T>
T load(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// out.data from the bytes of a scalar of out.type.
void set_scalar(Value& out, const std::byte* here) {
    switch (out.type) {
        case ValueType::u8: out.data = uint64_t{load<uint8_t>(here)}; break;
        case ValueType::u16: out.data = uint64_t{load<uint16_t>(here)}; break;
        case ValueType::u32: out.data = uint64_t{load<uint32_t>(here)}; break;
        case ValueType::u64: out.data = load<uint64_t>(here); break;
        case ValueType::i8: out.data = int64_t{load<int8_t>(here)}; break;
        case ValueType::i16: out.data = int64_t{load<int16_t>(here)}; break;
        case ValueType::i32: out.data = int64_t{load<int32_t>(here)}; break;
        case ValueType::i64: out.data = load<int64_t>(here); break;
        case ValueType::f32: out.data = double{load<float>(here)}; break;
        case ValueType::f64: out.data = load<double>(here); break;
        case ValueType::boolean: out.data = load<uint8_t>(here) != 0; break;
        case ValueType::string:
        case ValueType::array: CHECK(!"a scalar"); break;
    }
}

// What a message calls the thing being read: "value of 'general.name'", "element 3 of 'tokenizer.ggml.tokens'".
struct Field {
    std::string_view what;
    std::string_view of = {};  // a key or a tensor's name
    uint64_t index = UINT64_MAX;

    std::string text() const {
        std::string out(what);
        if (index != UINT64_MAX) out += cat(" ", index);
        if (!of.empty()) out += cat(" of '", base::printable(of), "'");
        return out;
    }
};

class Parser {
  public:
    Parser(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

    uint64_t at() const { return at_; }
    uint64_t left() const { return bytes_.size() - at_; }
    base::Error take_error() { return std::move(error_); }

    // Remembers the error and returns false, so that a caller can `return fail(...)`.
    bool fail(const Field& field, uint64_t at, std::string_view problem) {
        error_ = {base::ErrorCode::bad_file, cat(base::printable(name_, 200), ": ", field.text(), " at byte ", at, " ", problem), ""};
        return false;
    }

    // The next n bytes exist. Written so that no sum can wrap.
    bool need(uint64_t n, const Field& field) {
        if (n <= left()) return true;
        return fail(field, at_, cat("needs ", n, " bytes, but the file ends after ", left()));
    }

    template <typename T>
    bool number(T& out, const Field& field) {
        if (!need(sizeof(T), field)) return false;
        out = load<T>(bytes_.data() + at_);
        at_ += sizeof(T);
        return true;
    }

    bool string(std::string_view& out, uint64_t bytes_least, uint64_t bytes_most, const Field& field) {
        const uint64_t start = at_;
        uint64_t length;
        if (!number(length, field)) return false;
        if (length < bytes_least || length > bytes_most)
            return fail(field, start, cat("has a length of ", length, " bytes, allowed are ", bytes_least, " to ", bytes_most));
        if (!need(length, field)) return false;
        out = {reinterpret_cast<const char*>(bytes_.data() + at_), static_cast<size_t>(length)};
        at_ += length;
        return true;
    }

    bool skip(uint64_t n, const Field& field) {
        if (!need(n, field)) return false;
        at_ += n;
        return true;
    }

    bool value_type(ValueType& out, const Field& field) {
        const uint64_t start = at_;
        uint32_t type;
        if (!number(type, field)) return false;
        if (type > static_cast<uint32_t>(ValueType::f64)) return fail(field, start, cat("is ", type, ", allowed are 0 to 12"));
        out = static_cast<ValueType>(type);
        return true;
    }

    bool value(Value& out, std::string_view key);
    bool array(Array& out, std::string_view key);

    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::span<const std::byte> bytes_;
    std::string_view name_;
    uint64_t at_ = 0;
    base::Error error_;
};

bool Parser::array(Array& out, std::string_view key) {
    if (!value_type(out.element_type, {"array element type", key})) return false;
    if (out.element_type == ValueType::array)
        return fail({"array element type", key}, at_ - 4, "is 9 (an array of arrays), allowed are scalars and strings");
    const uint64_t count_at = at_;
    if (!number(out.count, {"array length", key})) return false;
    if (out.count > limits::gguf_array_elements)
        return fail({"array length", key}, count_at, cat("is ", out.count, " elements, allowed are 0 to ", limits::gguf_array_elements));
    const uint64_t start = at_;
    if (out.element_type == ValueType::string) {
        // Each string has at least its length: a false count is seen before the walk begins.
        if (!need(out.count * 8, {"array", key})) return false;
        for (uint64_t i = 0; i < out.count; ++i) {
            std::string_view element;
            if (!string(element, 0, limits::gguf_string_bytes, {"element", key, i})) return false;
        }
    } else {
        // At most 16 Mi elements of 8 bytes: no wrap.
        if (!skip(out.count * scalar_bytes(out.element_type), {"array", key})) return false;
        if (out.element_type == ValueType::boolean)
            for (uint64_t i = 0; i < out.count; ++i)
                if (const auto byte = static_cast<uint8_t>(bytes_[start + i]); byte > 1)
                    return fail({"element", key, i}, start + i, cat("is ", byte, ", allowed are 0 (false) and 1 (true)"));
    }
    out.bytes = bytes_.subspan(start, at_ - start);
    return true;
}

bool Parser::value(Value& out, std::string_view key) {
    if (!value_type(out.type, {"value type", key})) return false;
    out.offset = at_;
    const Field field{"value", key};
    if (out.type == ValueType::string) {
        std::string_view text;
        if (!string(text, 0, limits::gguf_string_bytes, field)) return false;
        out.data = text;
        return true;
    }
    if (out.type == ValueType::array) {
        Array array_value;
        if (!array(array_value, key)) return false;
        out.data = array_value;
        return true;
    }
    const std::byte* here = bytes_.data() + at_;
    if (!skip(scalar_bytes(out.type), field)) return false;
    if (out.type == ValueType::boolean && load<uint8_t>(here) > 1)
        return fail(field, out.offset, cat("is ", load<uint8_t>(here), ", allowed are 0 (false) and 1 (true)"));
    set_scalar(out, here);
    return true;
}

// The specification wants ASCII keys; a control character in one is refused as well, since keys are printed.
bool is_printable_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

bool is_tensor_name(std::string_view text) {
    return base::utf8::is_valid(text) && std::none_of(text.begin(), text.end(), [](char c) {
               return static_cast<uint8_t>(c) < 0x20 || c == 0x7f;
           });
}

struct Header {
    uint32_t version = 0;
    uint64_t n_tensors = 0, n_kv = 0;
};

bool parse_header(Parser& in, Header& out) {
    uint32_t first;
    if (!in.number(first, {"magic"})) return false;
    if (first != magic) {
        const auto* text = reinterpret_cast<const char*>(in.bytes().data());
        return in.fail({"magic"}, 0, cat("is \"", base::printable({text, 4}), "\", allowed is \"GGUF\""));
    }
    if (!in.number(out.version, {"version"})) return false;
    if (out.version == 0x02000000 || out.version == 0x03000000)
        return in.fail({"version"}, 4, "is that of a big-endian file, allowed are little-endian files of version 2 and 3");
    if (out.version != 2 && out.version != 3) return in.fail({"version"}, 4, cat("is ", out.version, ", allowed are 2 and 3"));
    if (!in.number(out.n_tensors, {"n_tensors"})) return false;
    if (out.n_tensors > limits::gguf_tensors_count)
        return in.fail({"n_tensors"}, 8, cat("is ", out.n_tensors, ", allowed are 0 to ", limits::gguf_tensors_count));
    if (!in.number(out.n_kv, {"n_kv"})) return false;
    if (out.n_kv > limits::gguf_kv_count)
        return in.fail({"n_kv"}, 16, cat("is ", out.n_kv, ", allowed are 0 to ", limits::gguf_kv_count));
    // Both products are small: the counts are within their limits.
    const uint64_t least = out.n_kv * kv_bytes_min + out.n_tensors * tensor_bytes_min;
    if (least > in.left())
        return in.fail({out.n_kv * kv_bytes_min > in.left() ? "n_kv" : "n_tensors"}, out.n_kv * kv_bytes_min > in.left() ? 16 : 8,
                       cat("claims ", out.n_kv, " entries and ", out.n_tensors, " tensors, which take at least ", least,
                           " bytes, but the file has ", in.left(), " more"));
    return true;
}

bool parse_tensor(Parser& in, TensorInfo& out, uint64_t index, uint64_t& offset_at, uint64_t& n_bytes) {
    const uint64_t start = in.at();
    if (!in.string(out.name, 1, limits::gguf_tensor_name_bytes, {"name of tensor", {}, index})) return false;
    if (!is_tensor_name(out.name))
        return in.fail({"name of tensor", {}, index}, start, "is not plain UTF-8, allowed is UTF-8 without control characters");
    const uint64_t dims_at = in.at();
    if (!in.number(out.n_dims, {"n_dims", out.name})) return false;
    if (out.n_dims < 1 || out.n_dims > limits::gguf_dims)
        return in.fail({"n_dims", out.name}, dims_at, cat("is ", out.n_dims, ", allowed are 1 to ", limits::gguf_dims));
    uint64_t n_elements = 1;
    for (uint32_t d = 0; d < out.n_dims; ++d) {
        const uint64_t at = in.at();
        const Field field{"dimension", out.name, d};
        if (!in.number(out.dims[d], field)) return false;
        // The product of all dimensions stays below 2^63, which also keeps it right in signed arithmetic elsewhere.
        if (out.dims[d] == 0 || __builtin_mul_overflow(n_elements, out.dims[d], &n_elements) || n_elements > INT64_MAX)
            return in.fail(field, at, cat("is ", out.dims[d], ", allowed are 1 and more, and a product of all dimensions below 2^63"));
    }
    const uint64_t type_at = in.at();
    uint32_t number;
    if (!in.number(number, {"type", out.name})) return false;
    const std::optional<quant::Type> type = quant::from_gguf_number(number);
    if (!type) {
        std::string known;
        for (const quant::TypeInfo& row : quant::type_infos) known += cat(known.empty() ? "" : " ", row.gguf_number, "=", row.name);
        return in.fail({"type", out.name}, type_at, cat("is ", number, ", allowed are ", known));
    }
    out.type = *type;
    const quant::TypeInfo& row = quant::info(*type);
    if (out.dims[0] % row.block_elements != 0)
        return in.fail({"dimension", out.name, 0}, dims_at + 4,
                       cat("is ", out.dims[0], ", allowed with type ", row.name, " are multiples of ", row.block_elements));
    if (__builtin_mul_overflow(n_elements / row.block_elements, uint64_t{row.block_bytes}, &n_bytes))
        return in.fail({"dimension", out.name, 0}, dims_at + 4, "gives a byte count above 2^64");
    offset_at = in.at();
    return in.number(out.offset, {"offset", out.name});
}

}  // namespace

Value element(const Array& array, uint64_t i) {
    CHECK_LT(i, array.count);
    Value out;
    out.type = array.element_type;
    set_scalar(out, array.bytes.data() + i * scalar_bytes(array.element_type));
    return out;
}

base::Result<File> File::parse(std::span<const std::byte> bytes, std::string_view name) {
    Parser in(bytes, name);
    Header header;
    if (!parse_header(in, header)) return in.take_error();
    File file;
    file.size_bytes_ = bytes.size();
    file.version_ = header.version;

    file.metadata_.reserve(header.n_kv);
    for (uint64_t i = 0; i < header.n_kv; ++i) {
        const uint64_t start = in.at();
        std::string_view key;
        if (!in.string(key, 1, limits::gguf_key_bytes, {"key", {}, i})) return in.take_error();
        if (!is_printable_ascii(key)) {
            in.fail({"key", {}, i}, start, "is not printable ASCII, which is all that is allowed in a key");
            return in.take_error();
        }
        Value value;
        if (!in.value(value, key)) return in.take_error();
        file.metadata_.emplace_back(key, value);
    }
    file.metadata_order_.resize(file.metadata_.size());
    std::iota(file.metadata_order_.begin(), file.metadata_order_.end(), 0u);
    std::sort(file.metadata_order_.begin(), file.metadata_order_.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(file.metadata_[a].first, a) < std::pair(file.metadata_[b].first, b);
    });
    for (size_t i = 1; i < file.metadata_order_.size(); ++i) {
        const auto& [key, value] = file.metadata_[file.metadata_order_[i]];
        if (key != file.metadata_[file.metadata_order_[i - 1]].first) continue;
        in.fail({"value", key}, value.offset, "is given twice, allowed is each key once");
        return in.take_error();
    }

    if (const Value* value = file.find("general.alignment")) {
        const auto* number = value->type == ValueType::u32 ? std::get_if<uint64_t>(&value->data) : nullptr;
        const bool fits = number && *number >= limits::gguf_alignment_min && *number <= limits::gguf_alignment_max &&
                          (*number & (*number - 1)) == 0;
        if (!fits) {
            const std::string actual = number ? cat("is ", *number) : cat("has value type ", static_cast<uint32_t>(value->type));
            in.fail({"value", "general.alignment"}, value->offset,
                    cat(actual, ", allowed is a u32 (value type 4), a power of two from ", limits::gguf_alignment_min, " to ",
                        limits::gguf_alignment_max));
            return in.take_error();
        }
        file.alignment_ = *number;
    }

    struct Extent {
        uint64_t offset = 0, n_bytes = 0, offset_at = 0;
        uint32_t tensor = 0;
    };
    // The header was checked as a whole, but the entries before may have eaten the bytes: the directory is held against
    // what is left now, so that its memory stays proportional to the file.
    if (header.n_tensors * tensor_bytes_min > in.left()) {
        in.fail({"n_tensors"}, 8, cat("is ", header.n_tensors, ", but only ", in.left(), " bytes are left for their directory"));
        return in.take_error();
    }
    std::vector<Extent> extents(header.n_tensors);
    file.tensors_.resize(header.n_tensors);
    for (uint64_t i = 0; i < header.n_tensors; ++i) {
        Extent& extent = extents[i];
        extent.tensor = static_cast<uint32_t>(i);
        if (!parse_tensor(in, file.tensors_[i], i, extent.offset_at, extent.n_bytes)) return in.take_error();
        extent.offset = file.tensors_[i].offset;
    }
    file.tensor_order_.resize(file.tensors_.size());
    std::iota(file.tensor_order_.begin(), file.tensor_order_.end(), 0u);
    std::sort(file.tensor_order_.begin(), file.tensor_order_.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(file.tensors_[a].name, a) < std::pair(file.tensors_[b].name, b);
    });
    for (size_t i = 1; i < file.tensor_order_.size(); ++i) {
        const uint32_t second = file.tensor_order_[i];
        if (file.tensors_[second].name != file.tensors_[file.tensor_order_[i - 1]].name) continue;
        in.fail({"offset", file.tensors_[second].name}, extents[second].offset_at, "belongs to a name that is given twice, allowed is each name once");
        return in.take_error();
    }
    if (header.n_tensors == 0) return file;

    // The data section begins at the next multiple of the alignment; at() is within the file, so nothing wraps.
    const uint64_t data_start = (in.at() + file.alignment_ - 1) / file.alignment_ * file.alignment_;
    if (data_start > bytes.size()) {
        in.fail({"tensor data"}, data_start, cat("would begin after the end of the file, which has ", bytes.size(), " bytes"));
        return in.take_error();
    }
    const uint64_t data_bytes = bytes.size() - data_start;
    for (const Extent& extent : extents) {
        TensorInfo& tensor = file.tensors_[extent.tensor];
        if (extent.offset % file.alignment_ != 0) {
            in.fail({"offset", tensor.name}, extent.offset_at, cat("is ", extent.offset, ", allowed are multiples of the alignment ", file.alignment_));
            return in.take_error();
        }
        if (extent.offset > data_bytes || extent.n_bytes > data_bytes - extent.offset) {
            in.fail({"offset", tensor.name}, extent.offset_at,
                    cat("is ", extent.offset, " for ", extent.n_bytes, " bytes, but the data section has ", data_bytes));
            return in.take_error();
        }
        tensor.offset = data_start + extent.offset;
        tensor.data = bytes.subspan(tensor.offset, extent.n_bytes);
    }
    // Tensors that share bytes would let a small file ask for any amount of memory once its weights are repacked.
    std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    for (size_t i = 1; i < extents.size(); ++i) {
        const Extent &before = extents[i - 1], &here = extents[i];
        if (here.offset - before.offset >= before.n_bytes) continue;
        in.fail({"offset", file.tensors_[here.tensor].name}, here.offset_at,
                cat("is ", here.offset, ", inside the data of '", base::printable(file.tensors_[before.tensor].name),
                    "', allowed are tensors that share no bytes"));
        return in.take_error();
    }
    return file;
}

}  // namespace gguf
