// Decoders and encoders against the PyPI package `gguf` (make_fixtures.py says how the fixture was made).
#include "quant/codec.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "quant/quantize.h"

namespace quant {
namespace {

struct Record {
    bool is_encode = false;
    Type type = Type::f32;
    std::vector<float> values;
    std::vector<std::byte> bytes;
};

std::vector<Record> read_records(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> all{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::vector<Record> records;
    size_t at = 0;
    while (at + 16 <= all.size()) {
        uint32_t head[4];
        std::memcpy(head, all.data() + at, sizeof head);
        at += sizeof head;
        Record record;
        record.is_encode = head[0] == 1;
        record.type = from_gguf_number(head[1]).value();
        record.values.resize(head[2]);
        record.bytes.resize(head[3]);
        if (at + head[2] * 4 + head[3] > all.size()) return {};
        std::memcpy(record.values.data(), all.data() + at, head[2] * 4);
        at += head[2] * 4;
        std::memcpy(record.bytes.data(), all.data() + at, head[3]);
        at += head[3];
        records.push_back(std::move(record));
    }
    return records;
}

// Same bits; any NaN equals any NaN (which payload an operation returns is not part of the format).
bool same(float a, float b) { return f32_to_bits(a) == f32_to_bits(b) || (std::isnan(a) && std::isnan(b)); }

void check_records(const std::vector<Record>& records) {
    std::set<Type> decoded, encoded;
    size_t non_finite = 0;
    for (const Record& record : records) {
        const std::string_view name = info(record.type).name;
        if (record.is_encode) {
            std::vector<std::byte> bytes(record.bytes.size());
            ASSERT_EQ(bytes.size(), row_bytes(record.type, record.values.size())) << name;
            quantize_row(record.type, record.values.data(), bytes.data(), record.values.size());
            for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], record.bytes[i]) << name << " byte " << i;
            encoded.insert(record.type);
            continue;
        }
        ASSERT_EQ(record.bytes.size(), row_bytes(record.type, record.values.size())) << name;
        // Odd address: a block may lie anywhere.
        std::vector<std::byte> shifted(record.bytes.size() + 1);
        std::memcpy(shifted.data() + 1, record.bytes.data(), record.bytes.size());
        std::vector<float> values(record.values.size());
        dequantize_row(record.type, shifted.data() + 1, values.data(), values.size());
        for (size_t i = 0; i < values.size(); ++i) {
            ASSERT_TRUE(same(values[i], record.values[i]))
                << name << " weight " << i << ": " << values[i] << ", reference " << record.values[i];
            non_finite += !std::isfinite(values[i]);
        }
        decoded.insert(record.type);
    }
    EXPECT_EQ(decoded.size(), type_infos.size()) << "every format must be in the fixture";
    EXPECT_EQ(encoded.size(), 8u);
    EXPECT_GT(non_finite, 1000u) << "the edge scales must be in the fixture";
}

TEST(Codec, EqualsTheReferenceOnCommittedBlocks) { check_records(read_records(TEST_DATA_DIR "/fixtures.bin")); }

TEST(Codec, EqualsTheReferenceOnFreshBlocks) {
    const char* python = std::getenv("HEARTH_PYTHON");
    if (!python) GTEST_SKIP() << "HEARTH_PYTHON is not set";
    const std::string path = testing::TempDir() + "hearth_quant_" + std::to_string(getpid()) + ".bin";
    const std::string command =
        std::string(python) + " " TEST_DATA_DIR "/make_fixtures.py " + path + " --seed 2 --blocks 500";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    check_records(read_records(path));
    unlink(path.c_str());
}

// decode is scale, code and offset put together, and codes stay in their declared bounds and reach them.
template <Type type>
void check_parts() {
    using C = Codec<type>;
    typename C::Block block;
    int least = 1000, greatest = -1000;
    uint64_t state = 1;
    for (int round = 0; round < 300; ++round) {
        auto* bytes = reinterpret_cast<uint8_t*>(&block);
        for (size_t i = 0; i < sizeof block; ++i) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = static_cast<uint8_t>(state >> 56);
        }
        for (uint32_t i = 0; i < info(type).block_elements; ++i) {
            const int code = C::code(block, i);
            least = std::min(least, code);
            greatest = std::max(greatest, code);
            float expected = C::scale(block, i) * static_cast<float>(code);
            if constexpr (C::has_offset) expected += C::offset(block, i);
            ASSERT_TRUE(same(C::decode(block, i), expected));
            const uint32_t first_of_group = i / C::group * C::group;
            ASSERT_TRUE(same(C::scale(block, i), C::scale(block, first_of_group)));
        }
    }
    EXPECT_EQ(least, C::code_min);
    EXPECT_EQ(greatest, C::code_max);
}

TEST(Codec, PartsAddUp) {
    check_parts<Type::q4_0>();
    check_parts<Type::q4_1>();
    check_parts<Type::q5_0>();
    check_parts<Type::q5_1>();
    check_parts<Type::q8_0>();
    check_parts<Type::q2_k>();
    check_parts<Type::q3_k>();
    check_parts<Type::q4_k>();
    check_parts<Type::q5_k>();
    check_parts<Type::q6_k>();
    check_parts<Type::iq4_nl>();
    check_parts<Type::iq4_xs>();
}

// Whatever floats come in, an encoder writes a block and no sanitizer complains.
TEST(Quantize, SurvivesAnyFloats) {
    uint32_t state = 1;
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_0, Type::q4_1, Type::q5_0, Type::q5_1}) {
        for (int round = 0; round < 2000; ++round) {
            float x[32];
            std::byte bytes[128];
            for (float& value : x) {
                state = state * 1664525u + 1013904223u;
                value = bits_to_f32(state);
            }
            quantize_row(type, x, bytes, 32);
            float back[32];
            dequantize_row(type, bytes, back, 32);
        }
    }
}

TEST(Types, TableIsConsistent) {
    std::set<uint32_t> numbers;
    std::set<std::string_view> names;
    for (const TypeInfo& row : type_infos) {
        EXPECT_TRUE(numbers.insert(row.gguf_number).second);
        EXPECT_TRUE(names.insert(row.name).second);
        EXPECT_EQ(from_gguf_number(row.gguf_number), row.type);
        EXPECT_EQ(from_name(row.name), row.type);
        EXPECT_EQ(&info(row.type), &row);
    }
    EXPECT_FALSE(from_gguf_number(4).has_value()) << "removed from the format";
    EXPECT_FALSE(from_gguf_number(0xffffffffu).has_value());
}

}  // namespace
}  // namespace quant
