// Broken vocabularies: each is refused with the key, its place and what was allowed.
#include <gtest/gtest.h>

#include "base/message.h"
#include "tests/text/measure.h"
#include "tests/text/vocabulary_builder.h"
#include "text/tokenizer.h"

namespace {

using support::VocabularySpec;

struct Outcome {
    bool ok;
    base::ErrorCode code = base::ErrorCode::internal;
    std::string message;
};

Outcome load(const VocabularySpec& spec) {
    const auto image = spec.image();
    auto file = gguf::File::parse(image, "test");
    if (!file) return {false, file.error().code, file.error().message};
    auto tokenizer = text::Tokenizer::from_gguf(file.value());
    if (tokenizer) return {true, {}, ""};
    return {false, tokenizer.error().code, tokenizer.error().message};
}

struct BadVocabulary {
    const char* name;
    std::function<void(VocabularySpec&)> breaks;
    std::vector<const char*> says;
    base::ErrorCode code = base::ErrorCode::bad_file;
};

const BadVocabulary bad_vocabularies[] = {
    {"ModelMissing", [](auto& v) { v.model.reset(); }, {"tokenizer.ggml.model"}},
    {"ModelUnigram", [](auto& v) { v.model = "t5"; }, {"tokenizer.ggml.model", "\"t5\"", "gpt2"}, base::ErrorCode::unsupported},
    {"ModelWordPiece", [](auto& v) { v.model = "bert"; }, {"tokenizer.ggml.model", "\"bert\"", "gpt2"}, base::ErrorCode::unsupported},
    {"ModelNameAMegabyteLong", [](auto& v) { v.model = std::string(1 << 20, 'm'); }, {"mmm...", "gpt2"}, base::ErrorCode::unsupported},
    {"PreTokenizerMissing", [](auto& v) { v.pre.reset(); }, {"tokenizer.ggml.pre"}},
    {"PreTokenizerNotBuilt", [](auto& v) { v.pre = "kimi-k2"; }, {"tokenizer.ggml.pre", "\"kimi-k2\"", "smollm"}, base::ErrorCode::unsupported},
    {"PreTokenizerNameWithEscape", [](auto& v) { v.pre = "a\x1b[31m"; }, {"\\x1b"}, base::ErrorCode::unsupported},
    {"TokensMissing", [](auto& v) { v.with_tokens = false; }, {"tokenizer.ggml.tokens"}},
    {"NoTokens",
     [](auto& v) {
         v.tokens.clear();
         v.types.clear();
         v.merges.clear();
     },
     {"tokenizer.ggml.tokens", "0 tokens"}},
    {"OneToken",
     [](auto& v) {
         v.tokens = {"a"};
         v.types = {1};
         v.merges.clear();
         v.eos = 0;
         v.bos.reset();
     },
     {"tokenizer.ggml.tokens", "no token for byte 32"}},
    {"OneByteWithoutToken", [](auto& v) { v.tokens[5 + 'A'] = "AAA"; }, {"no token for byte 65"}},
    {"TokensAreIntegers",
     [](auto& v) {
         v.with_tokens = false;
         v.extra = [](gguf::Writer& w) {
             const int32_t ids[] = {1, 2, 3};
             w.add_array<int32_t>("tokenizer.ggml.tokens", gguf::ValueType::i32, ids);
         };
     },
     {"tokenizer.ggml.tokens"}},
    {"TokenEmpty", [](auto& v) { v.add(""); }, {"tokenizer.ggml.tokens (byte ", "has 0 bytes"}},
    {"TokenTooLong", [](auto& v) { v.add(std::string(1 << 20, 'x')); }, {"has 1048576 bytes", "65536"}},
    {"TokenDuplicate", [](auto& v) { v.add("ab"); }, {"are both \"ab\""}},
    {"TokenNotUtf8", [](auto& v) { v.add("\xff\xfe"); }, {"is not valid UTF-8", "\\xff\\xfe"}},
    {"TokenSurrogate", [](auto& v) { v.add("\xed\xa0\x80"); }, {"is not valid UTF-8"}},
    {"SpecialTokenTooLong", [](auto& v) { v.add(std::string(257, 's'), 3); }, {"is special and has 257 bytes", "256"}},
    {"TypesMissing", [](auto& v) { v.with_types = false; }, {"tokenizer.ggml.token_type"}},
    {"TypesShorter", [](auto& v) { v.types.pop_back(); }, {"tokenizer.ggml.token_type (byte ", "271 elements", "272"}},
    {"TypesLonger", [](auto& v) { v.types.push_back(1); }, {"273 elements", "272"}},
    {"TypesU8",
     [](auto& v) {
         v.with_types = false;
         v.extra = [n = v.tokens.size()](gguf::Writer& w) {
             w.add_array<uint8_t>("tokenizer.ggml.token_type", gguf::ValueType::u8, std::vector<uint8_t>(n, 1));
         };
     },
     {"tokenizer.ggml.token_type", "elements of GGUF type 0", "i32"}},
    {"TypesNoArray",
     [](auto& v) {
         v.with_types = false;
         v.extra = [](gguf::Writer& w) { w.add_u32("tokenizer.ggml.token_type", 1); };
     },
     {"tokenizer.ggml.token_type"}},
    {"TypeMinusOne", [](auto& v) { v.types[7] = -1; }, {"token 7 has type -1", "1 to 5"}},
    {"Type99", [](auto& v) { v.types[7] = 99; }, {"token 7 has type 99"}},
    {"TypeByte", [](auto& v) { v.add("<0x-1>", 6); }, {"has type 6"}},
    {"ScoresShorter",
     [](auto& v) {
         v.extra = [](gguf::Writer& w) {
             const float scores[] = {0, 1};
             w.add_array<float>("tokenizer.ggml.scores", gguf::ValueType::f32, scores);
         };
     },
     {"tokenizer.ggml.scores (byte ", "2 elements"}},
    {"ScoresU8",
     [](auto& v) {
         v.extra = [](gguf::Writer& w) {
             const uint8_t scores[] = {0, 1};
             w.add_array<uint8_t>("tokenizer.ggml.scores", gguf::ValueType::u8, scores);
         };
     },
     {"tokenizer.ggml.scores"}},
    {"MergesMissing", [](auto& v) { v.with_merges = false; }, {"tokenizer.ggml.merges"}},
    {"MergeEmpty", [](auto& v) { v.merges.push_back(""); }, {"tokenizer.ggml.merges (byte ", "merge 11 \"\"", "two parts"}},
    {"MergeWithoutSpace", [](auto& v) { v.merges.push_back("ab"); }, {"merge 11 \"ab\"", "two parts"}},
    {"MergeTwoSpaces", [](auto& v) { v.merges.push_back("a  b"); }, {"two parts"}},
    {"MergeThreeParts", [](auto& v) { v.merges.push_back("a b c"); }, {"two parts"}},
    {"MergeLeadingSpace", [](auto& v) { v.merges.push_back(" ab"); }, {"two parts"}},
    {"MergeTrailingSpace", [](auto& v) { v.merges.push_back("ab "); }, {"two parts"}},
    {"MergeUnknownPart", [](auto& v) { v.merges.push_back("zzz a"); }, {"a part that is no token"}},
    {"MergeUnknownResult", [](auto& v) { v.merges.push_back("x y"); }, {"joins to what is no token"}},
    {"MergeDuplicate", [](auto& v) { v.merges.push_back("a b"); }, {"merge 11 \"a b\" is there twice"}},
    {"MergeToControlToken",
     [](auto& v) {
         v.add("<s>", 3);
         v.merge("s >");
         v.merges.push_back("< s>");
     },
     {"joins to control token"}},
    {"MergesAreIntegers",
     [](auto& v) {
         v.with_merges = false;
         v.extra = [](gguf::Writer& w) {
             const uint64_t pairs[] = {1, 2};
             w.add_array<uint64_t>("tokenizer.ggml.merges", gguf::ValueType::u64, pairs);
         };
     },
     {"tokenizer.ggml.merges"}},
    {"BosIsVocabularySize",
     [](auto& v) { v.bos = static_cast<uint32_t>(v.tokens.size()); },
     {"tokenizer.ggml.bos_token_id (byte ", "272 is no token"}},
    {"EosIsMinusOne", [](auto& v) { v.eos = UINT32_MAX; }, {"tokenizer.ggml.eos_token_id (byte ", "4294967295 is no token"}},
    {"EosMissing", [](auto& v) { v.eos.reset(); }, {"tokenizer.ggml.eos_token_id is missing"}},
    {"EosIsString",
     [](auto& v) {
         v.eos.reset();
         v.extra = [](gguf::Writer& w) { w.add_string("tokenizer.ggml.eos_token_id", "2"); };
     },
     {"tokenizer.ggml.eos_token_id"}},
    {"AddBosWithoutBos",
     [](auto& v) {
         v.add_bos = true;
         v.bos.reset();
     },
     {"tokenizer.ggml.add_bos_token (byte ", "bos_token_id is missing"}},
    {"AddBosIsInteger",
     [](auto& v) { v.extra = [](gguf::Writer& w) { w.add_u32("tokenizer.ggml.add_bos_token", 1); }; },
     {"tokenizer.ggml.add_bos_token"}},
    {"PaddingOutOfRange",
     [](auto& v) { v.extra = [](gguf::Writer& w) { w.add_u32("tokenizer.ggml.padding_token_id", 1u << 31); }; },
     {"tokenizer.ggml.padding_token_id"}},
};

class BadVocabularyTest : public testing::TestWithParam<BadVocabulary> {};

TEST_P(BadVocabularyTest, IsRefusedByName) {
    const BadVocabulary& bad = GetParam();
    VocabularySpec spec;
    bad.breaks(spec);
    const double start = support::cpu_seconds();
    const Outcome outcome = load(spec);
    EXPECT_LT(support::cpu_seconds() - start, 1.0);
    ASSERT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.code, bad.code) << outcome.message;
    for (const char* part : bad.says) EXPECT_NE(outcome.message.find(part), std::string::npos) << outcome.message;
    EXPECT_EQ(outcome.message.find('\n'), std::string::npos);
    EXPECT_LT(outcome.message.size(), 800u);
}

INSTANTIATE_TEST_SUITE_P(Faults, BadVocabularyTest, testing::ValuesIn(bad_vocabularies),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(VocabularyTest, TheUnbrokenOneLoads) {
    const Outcome outcome = load(VocabularySpec());
    EXPECT_TRUE(outcome.ok) << outcome.message;
}

TEST(VocabularyTest, TooManyMergesAreCountedNotRead) {
    VocabularySpec spec;
    spec.merges.assign((4u << 20) + 1, "a b");
    const Outcome outcome = load(spec);
    ASSERT_FALSE(outcome.ok);
    EXPECT_NE(outcome.message.find("4194305 merges"), std::string::npos) << outcome.message;
}

TEST(VocabularyTest, ManyTokensThatShareAHashDontMakeLoadingSlow) {
    // 200,000 tokens whose texts differ in few bits. (True collisions of the seeded table can't be written down here.)
    VocabularySpec spec;
    for (int i = 0; i < 200'000; ++i) spec.add(base::cat("k", i * 16, std::string(16, 'k')));
    const double start = support::cpu_seconds();
    EXPECT_TRUE(load(spec).ok);
    const double seconds = support::cpu_seconds() - start;
    EXPECT_TRUE(!support::measurable || seconds < 2.0) << seconds;
}

}  // namespace
