#include "support/model_builder.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/check.h"
#include "base/mix.h"
#include "base/utf8.h"
#include "quant/codec.h"
#include "quant/quantize.h"

namespace support {
namespace {

using gguf::Writer;
using quant::Type;

// splitmix64: a full-period generator with good low bits (Steele, Lea and Flood 2014).
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() { return base::next_mixed(state_); }
    // About normal with mean 0 and deviation 1: the sum of four uniforms, exact in fp32 arithmetic up to one product.
    float normal() {
        const uint64_t bits = next();
        int64_t sum = 0;
        for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>(bits >> (16 * i) & 0xffff);
        return static_cast<float>(sum - 2 * 0xffff) * (1.7320508f / 65536.0f);  // variance of one uniform is 1/12
    }

  private:
    uint64_t state_;
};

// The 61 merges make builtin_vocab() 320. "_" stands for the GPT-2 spelling of a space.
constexpr std::string_view merge_pairs[] = {
    "_ t", "h e", "_ a", "i n", "_t he", "r e", "o n", "_ s", "e r", "_ w", "a t", "n d", "_ c", "i s", "o r", "_ o",
    "_a nd", "in g", "_ b", "e n", "_ f", "i t", "_ p", "e s", "a l", "_ m", "a n", "_ in", "_ h", "_ d", "o u", "l e",
    "a r", "_t o", "_o f", "l l", "_ th", "t h", "_b e", "_f or", "_w h", "_ is", "s t", "i on", "_y ou", "_ y", "a s",
    "_h e", "c h", "_a n", "_c on", "en t", "u r", "_ it", "_s t", "_ l", "_ on", "_w as", "h at", "_ e", "v er"};

std::string gpt2_spelling(uint8_t byte) {
    const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    char32_t code_point = byte;
    if (!plain) {
        // The n-th byte that is not printable is written as U+0100 + n.
        code_point = 256;
        for (uint32_t b = 0; b < byte; ++b) code_point += !((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174);
    }
    std::string out;
    base::utf8::append(out, code_point);
    return out;
}

std::string spell(std::string_view part) {
    std::string out;
    for (const char c : part) out += gpt2_spelling(c == '_' ? uint8_t{' '} : static_cast<uint8_t>(c));
    return out;
}

struct Vocabulary {
    std::vector<std::string> tokens;
    std::vector<int32_t> kinds;
    std::vector<std::string> merges;
};

Vocabulary make_vocabulary(uint32_t n_vocab) {
    Vocabulary out;
    const auto add = [&](std::string text, int32_t kind) {
        out.tokens.push_back(std::move(text));
        out.kinds.push_back(kind);
    };
    for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) add(control, 3);
    for (int byte = 0; byte < 256; ++byte) add(gpt2_spelling(static_cast<uint8_t>(byte)), 1);
    for (const std::string_view pair : merge_pairs) {
        const size_t space = pair.find(' ');
        const std::string left = spell(pair.substr(0, space)), right = spell(pair.substr(space + 1));
        out.merges.push_back(left + " " + right);
        std::string joined = left + right;
        // Two merges may give one text ("_th" + "e" ...); a token stands in the vocabulary once.
        if (std::find(out.tokens.begin(), out.tokens.end(), joined) == out.tokens.end()) add(std::move(joined), 1);
    }
    CHECK_LE(out.tokens.size(), n_vocab == 0 ? out.tokens.size() : size_t{n_vocab});
    while (out.tokens.size() < n_vocab) add("<|unused_" + std::to_string(out.tokens.size()) + "|>", 5);
    return out;
}

template <Type type>
void put_scales(typename quant::Codec<type>::Block& block, float d, float ratio) {
    block.d = quant::f32_to_f16(d);
    if constexpr (requires { block.dmin; }) block.dmin = quant::f32_to_f16(d * ratio);
    if constexpr (requires { block.m; }) block.m = quant::f32_to_f16(-d * ratio);
}

// Blocks of random codes; d is chosen so that the weights of each block have deviation `sigma`.
// ratio: what the offset field must be, in units of d, for the mean to be about zero.
template <Type type>
void random_blocks(std::vector<std::byte>& out, float sigma, float ratio, Random& random) {
    using Block = typename quant::Codec<type>::Block;
    auto* blocks = reinterpret_cast<Block*>(out.data());
    for (std::byte& byte : out) byte = static_cast<std::byte>(random.next() >> 56);
    for (size_t k = 0; k < out.size() / sizeof(Block); ++k) {
        put_scales<type>(blocks[k], 1, ratio);
        float sum = 0;
        for (uint32_t i = 0; i < quant::info(type).block_elements; ++i) {
            const float w = quant::Codec<type>::decode(blocks[k], i);
            sum += w * w;
        }
        const float rms = std::sqrt(sum / static_cast<float>(quant::info(type).block_elements));
        put_scales<type>(blocks[k], rms > 0 ? sigma / rms : 0, ratio);
    }
}

std::vector<std::byte> random_tensor(Type type, uint64_t n, float mean, float sigma, Random& random) {
    std::vector<std::byte> out(quant::row_bytes(type, n));
    // The other formats keep their random blocks, so that the bytes of a spec don't depend on an encoder's search.
    const bool encoded = type == Type::f32 || type == Type::f16 || type == Type::bf16 || type == Type::q8_0 || type == Type::q4_0 || type == Type::q4_1;
    if (encoded) {
        std::vector<float> values(n);
        for (float& value : values) value = mean + sigma * random.normal();
        quant::quantize_row(type, values.data(), out.data(), n);
        return out;
    }
    switch (type) {
        case Type::q5_0: random_blocks<Type::q5_0>(out, sigma, 0, random); break;
        case Type::q5_1: random_blocks<Type::q5_1>(out, sigma, 15.5f, random); break;
        case Type::q2_k: random_blocks<Type::q2_k>(out, sigma, 1.5f, random); break;
        case Type::q3_k: random_blocks<Type::q3_k>(out, sigma, 0, random); break;
        case Type::q4_k: random_blocks<Type::q4_k>(out, sigma, 7.5f, random); break;
        case Type::q5_k: random_blocks<Type::q5_k>(out, sigma, 15.5f, random); break;
        case Type::q6_k: random_blocks<Type::q6_k>(out, sigma, 0, random); break;
        case Type::iq4_nl: random_blocks<Type::iq4_nl>(out, sigma, 0, random); break;
        case Type::iq4_xs: random_blocks<Type::iq4_xs>(out, sigma, 0, random); break;
        default: CHECK(!"a type without random blocks");
    }
    return out;
}

constexpr std::string_view chat_template =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

}  // namespace

uint32_t builtin_vocab() { return static_cast<uint32_t>(make_vocabulary(0).tokens.size()); }

ModelSpec spec_for(Type type) {
    ModelSpec spec;
    spec.type = spec.embedding_type = type;
    if (quant::info(type).block_elements > 128) {
        spec.n_embd = 256;
        spec.n_ff = 512;
    }
    return spec;
}

std::vector<std::byte> build_model(const ModelSpec& spec) {
    CHECK(spec.n_heads > 0 && spec.n_kv_heads > 0);
    CHECK_EQ(spec.n_embd % spec.n_heads, 0u);
    CHECK_EQ(spec.n_heads % spec.n_kv_heads, 0u);
    const uint32_t head_dim = spec.n_embd / spec.n_heads;
    const Vocabulary vocabulary = make_vocabulary(spec.n_vocab);
    const uint64_t n_vocab = vocabulary.tokens.size();

    Writer writer;
    const auto wanted = [&](std::string_view name) { return spec.without.find(name) == spec.without.end(); };
    const auto u32 = [&](std::string_view key, uint32_t value) { if (wanted(key)) writer.add_u32(key, value); };
    const auto f32 = [&](std::string_view key, float value) { if (wanted(key)) writer.add_f32(key, value); };
    const auto boolean = [&](std::string_view key, bool value) { if (wanted(key)) writer.add_bool(key, value); };
    const auto string = [&](std::string_view key, std::string_view value) { if (wanted(key)) writer.add_string(key, value); };
    string("general.architecture", "llama");
    string("general.name", "tiny random llama");
    u32("llama.block_count", spec.n_layers);
    u32("llama.context_length", spec.context_length);
    u32("llama.embedding_length", spec.n_embd);
    u32("llama.feed_forward_length", spec.n_ff);
    u32("llama.attention.head_count", spec.n_heads);
    u32("llama.attention.head_count_kv", spec.n_kv_heads);
    u32("llama.rope.dimension_count", head_dim);
    f32("llama.rope.freq_base", spec.rope_theta);
    f32("llama.attention.layer_norm_rms_epsilon", spec.norm_eps);
    u32("llama.vocab_size", static_cast<uint32_t>(n_vocab));
    string("tokenizer.ggml.model", "gpt2");
    string("tokenizer.ggml.pre", "smollm");
    if (wanted("tokenizer.ggml.tokens")) writer.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
    if (wanted("tokenizer.ggml.token_type"))
        writer.add_array<int32_t>("tokenizer.ggml.token_type", gguf::ValueType::i32, vocabulary.kinds);
    if (wanted("tokenizer.ggml.merges")) writer.add_strings("tokenizer.ggml.merges", vocabulary.merges);
    u32("tokenizer.ggml.bos_token_id", 1);
    u32("tokenizer.ggml.eos_token_id", 2);
    u32("tokenizer.ggml.unknown_token_id", 0);
    u32("tokenizer.ggml.padding_token_id", 2);
    boolean("tokenizer.ggml.add_bos_token", false);
    boolean("tokenizer.ggml.add_space_prefix", false);
    string("tokenizer.chat_template", chat_template);
    if (spec.extra_metadata) spec.extra_metadata(writer);

    // The writer keeps views: a deque does not move what it holds.
    std::deque<std::vector<std::byte>> store;
    uint64_t stream = 0;
    const auto tensor = [&](const std::string& name, Type type, uint64_t row, uint64_t rows, float mean, float sigma) {
        // Each tensor has a stream of its own, so leaving one out does not change the others.
        Random random(spec.seed * 0x2545f4914f6cdd1du + ++stream * base::golden_gamma);
        if (!wanted(name)) return;
        CHECK_EQ(row % quant::info(type).block_elements, 0u);
        store.push_back(random_tensor(type, row * rows, mean, sigma, random));
        const uint64_t dims[] = {row, rows};
        writer.add_tensor(name, type, std::span(dims, rows == 1 ? 1 : 2), store.back());
    };
    const auto matrix = [&](const std::string& name, uint64_t n_in, uint64_t n_out) {
        tensor(name, spec.type_of ? spec.type_of(name) : spec.type, n_in, n_out, 0, 1 / std::sqrt(static_cast<float>(n_in)));
    };
    const auto norm = [&](const std::string& name) { tensor(name, Type::f32, spec.n_embd, 1, 1, 0.1f); };
    const auto embedding = [&](const std::string& name, float sigma) {
        tensor(name, spec.type_of ? spec.type_of(name) : spec.embedding_type, spec.n_embd, n_vocab, 0, sigma);
    };
    // Logits get a deviation of about 3: clear winners, yet no single token for ever.
    const float logit_sigma = 3 / std::sqrt(static_cast<float>(spec.n_embd));
    embedding("token_embd.weight", spec.tied_embeddings ? logit_sigma : 1);
    for (uint32_t layer = 0; layer < spec.n_layers; ++layer) {
        const std::string prefix = "blk." + std::to_string(layer) + ".";
        norm(prefix + "attn_norm.weight");
        matrix(prefix + "attn_q.weight", spec.n_embd, spec.n_embd);
        matrix(prefix + "attn_k.weight", spec.n_embd, uint64_t{head_dim} * spec.n_kv_heads);
        matrix(prefix + "attn_v.weight", spec.n_embd, uint64_t{head_dim} * spec.n_kv_heads);
        matrix(prefix + "attn_output.weight", spec.n_embd, spec.n_embd);
        norm(prefix + "ffn_norm.weight");
        matrix(prefix + "ffn_gate.weight", spec.n_embd, spec.n_ff);
        matrix(prefix + "ffn_up.weight", spec.n_embd, spec.n_ff);
        matrix(prefix + "ffn_down.weight", spec.n_ff, spec.n_embd);
    }
    norm("output_norm.weight");
    if (!spec.tied_embeddings) embedding("output.weight", logit_sigma);
    std::vector<float> factors(head_dim / 2);
    if (spec.rope_freqs && wanted("rope_freqs.weight")) {
        for (size_t i = 0; i < factors.size(); ++i) factors[i] = 1 + 7 * static_cast<float>(i) / static_cast<float>(factors.size());
        const uint64_t dims[] = {factors.size()};
        writer.add_tensor("rope_freqs.weight", Type::f32, dims, std::as_bytes(std::span(factors)));
    }
    return writer.bytes();
}

void write_model(const ModelSpec& spec, const std::string& path) {
    const std::vector<std::byte> image = build_model(spec);
    std::FILE* out = std::fopen(path.c_str(), "wb");
    CHECK(out != nullptr);
    CHECK_EQ(std::fwrite(image.data(), 1, image.size(), out), image.size());
    CHECK_EQ(std::fclose(out), 0);
}

}  // namespace support
