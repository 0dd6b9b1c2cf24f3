// The one table of tensor formats. Enum, sizes, names, --help and the tests' lists all come from its rows.
// Layouts and numbers: the public GGUF specification (ggml type ids); bit drawings are in blocks.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quant {

//        id       name      GGUF number, elements of a block, bytes of a block
#define QUANT_TYPES(X)              \
    X(f32,     "F32",      0,   1,   4) \
    X(f16,     "F16",      1,   1,   2) \
    X(q4_0,    "Q4_0",     2,  32,  18) \
    X(q4_1,    "Q4_1",     3,  32,  20) \
    X(q5_0,    "Q5_0",     6,  32,  22) \
    X(q5_1,    "Q5_1",     7,  32,  24) \
    X(q8_0,    "Q8_0",     8,  32,  34) \
    X(q2_k,    "Q2_K",    10, 256,  84) \
    X(q3_k,    "Q3_K",    11, 256, 110) \
    X(q4_k,    "Q4_K",    12, 256, 144) \
    X(q5_k,    "Q5_K",    13, 256, 176) \
    X(q6_k,    "Q6_K",    14, 256, 210) \
    X(iq4_nl,  "IQ4_NL",  20,  32,  18) \
    X(iq4_xs,  "IQ4_XS",  23, 256, 136) \
    X(bf16,    "BF16",    30,   1,   2)

enum class Type : uint8_t {
#define X(id, name, number, elements, bytes) id,
    QUANT_TYPES(X)
#undef X
};

struct TypeInfo {
    Type type;
    std::string_view name;
    uint32_t gguf_number;
    uint32_t block_elements;  // weights along a row that one block holds
    uint32_t block_bytes;
};

inline constexpr std::array type_infos = {
#define X(id, name, number, elements, bytes) TypeInfo{Type::id, name, number, elements, bytes},
    QUANT_TYPES(X)
#undef X
};

constexpr const TypeInfo& info(Type type) { return type_infos[static_cast<size_t>(type)]; }

constexpr std::optional<Type> from_gguf_number(uint32_t number) {
    for (const TypeInfo& row : type_infos)
        if (row.gguf_number == number) return row.type;
    return std::nullopt;
}

constexpr std::optional<Type> from_name(std::string_view name) {
    for (const TypeInfo& row : type_infos)
        if (row.name == name) return row.type;
    return std::nullopt;
}

// Bytes of `n` consecutive weights; n is a multiple of block_elements.
constexpr uint64_t row_bytes(Type type, uint64_t n) {
    return n / info(type).block_elements * info(type).block_bytes;
}

}  // namespace quant
