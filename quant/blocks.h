// One block of each tensor format, byte for byte as it lies in a GGUF file (little-endian, no padding).
// Source of the layouts: the public GGUF/ggml format (type ids and block definitions), checked against the
// decoder of the PyPI package `gguf`, which tests/quant compares with bit for bit.
//
// The structs are packed, so alignof is 1 and any byte address may be viewed as a block.
// How to read the drawings: w[i] is weight i of the block, `lo`/`hi` the low and high nibble of a byte,
// bits are numbered from the least significant one.
#pragma once

#include <cstdint>

#include "quant/types.h"

namespace quant {

#define HEARTH_PACKED __attribute__((packed))

struct HEARTH_PACKED BlockF32 {
    float value;
};

struct HEARTH_PACKED BlockF16 {
    uint16_t value;  // fp16 bits
};

struct HEARTH_PACKED BlockBF16 {
    uint16_t value;  // the upper 16 bits of an fp32
};

// The 32-element formats put w[j] into the low and w[j + 16] into the high nibble of qs[j]:
//
//   qs[0]        qs[1]        ...  qs[15]
//   hi    lo     hi    lo          hi    lo
//   w16   w0     w17   w1          w31   w15

// w = d * (q - 8)
struct HEARTH_PACKED BlockQ4_0 {
    uint16_t d;      // fp16
    uint8_t qs[16];  // nibbles as drawn above
};

// w = d * q + m
struct HEARTH_PACKED BlockQ4_1 {
    uint16_t d, m;   // fp16
    uint8_t qs[16];  // nibbles as drawn above
};

// w = d * (q - 16), q = nibble | bit i of qh << 4
struct HEARTH_PACKED BlockQ5_0 {
    uint16_t d;      // fp16
    uint8_t qh[4];   // fifth bits: w[i] has bit i % 8 of qh[i / 8], that is bit i of a little-endian u32
    uint8_t qs[16];  // low four bits, nibbles as drawn above
};

// w = d * q + m, q as in Q5_0
struct HEARTH_PACKED BlockQ5_1 {
    uint16_t d, m;   // fp16
    uint8_t qh[4];   // fifth bits
    uint8_t qs[16];  // low four bits
};

// w = d * q
struct HEARTH_PACKED BlockQ8_0 {
    uint16_t d;     // fp16
    int8_t qs[32];  // w[i] in order
};

// w = d * LUT[q], LUT = the 16 values of iq4_values (codec.h)
struct HEARTH_PACKED BlockIQ4_NL {
    uint16_t d;      // fp16
    uint8_t qs[16];  // indexes, nibbles as drawn above
};

// The 256-element formats. Two-bit codes come in halves of 128 weights and 32 bytes: byte j of half h holds, from
// the lowest bits up, w[128 h + j], w[128 h + 32 + j], w[128 h + 64 + j], w[128 h + 96 + j]:
//
//   bits   7 6    5 4    3 2    1 0
//          w+96   w+64   w+32   w         w = 128 h + j, j = 0..31

// 16 groups of 16: w = (d * scale) * q - (dmin * min)
struct HEARTH_PACKED BlockQ2_K {
    uint8_t scales[16];  // group g = i / 16: lo = scale, hi = min
    uint8_t qs[64];      // two-bit codes as drawn above
    uint16_t d, dmin;    // fp16
};

// 16 groups of 16: w = (d * (scale - 32)) * (q - 4), q = two bits | high bit << 2
struct HEARTH_PACKED BlockQ3_K {
    uint8_t hmask[32];  // w[i] has bit i / 32 of hmask[i % 32]
    uint8_t qs[64];     // low two bits as drawn above
    // Six-bit scales s0..s15. Bytes 0-7 carry the low four bits: lo of byte k = s(k), hi = s(k + 8).
    // Bytes 8-11 carry the high two bits: byte 8 + k has, from the lowest up, s(k), s(k + 4), s(k + 8), s(k + 12).
    uint8_t scales[12];
    uint16_t d;  // fp16
};

// Scales s0..s7 and mins m0..m7 of Q4_K and Q5_K, six bits each, in twelve bytes (k = 0..3):
//
//   byte k      bits 5-0 = s(k)             bits 7-6 = bits 5-4 of s(k + 4)
//   byte k + 4  bits 5-0 = m(k)             bits 7-6 = bits 5-4 of m(k + 4)
//   byte k + 8  lo = bits 3-0 of s(k + 4)   hi = bits 3-0 of m(k + 4)

// 8 groups of 32: w = (d * s) * q - (dmin * m)
struct HEARTH_PACKED BlockQ4_K {
    uint16_t d, dmin;    // fp16
    uint8_t scales[12];  // as drawn above
    uint8_t qs[128];     // group pair p = i / 64: lo of qs[32 p + j] = w[64 p + j], hi = w[64 p + 32 + j]
};

// As Q4_K with a fifth bit.
struct HEARTH_PACKED BlockQ5_K {
    uint16_t d, dmin;    // fp16
    uint8_t scales[12];  // as drawn above
    uint8_t qh[32];      // fifth bits: group g = i / 32 has bit g of qh[i % 32]
    uint8_t qs[128];     // low four bits, as Q4_K
};

// 16 groups of 16: w = (d * scale) * (q - 32), q = nibble | two bits << 4
struct HEARTH_PACKED BlockQ6_K {
    uint8_t ql[128];    // half h = i / 128: lo of ql[64 h + j] = w[128 h + j], hi = w[128 h + 64 + j], j = 0..63
    uint8_t qh[64];     // high two bits, as the two-bit codes drawn above
    int8_t scales[16];  // group g = i / 16
    uint16_t d;         // fp16
};

// 8 groups of 32: w = (d * (scale - 32)) * LUT[q]
struct HEARTH_PACKED BlockIQ4_XS {
    uint16_t d;           // fp16
    uint16_t scales_h;    // high two bits of group g's six-bit scale: bits 2g and 2g + 1
    uint8_t scales_l[4];  // low four bits: lo of byte k = group 2k, hi = group 2k + 1
    uint8_t qs[128];      // group g: lo of qs[16 g + j] = w[32 g + j], hi = w[32 g + 16 + j]
};

// BlockOf<Type::q4_0>::type is BlockQ4_0, and so on.
template <Type>
struct BlockOf;

#define HEARTH_BLOCK(id, Struct)                                                                            \
    template <>                                                                                             \
    struct BlockOf<Type::id> {                                                                              \
        using type = Struct;                                                                                \
    };                                                                                                      \
    static_assert(sizeof(Struct) == info(Type::id).block_bytes, #Struct " must be as long as in the file"); \
    static_assert(alignof(Struct) == 1);

HEARTH_BLOCK(f32, BlockF32)
HEARTH_BLOCK(f16, BlockF16)
HEARTH_BLOCK(bf16, BlockBF16)
HEARTH_BLOCK(q4_0, BlockQ4_0)
HEARTH_BLOCK(q4_1, BlockQ4_1)
HEARTH_BLOCK(q5_0, BlockQ5_0)
HEARTH_BLOCK(q5_1, BlockQ5_1)
HEARTH_BLOCK(q8_0, BlockQ8_0)
HEARTH_BLOCK(q2_k, BlockQ2_K)
HEARTH_BLOCK(q3_k, BlockQ3_K)
HEARTH_BLOCK(q4_k, BlockQ4_K)
HEARTH_BLOCK(q5_k, BlockQ5_K)
HEARTH_BLOCK(q6_k, BlockQ6_K)
HEARTH_BLOCK(iq4_nl, BlockIQ4_NL)
HEARTH_BLOCK(iq4_xs, BlockIQ4_XS)
#undef HEARTH_BLOCK

}  // namespace quant
