// Tokenizer on a pipe, for tokenizer_parity.py.
//   tokenizer_driver MODEL           records on stdin: u32 flags (1 = parse_special), u32 length, bytes;
//                                    answers on stdout: u32 count, count x i32
//   tokenizer_driver --split         records: u32 length of the name and the name of a pre-tokenizer, then as above;
//                                    answers: u32 count, count x i32 lengths of the pre-tokens in bytes
//   tokenizer_driver --nfc           records: u32 0, u32 length, bytes; answers: u32 length, bytes in normal form C
//   tokenizer_driver --names         the names of the pre-tokenizers
//   tokenizer_driver --classes       one letter a code point: U W T M L (letters) K (mark) N P Y S o
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "gguf/file.h"
#include "text/pretokenize.h"
#include "text/tokenizer.h"
#include "text/unicode.h"
#include "text/unicode_nfc.h"

namespace {

bool read(void* to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

void answer(const std::vector<int32_t>& values) {
    const uint32_t count = static_cast<uint32_t>(values.size());
    std::fwrite(&count, sizeof count, 1, stdout);
    std::fwrite(values.data(), sizeof values[0], values.size(), stdout);
}

int split() {
    uint32_t bytes;
    std::string name, record;
    while (read(&bytes, sizeof bytes)) {
        name.resize(bytes);
        if (!read(name.data(), bytes) || !read(&bytes, sizeof bytes)) return 3;
        record.resize(bytes);
        if (!read(record.data(), bytes)) return 3;
        const text::PreTokenizer* pre = text::find_pre_tokenizer(name);
        if (!pre) return std::fprintf(stderr, "no pre-tokenizer %s\n", name.c_str()), 1;
        std::vector<int32_t> lengths;
        text::PreTokens tokens(*pre, record);
        for (std::string_view piece; tokens.next(piece);) lengths.push_back(static_cast<int32_t>(piece.size()));
        answer(lengths);
    }
    return 0;
}

int normalize() {
    uint32_t header[2];
    std::string record;
    while (read(header, sizeof header)) {
        record.resize(header[1]);
        if (!read(record.data(), record.size())) return 3;
        const std::string normal = text::is_surely_nfc(record) ? record : text::nfc(record);
        const uint32_t bytes = static_cast<uint32_t>(normal.size());
        std::fwrite(&bytes, sizeof bytes, 1, stdout);
        std::fwrite(normal.data(), 1, bytes, stdout);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    if (std::strcmp(argv[1], "--classes") == 0) {
        for (uint32_t cp = 0; cp < 0x110000; ++cp) std::putchar("UWTMLKNPYSo"[static_cast<int>(text::char_class(cp))]);
        return 0;
    }
    if (std::strcmp(argv[1], "--split") == 0) return split();
    if (std::strcmp(argv[1], "--nfc") == 0) return normalize();
    if (std::strcmp(argv[1], "--names") == 0) return std::printf("%s\n", text::pre_tokenizer_names().c_str()), 0;
    std::ifstream in(argv[1], std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    auto file = gguf::File::parse(std::as_bytes(std::span(bytes)), argv[1]);
    if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
    auto tokenizer = text::Tokenizer::from_gguf(file.value());
    if (!tokenizer) return std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str()), 1;
    uint32_t header[2];
    std::string record;
    std::vector<text::TokenId> ids;
    while (read(header, sizeof header)) {
        record.resize(header[1]);
        if (!read(record.data(), record.size())) return 3;
        ids.clear();
        tokenizer.value()->encode(record, header[0] & 1, ids);
        answer(ids);
    }
    return 0;
}
