// Tokenizer on a pipe, for tokenizer_parity.py.
//   tokenizer_driver MODEL           records on stdin: u32 flags (1 = parse_special), u32 length, bytes;
//                                    answers on stdout: u32 count, count x i32
//   tokenizer_driver --classes       one letter of o, L, N, S for each code point
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "gguf/file.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    if (std::strcmp(argv[1], "--classes") == 0) {
        for (uint32_t cp = 0; cp < 0x110000; ++cp) std::putchar("oLNS"[static_cast<int>(text::char_class(cp))]);
        return 0;
    }
    std::ifstream in(argv[1], std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    auto file = gguf::File::parse(std::as_bytes(std::span(bytes)), argv[1]);
    if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
    auto tokenizer = text::Tokenizer::from_gguf(file.value());
    if (!tokenizer) return std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str()), 1;
    uint32_t header[2];
    std::string record;
    std::vector<text::TokenId> ids;
    while (std::fread(header, sizeof header, 1, stdin) == 1) {
        record.resize(header[1]);
        if (std::fread(record.data(), 1, record.size(), stdin) != record.size()) return 3;
        ids.clear();
        tokenizer.value()->encode(record, header[0] & 1, ids);
        const uint32_t count = static_cast<uint32_t>(ids.size());
        std::fwrite(&count, sizeof count, 1, stdout);
        std::fwrite(ids.data(), sizeof ids[0], ids.size(), stdout);
    }
    return 0;
}
