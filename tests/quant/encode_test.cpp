// The searching encoders: error against llama.cpp's on the same rows, the same bytes on every instruction set, importance,
// and edge values. The rounding rules of the other formats are codec_test's.
#include "quant/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "quant/codec.h"
#include "quant/quantize.h"

namespace quant {
namespace {

constexpr uint32_t row_weights = 4096;
constexpr Type searched[] = {Type::q2_k, Type::q3_k, Type::q4_k, Type::q5_k, Type::q6_k, Type::iq4_nl, Type::iq4_xs};
constexpr Type with_importance[] = {Type::q2_k, Type::q3_k, Type::q4_k, Type::q5_k, Type::q6_k, Type::iq4_nl, Type::iq4_xs,
                                    Type::q4_0, Type::q4_1, Type::q5_0, Type::q5_1};

// The rows of tests/golden/make_encoder_errors.py, number for number: only + - * / and square roots, which IEEE 754 fixes.
class HeavyTails {
  public:
    explicit HeavyTails(uint64_t seed) : state_(seed) {}
    double uniform() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state_ >> 11) * 0x1p-53;
    }
    double normal() {  // twelve uniforms: near enough, and the same everywhere
        double sum = 0;
        for (int i = 0; i < 12; ++i) sum += uniform();
        return sum - 6;
    }
    // Student's t with four degrees of freedom.
    double t4() {
        const double z = normal();
        double chi2 = 0;
        for (int i = 0; i < 4; ++i) {
            const double n = normal();
            chi2 += n * n;
        }
        return z / std::sqrt(chi2 / 4);
    }
    double chi1() {
        const double n = normal();
        return n * n;
    }

  private:
    uint64_t state_;
};

struct Rows {
    std::vector<float> x, importance;
    uint32_t count = 0;
};

Rows heavy_rows(uint32_t count, uint64_t seed = 1) {
    Rows rows;
    rows.count = count;
    HeavyTails random(seed);
    for (uint32_t i = 0; i < row_weights; ++i) rows.importance.push_back(static_cast<float>(random.chi1() + 0.01));
    for (uint32_t i = 0; i < count * row_weights; ++i) rows.x.push_back(static_cast<float>(random.t4() * 0.02));
    return rows;
}

// sqrt(sum(w (x - decoded)^2) / sum(w x^2))
double relative_error(Type type, const Rows& rows, bool importance, detail::Encode encode = nullptr) {
    std::vector<std::byte> bytes(row_bytes(type, row_weights));
    std::vector<float> back(row_weights);
    double error = 0, energy = 0;
    for (uint32_t r = 0; r < rows.count; ++r) {
        const float* x = rows.x.data() + r * row_weights;
        const float* w = importance ? rows.importance.data() : nullptr;
        if (encode) encode(type, x, w, bytes.data(), row_weights);
        else quantize_row(type, x, bytes.data(), row_weights, w);
        dequantize_row(type, bytes.data(), back.data(), row_weights);
        for (uint32_t i = 0; i < row_weights; ++i) {
            const double weight = w ? static_cast<double>(w[i]) : 1.0, rest = static_cast<double>(x[i]) - static_cast<double>(back[i]);
            error += weight * rest * rest;
            energy += weight * static_cast<double>(x[i]) * static_cast<double>(x[i]);
        }
    }
    return std::sqrt(error / energy);
}

TEST(Encode, ErrorIsNotAboveLlamaCpps) {
    std::ifstream in(GOLDEN_DIR "/encoder_errors.txt");
    const Rows rows = heavy_rows(8);
    size_t compared = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("#")) continue;
        std::istringstream words(line);
        std::string name;
        int importance = 0;
        double reference = 0;
        words >> name >> importance >> reference;
        const double ours = relative_error(from_name(name).value(), rows, importance == 1);
        EXPECT_LE(ours, reference * 1.01) << name << (importance ? " with importance" : "");
        EXPECT_GE(ours, reference * 0.7) << name << ": too good to be true, is it the same measure?";
        ++compared;
    }
    EXPECT_EQ(compared, std::size(searched) + std::size(with_importance));
}

// Every weight within half a step of its group's scale, or beyond the ends of the codes: the bound that rounding to nearest gives.
template <Type type>
void check_nearest(const Rows& rows) {
    using C = Codec<type>;
    std::vector<typename C::Block> blocks(row_weights / info(type).block_elements);
    quantize_row(type, rows.x.data(), reinterpret_cast<std::byte*>(blocks.data()), row_weights);
    for (uint32_t k = 0; k < row_weights; ++k) {
        const auto& block = blocks[k / info(type).block_elements];
        const uint32_t i = k % info(type).block_elements;
        const float step = std::fabs(C::scale(block, i));
        const int code = C::code(block, i);
        if (code == C::code_min || code == C::code_max) continue;  // cut off
        EXPECT_LE(std::fabs(rows.x[k] - C::decode(block, i)), step * 0.5001f + 1e-9f) << info(type).name << " weight " << k;
    }
}

TEST(Encode, CodesAreTheNearestOnes) {
    const Rows rows = heavy_rows(1, 9);
    check_nearest<Type::q2_k>(rows);
    check_nearest<Type::q3_k>(rows);
    check_nearest<Type::q4_k>(rows);
    check_nearest<Type::q5_k>(rows);
    check_nearest<Type::q6_k>(rows);
}

TEST(Encode, EveryInstructionSetGivesTheSameBytes) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2 here";
    const Rows rows = heavy_rows(4, 5);
    for (const Type type : with_importance) {
        for (const bool importance : {false, true}) {
            std::vector<std::byte> a(row_bytes(type, row_weights)), b(a.size());
            for (uint32_t r = 0; r < rows.count; ++r) {
                const float* w = importance ? rows.importance.data() : nullptr;
                detail::encode_portable(type, rows.x.data() + r * row_weights, w, a.data(), row_weights);
                detail::encode_avx2(type, rows.x.data() + r * row_weights, w, b.data(), row_weights);
                ASSERT_EQ(a, b) << info(type).name << " row " << r;
            }
        }
    }
#else
    GTEST_SKIP() << "one instruction set here";
#endif
}

// The weighted error is smaller than without, and columns of no importance are given up first.
TEST(Encode, ImportanceIsHeeded) {
    Rows rows = heavy_rows(4, 3);
    for (const Type type : with_importance) {
        std::vector<std::byte> bytes(row_bytes(type, row_weights));
        std::vector<float> back(row_weights);
        double plain = 0, weighted = 0;
        for (uint32_t r = 0; r < rows.count; ++r) {
            const float* x = rows.x.data() + r * row_weights;
            for (const bool importance : {false, true}) {
                quantize_row(type, x, bytes.data(), row_weights, importance ? rows.importance.data() : nullptr);
                dequantize_row(type, bytes.data(), back.data(), row_weights);
                for (uint32_t i = 0; i < row_weights; ++i)
                    (importance ? weighted : plain) += static_cast<double>(rows.importance[i]) * std::pow(static_cast<double>(x[i] - back[i]), 2);
            }
        }
        EXPECT_LT(weighted, plain) << info(type).name;
    }
}

TEST(Encode, EdgeRows) {
    std::vector<float> back(256);
    std::vector<std::byte> bytes(2048);
    std::vector<float> zero_importance(256, 0.0f);
    for (const Type type : with_importance) {
        const auto error_of = [&](const std::vector<float>& x, const float* importance) {
            quantize_row(type, x.data(), bytes.data(), 256, importance);
            EXPECT_TRUE(all_finite(type, bytes.data(), 256)) << info(type).name;
            dequantize_row(type, bytes.data(), back.data(), 256);
            double error = 0;
            for (int i = 0; i < 256; ++i) error = std::fmax(error, std::fabs(static_cast<double>(x[static_cast<size_t>(i)]) - static_cast<double>(back[static_cast<size_t>(i)])));
            return error;
        };
        for (const float* importance : {static_cast<const float*>(nullptr), static_cast<const float*>(zero_importance.data())}) {
            EXPECT_EQ(error_of(std::vector<float>(256, 0.0f), importance), 0) << info(type).name;
            EXPECT_LT(error_of(std::vector<float>(256, 0.75f), importance), 0.004) << info(type).name << ": a constant row";
            EXPECT_LT(error_of(std::vector<float>(256, -3.0f), importance), 0.016) << info(type).name << ": a constant row";
            EXPECT_LT(error_of(std::vector<float>(256, 1e-7f), importance), 1.1e-7) << info(type).name << ": near the least fp16";
            std::vector<float> one(256, 0.0f);
            one[17] = 5;
            // IQ4 has no level at 0: the nearest is 1 where the extreme is 127.
            EXPECT_LT(error_of(one, importance), 5 / 126.0) << info(type).name << ": one weight among zeros";
        }
    }
}

// Whatever floats come in, an encoder writes a block and no sanitizer complains.
TEST(Encode, SurvivesAnyFloats) {
    uint32_t state = 1;
    const auto next = [&state] { return bits_to_f32(state = state * 1664525u + 1013904223u); };
    for (const Type type : with_importance) {
        for (int round = 0; round < 400; ++round) {
            float x[256], importance[256], back[256];
            std::byte bytes[512];
            for (float& value : x) value = next();
            for (float& value : importance) value = std::fabs(next());
            quantize_row(type, x, bytes, 256, round % 2 ? importance : nullptr);
            dequantize_row(type, bytes, back, 256);
        }
    }
}

TEST(Encode, AllFiniteLooksAtEveryScale) {
    for (const TypeInfo& row : type_infos) {
        const uint32_t n = std::max<uint32_t>(row.block_elements, 32) * 2;
        std::vector<float> x(n, 0.5f);
        std::vector<std::byte> bytes(row_bytes(row.type, n));
        quantize_row(row.type, x.data(), bytes.data(), n);
        EXPECT_TRUE(all_finite(row.type, bytes.data(), n)) << row.name;
        x[n - 1] = 1e30f;
        if (row.type == Type::f32) x[n - 1] = std::nanf("");
        if (row.type == Type::bf16) x[n - 1] = 3.4e38f;
        quantize_row(row.type, x.data(), bytes.data(), n);
        EXPECT_FALSE(all_finite(row.type, bytes.data(), n)) << row.name << ": no fp16 scale holds this";
    }
}

}  // namespace
}  // namespace quant
