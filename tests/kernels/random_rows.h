// Random rows of any tensor format, and a small generator, for the tests of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/mix.h"
#include "quant/codec.h"
#include "quant/types.h"

namespace kernels_test {

class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * base::golden_gamma + 1) {}
    uint64_t next() { return base::next_mixed(state_); }
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(next() % n); }
    float uniform() { return static_cast<float>(static_cast<double>(next() >> 11) * 0x1p-53 * 2 - 1); }  // [-1, 1)
    // Roughly normal, with a heavy tail now and then, as activations are.
    float activation() {
        const float x = uniform() + uniform() + uniform();
        return below(64) == 0 ? x * 20 : x;
    }

  private:
    uint64_t state_;
};

template <quant::Type type>
void fill_blocks(Random& random, std::byte* out, uint64_t blocks) {
    using Block = typename quant::Codec<type>::Block;
    for (uint64_t i = 0; i < blocks; ++i) {
        Block block;
        auto* bytes = reinterpret_cast<uint8_t*>(&block);
        for (size_t j = 0; j < sizeof block; ++j) bytes[j] = static_cast<uint8_t>(random.next());
        if constexpr (requires { block.value; }) {
            if constexpr (sizeof block.value == 4) block.value = random.uniform();
            else block.value = type == quant::Type::f16 ? quant::f32_to_f16(random.uniform()) : quant::f32_to_bf16(random.uniform());
        } else {
            block.d = quant::f32_to_f16(random.uniform() * 0.02f);
            if constexpr (requires { block.m; }) block.m = quant::f32_to_f16(random.uniform() * 0.1f);
            if constexpr (requires { block.dmin; }) block.dmin = quant::f32_to_f16(random.uniform() * 0.02f);
        }
        std::memcpy(out + i * sizeof block, &block, sizeof block);
    }
}

// rows x cols weights of `type` with small finite scales; the data starts `shift` bytes into the vector.
inline std::vector<std::byte> random_rows(quant::Type type, uint64_t rows, uint64_t cols, Random& random, size_t shift = 0) {
    std::vector<std::byte> bytes(shift + rows * quant::row_bytes(type, cols));
    const uint64_t blocks = rows * cols / quant::info(type).block_elements;
    switch (type) {
#define X(id, name, number, elements, block_bytes) \
    case quant::Type::id: fill_blocks<quant::Type::id>(random, bytes.data() + shift, blocks); break;
        QUANT_TYPES(X)
#undef X
    }
    return bytes;
}

}  // namespace kernels_test
