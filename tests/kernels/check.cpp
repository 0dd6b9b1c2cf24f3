// Every kernel of every ISA against the scalar definition, bit for bit, at odd sizes and misaligned starts; the scalar definition
// against double-precision formulas and quant/codec.h. `check --bench` times each kernel of each ISA in the same loops.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/select.h"
#include "quant/quantize.h"
#include "random_rows.h"

namespace {

using namespace kernels;
using namespace kernels::cpu;
using kernels_test::Random;
using kernels_test::random_rows;

std::vector<std::string> isas() {
    std::vector<std::string> list;
    for (std::string_view name : known_isas())
        if (isa_runs_here(name)) list.emplace_back(name);
    return list;
}

const KernelTable& table_of(std::string_view isa) {
    static std::vector<std::pair<std::string, KernelTable>> tables;
    for (const auto& entry : tables)
        if (entry.first == isa) return entry.second;
    tables.reserve(16);
    tables.emplace_back(std::string(isa), make_table(*select_isa(isa).value()));
    return tables.back().second;
}

bool same_bits(const float* a, const float* b, size_t n) { return std::memcmp(a, b, n * sizeof(float)) == 0; }

struct AlignedFree {
    void operator()(std::byte* p) const { std::free(p); }
};
using Aligned = std::unique_ptr<std::byte, AlignedFree>;
Aligned aligned(size_t bytes) { return Aligned(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) & ~size_t{63}))); }

// A repacked random matrix with its decoded rows.
struct Weights {
    PanelMatrix panels;
    Aligned memory;
    std::vector<float> decoded;  // (rows, cols)

    Weights(quant::Type type, uint32_t rows, uint32_t cols, Random& random) : panels(panel_shape(type, rows, cols)) {
        const size_t shift = random.below(4);
        const std::vector<std::byte> source = random_rows(type, rows, cols, random, shift);
        memory = aligned(panel_matrix_bytes(panels));
        std::memset(memory.get(), 0xff, panel_matrix_bytes(panels));  // what repacking leaves out would show
        EXPECT_EQ(fill_panels(panels, memory.get(), source.data() + shift, 0, panels.n_panels), -1);
        panels.data = memory.get();
        decoded.resize(size_t{rows} * cols);
        quant::dequantize_row(type, source.data() + shift, decoded.data(), decoded.size());
    }
};

// One column tile, prepared by the kernels of `table`.
struct Input {
    std::vector<float> x;  // (columns, cols)
    std::vector<int8_t> codes;
    std::vector<float> scale, sum, sum_halves, values;
    std::vector<int32_t> minus, minus_halves;
    uint32_t columns, cols, levels;

    Input(const KernelTable& table, std::vector<float> from, uint32_t n_columns, uint32_t n_cols, uint32_t n_levels)
        : x(std::move(from)), columns(n_columns), cols(n_cols), levels(n_levels) {
        const uint32_t blocks = cols / block_k;
        values.resize(size_t{columns} * cols);
        for (uint32_t c = 0; c < columns; ++c)
            for (uint32_t k = 0; k < cols; ++k) values[size_t{k} * columns + c] = x[size_t{c} * cols + k];
        if (cols % block_k != 0) return;
        codes.resize(size_t{columns} * cols * levels);
        scale.resize(size_t{columns} * blocks);
        sum.resize(scale.size());
        minus.resize(scale.size());
        sum_halves.resize(2 * scale.size());
        minus_halves.resize(2 * scale.size());
        table.quantize({x.data(), cols, columns, blocks, levels, {codes.data(), scale.data(), sum.data(), minus.data(), sum_halves.data(), minus_halves.data()}});
    }
    ActivationTile tile(Form form) const {
        const bool halves = info(form).sub_block == 16;
        return {columns, levels, codes.data(), scale.data(), halves ? sum_halves.data() : sum.data(), halves ? minus_halves.data() : minus.data(), values.data()};
    }
    // What column c means after quantization (or exactly, for the float forms).
    double value(Form form, uint32_t c, uint32_t k) const {
        if (!info(form).integer()) return x[size_t{c} * cols + k];
        return double{scale[size_t{k / block_k} * columns + c]} * code(c, k);
    }
    // 8 bits, or 16: 256 hi + lo.
    int code(uint32_t c, uint32_t k) const {
        const int8_t* at = codes.data() + (size_t{k / block_k} * levels * columns + c) * block_k + k % block_k;
        return levels == 1 ? at[0] : 256 * at[0] + at[size_t{columns} * block_k];
    }
};

std::vector<float> random_floats(size_t n, Random& random) {
    std::vector<float> v(n);
    for (float& f : v) f = random.activation();
    return v;
}

std::vector<float> multiply(const KernelTable& table, const PanelMatrix& w, const Input& input, const std::vector<float>* add_to = nullptr) {
    std::vector<float> out(size_t{input.columns} * w.rows + 1, 12345.0f);
    if (add_to) std::memcpy(out.data(), add_to->data(), add_to->size() * sizeof(float));
    MatmulArgs a;
    a.panels = w.data;
    a.panel_bytes = w.panel_bytes;
    a.meta_offset = w.meta_offset;
    a.n_panels = w.n_panels;
    a.n_blocks = w.n_blocks;
    a.cols = w.cols;
    a.x = input.tile(w.form);
    a.out = out.data();
    a.out_stride = w.rows;
    a.rows = w.rows;
    a.add = add_to != nullptr;
    table.matmul[static_cast<size_t>(w.form)](a);
    EXPECT_EQ(out.back(), 12345.0f) << "wrote behind the last row";
    out.pop_back();
    return out;
}

// --- panels ---------------------------------------------------------------------------------------------

TEST(Panels, DecodeToTheFormatsDefinition) {
    Random random(1);
    for (const quant::TypeInfo& row : quant::type_infos) {
        for (uint32_t rows : {1u, 15u, 16u, 17u, 40u}) {
            const uint32_t cols = row.block_elements == 1 ? 37 : row.block_elements * 3;
            const Weights w(row.type, rows, cols, random);
            std::vector<float> decoded(cols);
            for (uint32_t r = 0; r < rows; ++r) {
                decode_row(w.panels, r, decoded.data());
                ASSERT_TRUE(same_bits(decoded.data(), w.decoded.data() + size_t{r} * cols, cols)) << row.name << " row " << r << " of " << rows;
            }
        }
    }
}

template <quant::Type type>
void expect_refusal(uint16_t bad_half) {
    using Block = typename quant::Codec<type>::Block;
    Random random(2);
    const uint32_t cols = quant::info(type).block_elements * 2, rows = 20, bad_row = 18;
    std::vector<std::byte> source = random_rows(type, rows, cols, random);
    Block block;
    std::byte* at = source.data() + (bad_row + 1) * quant::row_bytes(type, cols) - sizeof block;  // the last block of the row
    std::memcpy(&block, at, sizeof block);
    if constexpr (requires { block.value; }) {
        if constexpr (sizeof block.value == 4) block.value = quant::f16_to_f32(bad_half);
        else block.value = type == quant::Type::f16 ? bad_half : quant::f32_to_bf16(quant::f16_to_f32(bad_half));
    } else if constexpr (requires { block.dmin; }) {
        block.dmin = bad_half;
        for (auto& s : block.scales) s = 0x7f;  // a min of zero would still give NaN, but let it be plain
    } else if constexpr (requires { block.m; }) {
        block.m = bad_half;
    } else {
        block.d = bad_half;
    }
    std::memcpy(at, &block, sizeof block);
    const PanelMatrix shape = panel_shape(type, rows, cols);
    Aligned memory = aligned(panel_matrix_bytes(shape));
    EXPECT_EQ(fill_panels(shape, memory.get(), source.data(), 0, shape.n_panels), bad_row) << quant::info(type).name;
}

TEST(Panels, RefuseNanAndInfiniteScales) {
    for (uint16_t bad : {uint16_t{0x7c00}, uint16_t{0xfc00}, uint16_t{0x7e00}, uint16_t{0x7c01}}) {
#define X(id, name, number, elements, bytes) expect_refusal<quant::Type::id>(bad);
        QUANT_TYPES(X)
#undef X
    }
}

// --- products -------------------------------------------------------------------------------------------

TEST(Matmul, ScalarMatchesDoublePrecision) {
    Random random(3);
    for (const quant::TypeInfo& row : quant::type_infos) {
        const uint32_t cols = row.block_elements == 1 ? 101 : 512, rows = 21, columns = 3;
        const Weights w(row.type, rows, cols, random);
        for (uint32_t levels : {1u, 2u}) {
        const Input input(table_of("scalar"), random_floats(size_t{columns} * cols, random), columns, cols, levels);
        const std::vector<float> out = multiply(table_of("scalar"), w.panels, input);
        for (uint32_t c = 0; c < columns; ++c)
            for (uint32_t r = 0; r < rows; ++r) {
                double exact = 0, magnitude = 0;
                for (uint32_t k = 0; k < cols; ++k) {
                    const double product = double{w.decoded[size_t{r} * cols + k]} * input.value(w.panels.form, c, k);
                    exact += product;
                    magnitude += std::abs(product);
                }
                // fp32 accumulation of at most 512 terms: far inside 1e-5 of the sum of magnitudes (offsets and products partly cancel).
                ASSERT_NEAR(out[size_t{c} * rows + r], exact, 1e-5 * magnitude + 1e-6) << row.name << " column " << c << " row " << r;
            }
        }
    }
}

TEST(Matmul, EveryIsaEqualsScalarBitForBit) {
    Random random(4);
    for (const std::string& isa : isas()) {
        const KernelTable& table = table_of(isa);
        for (const quant::TypeInfo& row : quant::type_infos) {
            for (uint32_t rows : {1u, 8u, 9u, 16u, 31u, 48u, 83u, 112u}) {
                for (uint32_t columns = 1; columns <= table.tile_columns; ++columns) {
                    const uint32_t cols = row.block_elements == 1 ? 1 + random.below(70) : row.block_elements * (1 + random.below(row.block_elements == 32 ? 20 : 3));
                    const Weights w(row.type, rows, cols, random);
                    const std::vector<float> x = random_floats(size_t{columns} * cols, random);
                    const uint32_t levels = 1 + random.below(2);
                    const Input ours(table, x, columns, cols, levels), reference(table_of("scalar"), x, columns, cols, levels);
                    const std::vector<float> base = random_floats(size_t{columns} * rows, random);
                    for (const std::vector<float>* add_to : {static_cast<const std::vector<float>*>(nullptr), &base}) {
                        const std::vector<float> a = multiply(table, w.panels, ours, add_to), b = multiply(table_of("scalar"), w.panels, reference, add_to);
                        ASSERT_TRUE(same_bits(a.data(), b.data(), a.size())) << isa << " " << row.name << " rows " << rows << " columns " << columns << " cols " << cols;
                    }
                    // A column alone has the bits it has in the tile.
                    const uint32_t c = random.below(columns);
                    const Input alone(table, {x.begin() + c * cols, x.begin() + (c + 1) * cols}, 1, cols, levels);
                    const std::vector<float> all = multiply(table, w.panels, ours), one = multiply(table, w.panels, alone);
                    ASSERT_TRUE(same_bits(all.data() + size_t{c} * rows, one.data(), rows)) << isa << " " << row.name;
                }
            }
        }
    }
}

// The largest codes on both sides: what saturates in 16 bits would show.
TEST(Matmul, ExtremeCodesDoNotSaturate) {
    const uint32_t cols = 256, rows = 16;
    for (const std::string& isa : isas()) {
        for (const quant::TypeInfo& row : quant::type_infos) {
            if (row.block_elements == 1) continue;
            for (int pattern : {0x00, 0xff, 0x80, 0x7f}) {
                std::vector<std::byte> source(rows * quant::row_bytes(row.type, cols), static_cast<std::byte>(pattern));
                // Scales: 1 wherever a block has them.
                for (size_t at = 0; at < source.size(); at += row.block_bytes) {
                    const uint16_t one = 0x3c00;
                    const auto set = [&](size_t field) { std::memcpy(source.data() + at + field, &one, 2); };
                    switch (row.type) {
                        case quant::Type::q2_k: set(80); set(82); break;
                        case quant::Type::q3_k: set(108); break;
                        case quant::Type::q6_k: set(208); break;
                        case quant::Type::q4_1: case quant::Type::q5_1: case quant::Type::q4_k: case quant::Type::q5_k: set(0); set(2); break;
                        default: set(0); break;
                    }
                }
                PanelMatrix w = panel_shape(row.type, rows, cols);
                Aligned memory = aligned(panel_matrix_bytes(w));
                ASSERT_EQ(fill_panels(w, memory.get(), source.data(), 0, w.n_panels), -1) << row.name;
                w.data = memory.get();
                // 0.99803: both levels of the block's other codes at their end (126 * 256 + 127 and so on).
                for (float value : {1.0f, -1.0f, 0.99803f, -0.99803f}) {
                    std::vector<float> x(cols, value);
                    for (uint32_t k = 0; k < cols; k += 32) x[k] = 1.0f;
                    const Input input(table_of(isa), x, 1, cols, 2);
                    const std::vector<float> ours = multiply(table_of(isa), w, input), reference = multiply(table_of("scalar"), w, input);
                    ASSERT_TRUE(same_bits(ours.data(), reference.data(), rows)) << isa << " " << row.name << " pattern " << pattern << " " << ours[0] << " " << reference[0];
                }
            }
        }
    }
}

// --- quantization of activations ------------------------------------------------------------------------

TEST(Quantize, ScalarIsNearestWithOneScalePerBlock) {
    Random random(5);
    const uint32_t cols = 96, columns = 3;
    for (uint32_t levels : {1u, 2u}) {
    const Input input(table_of("scalar"), random_floats(columns * cols, random), columns, cols, levels);
    for (uint32_t c = 0; c < columns; ++c)
        for (uint32_t b = 0; b < cols / 32; ++b) {
            const size_t at = b * columns + c;
            float peak = 0;
            for (uint32_t k = 0; k < 32; ++k) peak = std::max(peak, std::abs(input.x[c * cols + b * 32 + k]));
            EXPECT_FLOAT_EQ(input.scale[at], peak / 127 / (levels == 2 ? 256 : 1));
            int sum = 0;
            for (uint32_t k = 0; k < 32; ++k) {
                const int code = input.code(c, b * 32 + k);
                // Half a step; with two levels one more where lo is kept from reaching 128.
                EXPECT_NEAR(code, input.x[c * cols + b * 32 + k] / input.scale[at], levels == 2 ? 1.01 : 0.5001);
                EXPECT_LE(std::abs(code), levels == 2 ? 127 * 257 : 127);
                sum += code;
            }
            EXPECT_EQ(input.minus[at], -8 * sum);
            EXPECT_FLOAT_EQ(input.sum[at], input.scale[at] * static_cast<float>(sum));
            EXPECT_EQ(input.minus_halves[b * 2 * columns + c] + input.minus_halves[(b * 2 + 1) * columns + c], -8 * sum);
        }
    for (int8_t code : input.codes) EXPECT_GE(code, -127);
    }
}

TEST(Quantize, EveryIsaEqualsScalarBitForBit) {
    Random random(6);
    const FloatMode mode;
    for (const std::string& isa : isas()) {
        for (int round = 0; round < 200; ++round) {
            const uint32_t cols = 32 * (1 + random.below(4)), columns = 1 + random.below(5);
            std::vector<float> x = random_floats(columns * cols, random);
            switch (round % 8) {
                case 0: for (float& f : x) f *= 1e-30f; break;
                case 1: for (float& f : x) f *= 1e-37f; break;    // below the smallest block
                case 2: for (float& f : x) f *= 1e30f; break;
                case 3: std::fill(x.begin(), x.begin() + 32, 0.0f); break;
                case 4: for (float& f : x) f = static_cast<float>(static_cast<int>(random.below(255)) - 127) + 0.5f; break;  // ties
                default: break;
            }
            const uint32_t levels = 1 + random.below(2);
            const Input a(table_of(isa), x, columns, cols, levels), b(table_of("scalar"), x, columns, cols, levels);
            ASSERT_EQ(a.codes, b.codes) << isa << " round " << round;
            ASSERT_TRUE(same_bits(a.scale.data(), b.scale.data(), a.scale.size())) << isa;
            ASSERT_TRUE(same_bits(a.sum.data(), b.sum.data(), a.sum.size())) << isa;
            ASSERT_TRUE(same_bits(a.sum_halves.data(), b.sum_halves.data(), a.sum_halves.size())) << isa;
            ASSERT_EQ(a.minus, b.minus) << isa;
            ASSERT_EQ(a.minus_halves, b.minus_halves) << isa;
        }
    }
}

TEST(Quantize, NanAndInfinitySpoilTheScale) {
    for (const std::string& isa : isas())
        for (float bad : {std::nanf(""), -std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
            std::vector<float> x(64, 1.0f);
            x[40] = bad;
            const Input input(table_of(isa), x, 1, 64, 2);
            EXPECT_FALSE(std::isfinite(input.scale[1])) << isa;
            EXPECT_TRUE(std::isfinite(input.scale[0])) << isa;
        }
}

// --- elementwise ----------------------------------------------------------------------------------------

TEST(Elementwise, ScalarMatchesDoublePrecision) {
    Random random(7);
    const KernelTable& t = table_of("scalar");
    const size_t n = 4001;
    std::vector<float> gate(n), up(n), out(n);
    for (size_t i = 0; i < n; ++i) {
        gate[i] = (static_cast<float>(i) - 2000) * 0.03f;  // -60 to 60
        up[i] = random.uniform() * 3;
    }
    t.activate_mul[0](gate.data(), up.data(), out.data(), n);
    for (size_t i = 0; i < n; ++i) {
        const double exact = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
        ASSERT_NEAR(out[i], exact, 4e-7 * std::abs(exact) + 1e-30) << gate[i];
    }
    t.activate_mul[static_cast<size_t>(Activation::gelu_tanh)](gate.data(), up.data(), out.data(), n);
    for (size_t i = 0; i < n; ++i) {
        const double g = gate[i], exact = 0.5 * g * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g))) * up[i];
        // Where tanh is near -1 the exact formula itself cancels in double: an absolute error of 1e-16 |g|.
        ASSERT_NEAR(out[i], exact, 3e-6 * std::abs(exact) + 1e-14) << gate[i];
    }
    std::vector<float> capped = gate;
    t.soft_cap(capped.data(), 30.0f, n);
    for (size_t i = 0; i < n; ++i) ASSERT_NEAR(capped[i], 30 * std::tanh(gate[i] / 30.0), 1e-5) << gate[i];
    std::vector<float> sums = up, scaled = gate;
    t.add_scaled(sums.data(), gate.data(), 0.37f, n);
    t.scale(scaled.data(), 0.37f, n);
    for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(sums[i], std::fma(gate[i], 0.37f, up[i]));
        ASSERT_EQ(scaled[i], gate[i] * 0.37f);
    }
    const std::vector<float> x = random_floats(577, random), weight = random_floats(577, random);
    std::vector<float> normed(577);
    t.rms_norm(x.data(), weight.data(), 1e-5f, 577, normed.data());
    double squares = 0;
    for (float f : x) squares += double{f} * f;
    for (size_t i = 0; i < x.size(); ++i) {
        const double exact = x[i] / std::sqrt(squares / 577 + 1e-5) * weight[i];
        ASSERT_NEAR(normed[i], exact, 5e-7 * std::abs(exact));
    }
    // Two heads of 10 dims, 6 rotate: by angle 0.3 * (i + 1) each pair.
    std::vector<float> head = random_floats(20, random), cos_sin(12);
    const std::vector<float> before = head;
    for (int i = 0; i < 3; ++i) {
        cos_sin[2 * i] = cos_sin[2 * i + 1] = static_cast<float>(std::cos(0.3 * (i + 1)));
        cos_sin[6 + 2 * i] = static_cast<float>(-std::sin(0.3 * (i + 1)));
        cos_sin[6 + 2 * i + 1] = static_cast<float>(std::sin(0.3 * (i + 1)));
    }
    t.rope[0](head.data(), 2, 10, 6, cos_sin.data());
    for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < 3; ++i) {
            const double c = std::cos(0.3 * (i + 1)), s = std::sin(0.3 * (i + 1)), a = before[h * 10 + 2 * i], b = before[h * 10 + 2 * i + 1];
            EXPECT_NEAR(head[h * 10 + 2 * i], a * c - b * s, 1e-5);
            EXPECT_NEAR(head[h * 10 + 2 * i + 1], a * s + b * c, 1e-5);
        }
        for (int i = 6; i < 10; ++i) EXPECT_EQ(head[h * 10 + i], before[h * 10 + i]);
    }
}

// Two heads of 10 dims, 6 rotate: dims i and i + 3 by angle 0.3 * (i + 1).
TEST(Elementwise, HalvesTurnTogether) {
    Random random(9);
    std::vector<float> head = random_floats(20, random), cos_sin(12);
    const std::vector<float> before = head;
    for (int i = 0; i < 3; ++i) {
        cos_sin[i] = cos_sin[3 + i] = static_cast<float>(std::cos(0.3 * (i + 1)));
        cos_sin[6 + i] = static_cast<float>(-std::sin(0.3 * (i + 1)));
        cos_sin[9 + i] = static_cast<float>(std::sin(0.3 * (i + 1)));
    }
    table_of("scalar").rope[static_cast<size_t>(RopePairs::halves)](head.data(), 2, 10, 6, cos_sin.data());
    for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < 3; ++i) {
            const double c = std::cos(0.3 * (i + 1)), s = std::sin(0.3 * (i + 1)), a = before[h * 10 + i], b = before[h * 10 + 3 + i];
            EXPECT_NEAR(head[h * 10 + i], a * c - b * s, 1e-5);
            EXPECT_NEAR(head[h * 10 + 3 + i], a * s + b * c, 1e-5);
        }
        for (int i = 6; i < 10; ++i) EXPECT_EQ(head[h * 10 + i], before[h * 10 + i]);
    }
}

TEST(Elementwise, EveryIsaEqualsScalarBitForBit) {
    Random random(8);
    const FloatMode mode;
    for (const std::string& isa : isas()) {
        const KernelTable &t = table_of(isa), &s = table_of("scalar");
        for (uint32_t n = 1; n <= 100; ++n) {
            // Starts that are 4-byte aligned only.
            std::vector<float> x = random_floats(n + 1, random), y = random_floats(n + 1, random), a(n + 2, 7), b(n + 2, 7);
            if (n % 10 == 0) x[1] = std::nanf("");
            if (n % 10 == 1) x[n] = -HUGE_VALF;
            if (n % 10 == 2) for (float& f : x) f *= 1e3f;  // both clamps of exp
            t.activate_mul[0](x.data() + 1, y.data() + 1, a.data() + 1, n);
            s.activate_mul[0](x.data() + 1, y.data() + 1, b.data() + 1, n);
            const bool finite = n % 10 != 0 && n % 10 != 1;  // a NaN's payload may differ
            if (finite) { ASSERT_TRUE(same_bits(a.data(), b.data(), n + 2)) << isa << " silu_mul " << n; }
            else for (uint32_t i = 0; i < n + 2; ++i) ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << isa << " silu_mul " << n;
            if (n % 10 == 0) { ASSERT_TRUE(std::isnan(a[1])) << "a NaN must come through"; }
            if (!finite) continue;
            t.rms_norm(x.data() + 1, y.data() + 1, 1e-6f, n, a.data() + 1);
            s.rms_norm(x.data() + 1, y.data() + 1, 1e-6f, n, b.data() + 1);
            ASSERT_TRUE(same_bits(a.data(), b.data(), n + 2)) << isa << " rms_norm " << n;
            t.add(a.data() + 1, y.data() + 1, n);
            s.add(b.data() + 1, y.data() + 1, n);
            ASSERT_TRUE(same_bits(a.data(), b.data(), n + 2)) << isa << " add " << n;
            const uint32_t n_rot = n / 2 * 2;
            const std::vector<float> cos_sin = random_floats(2 * n_rot + 1, random);
            std::vector<float> p = random_floats(3 * n + 1, random), q = p;
            t.rope[0](p.data() + 1, 3, n, n_rot, cos_sin.data() + 1);
            s.rope[0](q.data() + 1, 3, n, n_rot, cos_sin.data() + 1);
            ASSERT_TRUE(same_bits(p.data(), q.data(), p.size())) << isa << " rope " << n;
            t.rope[1](p.data() + 1, 3, n, n_rot, cos_sin.data() + 1);
            s.rope[1](q.data() + 1, 3, n, n_rot, cos_sin.data() + 1);
            ASSERT_TRUE(same_bits(p.data(), q.data(), p.size())) << isa << " rope of halves " << n;
            const size_t many = p.size() - 1;
            for (const auto& [mine, its] : {std::pair{&t, &p}, {&s, &q}}) {
                mine->activate_mul[1](its->data() + 1, cos_sin.data(), its->data() + 1, std::min(many, cos_sin.size()));
                mine->scale(its->data() + 1, 1.7f, many);
                mine->add_scaled(its->data() + 1, x.data() + 1, -0.3f, n);
                mine->soft_cap(its->data() + 1, 2.5f, many);
            }
            ASSERT_TRUE(same_bits(p.data(), q.data(), p.size())) << isa << " gelu, scale, add_scaled, soft_cap " << n;
        }
    }
}

// --- attention ------------------------------------------------------------------------------------------

struct KvCase {
    uint32_t head_dim, n_group, length;
    KvType type;
    std::vector<float> k, v;  // (length, head_dim)
    std::vector<uint32_t> blocks;
    Aligned memory;
    size_t block_bytes;

    KvCase(const KernelTable& table, uint32_t dim, uint32_t group, uint32_t n, KvType kv, Random& random, uint64_t block_seed)
        : head_dim(dim), n_group(group), length(n), type(kv), k(random_floats(size_t{n} * dim, random)), v(random_floats(size_t{n} * dim, random)) {
        block_bytes = size_t{64} * (dim + padded_head_dim(dim)) * element_bytes(kv);
        const uint32_t n_blocks = (n + 63) / 64 + 3;
        memory = aligned(n_blocks * block_bytes);
        std::memset(memory.get(), 0x7e, n_blocks * block_bytes);  // stale values are huge or NaN
        for (uint32_t i = 0; i < n_blocks; ++i) blocks.push_back(i);
        Random shuffle(block_seed);
        for (uint32_t i = n_blocks; i > 1; --i) std::swap(blocks[i - 1], blocks[shuffle.below(i)]);
        for (uint32_t t = 0; t < n; ++t)
            table.store_kv[static_cast<size_t>(kv)]({k.data() + size_t{t} * dim, v.data() + size_t{t} * dim, dim, t % 64, memory.get() + blocks[t / 64] * block_bytes});
    }
    // Rows [first, first + n_rows) of q, (rows, n_group * head_dim).
    std::vector<float> attend(const KernelTable& table, const std::vector<float>& q, uint32_t first_row, uint32_t first_position, uint32_t n_rows, uint32_t window = 0, float cap = 0) const {
        std::vector<float> out(size_t{n_rows} * n_group * head_dim), scratch(attention_scratch_floats(n_rows, n_group, head_dim), std::nanf(""));
        AttentionArgs a;
        a.q = q.data() + size_t{first_row} * n_group * head_dim;
        a.q_stride = a.out_stride = size_t{n_group} * head_dim;
        a.out = out.data();
        a.n_rows = n_rows;
        a.n_group = n_group;
        a.head_dim = head_dim;
        a.first_position = first_position;
        a.kv = memory.get();
        a.block_bytes = block_bytes;
        a.block_table = blocks.data();
        a.scale = static_cast<float>(1 / std::sqrt(head_dim));
        a.scratch = scratch.data();
        a.window = window;
        a.soft_cap = cap;
        table.attention[static_cast<size_t>(type)](a);
        return out;
    }
};

TEST(Attention, ScalarMatchesDoublePrecision) {
    Random random(9);
    const FloatMode mode;
    for (KvType type : {KvType::f16, KvType::f32})
        for (uint32_t dim : {8u, 64u, 40u})
            for (const auto& [length, window, cap] : {std::tuple{1u, 0u, 0.0f}, {63u, 0u, 0.0f}, {64u, 0u, 0.0f}, {65u, 0u, 0.0f}, {200u, 0u, 0.0f}, {200u, 0u, 1.5f},
                                                       {200u, 1u, 0.0f}, {200u, 64u, 0.0f}, {200u, 72u, 0.0f}, {200u, 73u, 2.0f}, {200u, 199u, 0.0f}, {200u, 200u, 0.0f}, {65u, 300u, 0.0f}}) {
                KvCase kv(table_of("scalar"), dim, 3, length, type, random, 1);
                const std::vector<float> q = random_floats(size_t{3} * dim, random);
                const std::vector<float> out = kv.attend(table_of("scalar"), q, 0, length - 1, 1, window, cap);
                const uint32_t low = window > 0 && length > window ? length - window : 0;
                if (type == KvType::f16)
                    for (auto* values : {&kv.k, &kv.v})
                        for (float& f : *values) f = quant::f16_to_f32(quant::f32_to_f16(f));
                for (uint32_t h = 0; h < 3; ++h) {
                    std::vector<double> weight(length);
                    double max = -1e300, sum = 0;
                    for (uint32_t t = 0; t < length; ++t) {
                        for (uint32_t d = 0; d < dim; ++d) weight[t] += double{q[h * dim + d]} * kv.k[t * dim + d];
                        weight[t] /= std::sqrt(dim);
                        if (cap > 0) weight[t] = cap * std::tanh(weight[t] / cap);
                        if (t < low) weight[t] = -INFINITY;
                        max = std::max(max, weight[t]);
                    }
                    for (double& w : weight) sum += w = std::exp(w - max);
                    for (uint32_t d = 0; d < dim; ++d) {
                        double exact = 0, magnitude = 0;
                        for (uint32_t t = 0; t < length; ++t) {
                            exact += weight[t] / sum * kv.v[t * dim + d];
                            magnitude += weight[t] / sum * std::abs(kv.v[t * dim + d]);
                        }
                        ASSERT_NEAR(out[h * dim + d], exact, 2e-5 * magnitude) << "dim " << dim << " length " << length << " window " << window << " cap " << cap;
                    }
                }
            }
}

TEST(Attention, EveryIsaEqualsScalarBitForBit) {
    Random random(10);
    const FloatMode mode;
    for (const std::string& isa : isas())
        for (KvType type : {KvType::f16, KvType::f32})
            for (uint32_t dim : {4u, 16u, 24u, 64u, 80u, 128u})
                for (uint32_t group : {1u, 2u, 3u, 7u}) {
                    const uint32_t length = 1 + random.below(180), rows = 1 + random.below(std::min(length, 9u));
                    const uint64_t seed = random.next();
                    Random a(seed), b(seed);
                    const KvCase ours(table_of(isa), dim, group, length, type, a, 1), reference(table_of("scalar"), dim, group, length, type, b, 2);
                    const std::vector<float> q = random_floats(size_t{rows} * group * dim, random);
                    const uint32_t window = random.below(2) == 0 ? 0 : 1 + random.below(length + 20);
                    const float cap = random.below(3) == 0 ? 1.3f : 0.0f;
                    const std::vector<float> x = ours.attend(table_of(isa), q, 0, length - rows, rows, window, cap), y = reference.attend(table_of("scalar"), q, 0, length - rows, rows, window, cap);
                    ASSERT_TRUE(same_bits(x.data(), y.data(), x.size())) << isa << " " << name(type) << " dim " << dim << " group " << group << " length " << length << " rows " << rows;
                    // A row alone has the bits it has in the tile.
                    const uint32_t r = random.below(rows);
                    const std::vector<float> alone = ours.attend(table_of(isa), q, r, length - rows + r, 1, window, cap);
                    ASSERT_TRUE(same_bits(alone.data(), x.data() + size_t{r} * group * dim, alone.size())) << isa;
                }
}

// --- selection ------------------------------------------------------------------------------------------

TEST(Select, AForcedIsaReallyRuns) {
    for (const std::string& isa : isas()) {
        auto backend = create({1, isa});
        ASSERT_TRUE(backend.ok());
        EXPECT_EQ(backend.value()->name(), "cpu/" + isa);
        ASSERT_EQ(setenv("HEARTH_ISA", isa.c_str(), 1), 0);
        auto by_environment = create({1, ""});
        ASSERT_TRUE(by_environment.ok());
        EXPECT_EQ(by_environment.value()->name(), "cpu/" + isa);
        unsetenv("HEARTH_ISA");
        // Its table is its own: no entry of a faster ISA leaks into a slower one, and it overrides what it should.
        for (const std::string& other : isas())
            for (uint32_t form = 0; form < forms_count; ++form) {
                if (other != isa) { EXPECT_NE(table_of(isa).matmul[form], table_of(other).matmul[form]) << isa << " " << other; }
            }
    }
    EXPECT_EQ(isas().back(), "scalar");
    auto best = create({1, ""});
    ASSERT_TRUE(best.ok());
    EXPECT_EQ(best.value()->name(), "cpu/" + isas().front());
}

TEST(Select, UnknownNamesAreRefusedByName) {
    auto backend = create({1, "sse9"});
    ASSERT_FALSE(backend.ok());
    EXPECT_EQ(backend.error().code, base::ErrorCode::invalid_argument);
    EXPECT_NE(backend.error().message.find("sse9"), std::string::npos);
    EXPECT_NE(backend.error().message.find("scalar"), std::string::npos);
    EXPECT_FALSE(create({threads_max + 1, "scalar"}).ok());
}

// --- bench ----------------------------------------------------------------------------------------------

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename Body>
double time_of(Body body) {  // best of many short runs: the machine may not be ours alone
    double best = 1e9;
    for (int run = 0; run < 40; ++run) {
        int n = 0;
        const double start = seconds();
        do {
            body();
            ++n;
        } while (seconds() - start < 0.001);
        best = std::min(best, (seconds() - start) / n);
    }
    return best;
}

void bench(uint32_t levels) {
    Random random(11);
    const FloatMode mode;
    const uint32_t rows = 512, cols = 1536;
    std::printf("products, %u x %u, %u-bit activations, GMAC/s of one thread (weights in L2)", rows, cols, levels * 8);
    for (const std::string& isa : isas()) {
        const KernelTable& table = table_of(isa);
        std::printf("\n%-10s", isa.c_str());
        for (uint32_t columns = 1; columns <= table.tile_columns; ++columns) std::printf(" %6u col", columns);
        for (const quant::TypeInfo& row : quant::type_infos) {
            const Weights w(row.type, rows, cols, random);
            std::printf("\n  %-8s", std::string(row.name).c_str());
            for (uint32_t columns = 1; columns <= table.tile_columns; ++columns) {
                const Input input(table, random_floats(size_t{columns} * cols, random), columns, cols, levels);
                std::vector<float> out(size_t{columns} * rows);
                MatmulArgs a;
                a.panels = w.panels.data;
                a.panel_bytes = w.panels.panel_bytes;
                a.meta_offset = w.panels.meta_offset;
                a.n_panels = w.panels.n_panels;
                a.n_blocks = w.panels.n_blocks;
                a.cols = cols;
                a.x = input.tile(w.panels.form);
                a.out = out.data();
                a.out_stride = rows;
                a.rows = rows;
                const double t = time_of([&] { table.matmul[static_cast<size_t>(w.panels.form)](a); });
                std::printf(" %10.1f", double{rows} * cols * columns / t / 1e9);
            }
        }
    }
    std::printf("\n");
    std::printf("attention, one row, 3 heads of 64, 1024 tokens, f16; quantize and silu_mul of 1536; us\n");
    for (const std::string& isa : isas()) {
        const KernelTable& table = table_of(isa);
        const KvCase kv(table, 64, 3, 1024, KvType::f16, random, 1);
        const std::vector<float> q = random_floats(3 * 64, random), x = random_floats(1536, random);
        std::vector<float> out(1536);
        const double attention = time_of([&] { kv.attend(table, q, 0, 1023, 1); });
        const double quantize = time_of([&] { Input(table, x, 1, 1536, levels); });
        const double silu = time_of([&] { table.activate_mul[0](x.data(), x.data(), out.data(), 1536); });
        std::printf("%-8s %8.2f %8.2f %8.2f\n", isa.c_str(), attention * 1e6, quantize * 1e6, silu * 1e6);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string(argv[1]) == "--bench") {
        for (uint32_t levels : {1u, 2u}) bench(levels);
        return 0;
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
