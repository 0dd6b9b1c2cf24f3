// GGUF bytes by hand, for files that no writer would write. Little-endian; nothing is checked.
//
//     GgufBytes b;
//     b.header(3, 0, 1).kv_u32("general.alignment", 0);
//     File::parse(b.bytes(), "bad");
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace support {

class GgufBytes {
  public:
    template <typename T>
    GgufBytes& put(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto* raw = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), raw, raw + sizeof value);
        return *this;
    }
    GgufBytes& raw(std::string_view text) {
        const auto view = std::as_bytes(std::span(text));
        bytes_.insert(bytes_.end(), view.begin(), view.end());
        return *this;
    }
    GgufBytes& string(std::string_view text) { return put(uint64_t{text.size()}).raw(text); }
    // 24 bytes: what follows begins at byte 24.
    GgufBytes& header(uint32_t version, uint64_t n_tensors, uint64_t n_kv) {
        return raw("GGUF").put(version).put(n_tensors).put(n_kv);
    }
    GgufBytes& key(std::string_view name, uint32_t value_type) { return string(name).put(value_type); }
    GgufBytes& kv_u32(std::string_view name, uint32_t value) { return key(name, 4).put(value); }
    GgufBytes& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset) {
        string(name).put(static_cast<uint32_t>(dims.size()));
        for (const uint64_t dim : dims) put(dim);
        return put(type).put(offset);
    }
    GgufBytes& zeros(size_t n) {
        bytes_.resize(bytes_.size() + n);
        return *this;
    }
    GgufBytes& align(size_t unit) { return zeros((unit - bytes_.size() % unit) % unit); }

    size_t size() const { return bytes_.size(); }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

}  // namespace support
