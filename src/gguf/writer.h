// Writes a GGUF file (v2 or v3): metadata in the order of the calls, then the tensors. Used by the tests' model
// builder and by the quantizer. The caller gives right values; a broken precondition (empty or duplicate key, a row
// length that is no multiple of the block, data of another size than the shape says) is CHECKed.
// Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "quant/types.h"

namespace gguf {

class Writer {
  public:
    // `alignment` is a power of two within the limits; another one than 32 is written as general.alignment.
    explicit Writer(uint32_t alignment = 32, uint32_t version = 3);

    void add_u8(std::string_view key, uint8_t value) { scalar(key, ValueType::u8, value); }
    void add_i8(std::string_view key, int8_t value) { scalar(key, ValueType::i8, value); }
    void add_u16(std::string_view key, uint16_t value) { scalar(key, ValueType::u16, value); }
    void add_i16(std::string_view key, int16_t value) { scalar(key, ValueType::i16, value); }
    void add_u32(std::string_view key, uint32_t value) { scalar(key, ValueType::u32, value); }
    void add_i32(std::string_view key, int32_t value) { scalar(key, ValueType::i32, value); }
    void add_u64(std::string_view key, uint64_t value) { scalar(key, ValueType::u64, value); }
    void add_i64(std::string_view key, int64_t value) { scalar(key, ValueType::i64, value); }
    void add_f32(std::string_view key, float value) { scalar(key, ValueType::f32, value); }
    void add_f64(std::string_view key, double value) { scalar(key, ValueType::f64, value); }
    void add_bool(std::string_view key, bool value) { scalar(key, ValueType::boolean, static_cast<uint8_t>(value)); }
    void add_string(std::string_view key, std::string_view value);
    void add_strings(std::string_view key, std::span<const std::string> values);
    // Elements as they lie in memory; T is the C++ type of element_type (uint8_t for boolean).
    template <typename T>
    void add_array(std::string_view key, ValueType element_type, std::span<const T> values) {
        array(key, element_type, values.size(), std::as_bytes(values));
    }
    // A value that a parser gave, bit for bit (for copying metadata from one file to another).
    void add_value(std::string_view key, const Value& value);

    // dims[0] is the row length. `data` must stay alive until the file is written.
    void add_tensor(std::string_view name, quant::Type type, std::span<const uint64_t> dims, std::span<const std::byte> data);
    // The same, with data made when its turn comes; the returned span must live until the next call of a producer.
    using Producer = std::function<std::span<const std::byte>()>;
    void add_tensor(std::string_view name, quant::Type type, std::span<const uint64_t> dims, Producer producer);

    // The same, in pieces: the stream gives all bytes of the tensor to the sink, in order. An error ends the writing and is
    // what write() returns; so is a sink that takes no more.
    using Sink = std::function<bool(std::span<const std::byte>)>;
    using Stream = std::function<base::Result<void>(const Sink& sink)>;
    void add_streamed_tensor(std::string_view name, quant::Type type, std::span<const uint64_t> dims, Stream stream);

    // The whole file through `sink`, in order; false from it stops and is reported as an io error.
    base::Result<void> write(const Sink& sink) const;
    // The whole file in memory.
    std::vector<std::byte> bytes() const;
    // Into partial_path(path), flushed to the disk, then renamed over PATH: a reader never sees half a file. `check` looks at
    // the finished partial file before it takes the name; its error, like any other, removes it.
    using Check = std::function<base::Result<void>(const std::string& partial)>;
    base::Result<void> write_file(const std::string& path, const Check& check = {}) const;
    static std::string partial_path(const std::string& path) { return path + ".partial"; }

  private:
    struct Tensor {
        std::string name;
        quant::Type type;
        std::vector<uint64_t> dims;
        uint64_t n_bytes = 0;
        Stream stream;
    };

    template <typename T>
    void scalar(std::string_view key, ValueType type, T value) {
        begin_value(key, type);
        put(value);
    }
    template <typename T>
    void put(T value) {
        const auto* raw = reinterpret_cast<const std::byte*>(&value);
        metadata_.insert(metadata_.end(), raw, raw + sizeof value);
    }
    void put_string(std::string_view text);
    void put_bytes(std::span<const std::byte> raw);
    void begin_value(std::string_view key, ValueType type);
    void array(std::string_view key, ValueType element_type, uint64_t count, std::span<const std::byte> raw);

    uint32_t alignment_, version_;
    uint64_t n_kv_ = 0;
    std::vector<std::byte> metadata_;  // entries as they go to the file
    std::vector<Tensor> tensors_;
    std::set<std::string, std::less<>> keys_, names_;
};

}  // namespace gguf
