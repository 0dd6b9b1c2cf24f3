// The gate alone: bytes in, verdict out. What is right comes from RFC 9112 and RFC 9110 (sections given), from the list of
// inputs that Beast 1.81 lets through, and from the rules that uNetworking/h1spec checks, in words and bytes of our own.
#include <gtest/gtest.h>

#include "base/message.h"
#include "server/gate.h"

namespace {

using server::ChunkGate;
using server::GateState;
using server::HeadGate;
using server::HttpLimits;

const HttpLimits bounds;

// 0: passes; -1: needs more; else the status of the refusal.
int verdict(std::string_view bytes) {
    HeadGate gate(bounds);
    switch (gate.scan(bytes)) {
        case GateState::complete: return 0;
        case GateState::more: return -1;
        case GateState::refused: return static_cast<int>(gate.refusal().status);
    }
    return -2;
}

// A request whose header block is `fields`.
int with_fields(std::string_view fields, std::string_view method = "POST") {
    return verdict(std::string(method) + " /x HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n");
}

int with_target(std::string_view target, std::string_view method = "GET") {
    return verdict(std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

// 0: body complete; -1: needs more; else status. `used` gets the bytes taken.
int chunk_verdict(std::string_view bytes, size_t* used_out = nullptr, size_t limit = 1'000'000) {
    ChunkGate gate(limit);
    size_t used = 0;
    const GateState state = gate.feed(bytes, used);
    if (used_out) *used_out = used;
    if (state == GateState::complete) return 0;
    return state == GateState::more ? -1 : static_cast<int>(gate.refusal().status);
}

TEST(HttpGate, EveryPrefixOfARequestWaitsForMore) {
    const std::string request = "POST /hello?a=b HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 3\r\nX: \tv v\t\r\n\r\n";
    for (size_t n = 0; n < request.size(); ++n) EXPECT_EQ(verdict(request.substr(0, n)), -1) << n;
    EXPECT_EQ(verdict(request), 0);
}

TEST(HttpGate, ResultDoesNotDependOnHowTheBytesArrive) {
    for (const std::string request :
         {"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest", "GET / HTTP/1.1\r\nHost: a\r\nB\x01: c\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nT: x\r\n folded\r\n\r\n", "\r\n\r\nGET"}) {
        HeadGate bytewise(bounds);
        GateState state = GateState::more;
        for (size_t n = 1; n <= request.size() && state == GateState::more; ++n)
            state = bytewise.scan(std::string_view(request).substr(0, n));
        HeadGate whole(bounds);
        EXPECT_EQ(state, whole.scan(request)) << request;
        EXPECT_EQ(bytewise.refusal().message, whole.refusal().message);
        EXPECT_EQ(bytewise.head_bytes(), whole.head_bytes());
    }
}

TEST(HttpGate, TakesApartAPlainRequest) {
    HeadGate gate(bounds);
    ASSERT_EQ(gate.scan("POST /a%20b/c%2Fd?q=%20&r HTTP/1.1\r\nhOST:\tExample.com:81 \r\nempty:\r\nX-Two: 1\r\nx-two: 2\r\n"
                        "content-LENGTH: 007\r\nExpect: 100-Continue\r\n\r\nbody"),
              GateState::complete);
    const server::Head& head = gate.head();
    EXPECT_EQ(head.method, "POST");
    EXPECT_EQ(head.path, "/a b/c/d");
    EXPECT_EQ(head.query, "q=%20&r");
    EXPECT_EQ(head.host, "Example.com:81");
    EXPECT_EQ(head.content_length, 7u);
    EXPECT_TRUE(head.expect_continue);
    EXPECT_TRUE(head.keep_alive);
    EXPECT_FALSE(head.chunked);
    ASSERT_EQ(head.headers.size(), 6u);
    EXPECT_EQ(head.headers[1], (std::pair<std::string, std::string>("empty", "")));
    EXPECT_EQ(head.header("x-two"), "1");
}

TEST(HttpGate, RequestLine) {
    EXPECT_EQ(verdict("GET / \r\n\r\n"), 400);                      // no version
    EXPECT_EQ(verdict("GET /\r\n\r\n"), 400);                       // HTTP/0.9
    EXPECT_EQ(verdict("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);  // two blanks
    EXPECT_EQ(verdict("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), 400);  // blank at the end
    EXPECT_EQ(verdict(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("junk wordGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);  // something before the request
    EXPECT_EQ(verdict("GET / HTTP/9.9\r\nHost: a\r\n\r\n"), 505);
    EXPECT_EQ(verdict("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505);
    EXPECT_EQ(verdict("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
    EXPECT_EQ(verdict("GET / HTTP/1.10\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/11\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / http/1.1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1,1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("G@T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);   // no token
    EXPECT_EQ(verdict("FROB / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);  // unknown method
    EXPECT_EQ(verdict("get / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);   // methods have case
    EXPECT_EQ(verdict("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
    EXPECT_EQ(verdict("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
}

TEST(HttpGate, ForeignProtocolsAreToldAtOnce) {
    EXPECT_EQ(verdict("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);               // HTTP/2 with prior knowledge
    EXPECT_EQ(verdict(std::string_view("\x16\x03\x01\x02\x00\x01", 6)), 400);  // TLS ClientHello, no line end in sight
    EXPECT_EQ(verdict("SSH-2.0-OpenSSH_9.2\r\n"), 400);
    EXPECT_EQ(verdict(std::string(bounds.target_bytes + 100, 'a')), 414);  // noise without a line end
    EXPECT_EQ(verdict(std::string_view("\0", 1)), 400);
}

TEST(HttpGate, LineEnds) {
    EXPECT_EQ(verdict("GET / HTTP/1.1\nHost: a\n\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n"), 400);  // CR in place of the last line
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), 400);
    // 9112 2.2: one empty line before a request is passed over.
    EXPECT_EQ(verdict("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    EXPECT_EQ(verdict("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(verdict("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    HeadGate gate(bounds);
    const std::string request = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_EQ(gate.scan(request + "next"), GateState::complete);
    EXPECT_EQ(gate.skip_bytes(), 2u);
    EXPECT_EQ(gate.head_bytes(), request.size());
}

TEST(HttpGate, HeaderLines) {
    EXPECT_EQ(with_fields("X-Empty: \r\n"), 0);
    EXPECT_EQ(with_fields("X-Empty:\r\n"), 0);
    EXPECT_EQ(with_fields("X-Utf8: gr\xc3\xbc\xc3\x9f\r\n"), 0);  // obs-text
    EXPECT_EQ(with_fields("X-Tab: a\tb\r\n"), 0);
    EXPECT_EQ(with_fields("!#$%&'*+-.^_`|~09azAZ: v\r\n"), 0);  // every tchar
    EXPECT_EQ(with_fields("X-Name[]: v\r\n"), 400);
    EXPECT_EQ(with_fields("X Name: v\r\n"), 400);
    EXPECT_EQ(with_fields("X-Name : v\r\n"), 400);  // 9112 5.1: blank before the colon
    EXPECT_EQ(with_fields("X-Name\t: v\r\n"), 400);
    EXPECT_EQ(with_fields(": v\r\n"), 400);
    EXPECT_EQ(with_fields("X-Name\r\n"), 400);  // no colon
    EXPECT_EQ(with_fields("X-N\xc3\xa4me: v\r\n"), 400);
    EXPECT_EQ(with_fields("X: bell\x07\r\n"), 400);
    EXPECT_EQ(with_fields("X: esc\x1b[2J\r\n"), 400);
    EXPECT_EQ(with_fields("X: del\x7f\r\n"), 400);
    EXPECT_EQ(with_fields(std::string_view("X: n\0l\r\n", 8)), 400);
    EXPECT_EQ(with_fields(std::string_view("X\0: nul\r\n", 9)), 400);
    // 5.2: obsolete folding, on any header and before the first.
    EXPECT_EQ(with_fields("X: a\r\n b\r\n"), 400);
    EXPECT_EQ(with_fields("X: a\r\n\tb\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer-Encoding:\r\n chunked\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400);
}

TEST(HttpGate, HostIsThereOnceAndValid) {
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
    EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"), 400);
    for (const std::string_view bad : {"",     " ",    "a b", "a:b", "a:99999", "a:1:2",          "a/b",  "a@b",  "user@a", "a,b",     "..",
                                       "a..b", "[::1", "::1", "[x]", "[::1]x",  "[fe80::1%eth0]", "a:-1", "a:+1", "a%00b",  "http://a"})
        EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: " + std::string(bad) + "\r\n\r\n"), 400) << bad;
    for (const std::string_view good :
         {"a", "a:", "a:80", "LOCALHOST.", "[::1]:80", "[::1]", "127.0.0.1:8080", "my_box.local", "xn--bcher-kva.example:65535"})
        EXPECT_EQ(verdict("GET / HTTP/1.1\r\nHost: " + std::string(good) + "\r\n\r\n"), 0) << good;
    EXPECT_EQ(verdict("GET / HTTP/1.0\r\n\r\n"), 0);  // HTTP/1.0 knows no Host
    EXPECT_EQ(verdict("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
}

TEST(HttpGate, TransferEncodingIsChunkedAndNothingElse) {
    EXPECT_EQ(with_fields("Transfer-Encoding: chunked\r\n"), 0);
    EXPECT_EQ(with_fields("Transfer-Encoding: CHUNKED\r\n"), 0);
    for (const std::string_view bad : {"identity", "xchunked", "chunked, identity", "gzip, chunked", "gzip", "chunked, chunked", "chunked,",
                                       ",chunked", "chunked;q=1", "\"chunked\"", "", "chun ked", "chunked\x0b"})
        EXPECT_EQ(with_fields("Transfer-Encoding: " + std::string(bad) + "\r\n"), 400) << bad;
    EXPECT_EQ(with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
    EXPECT_EQ(with_fields("content-LengtH: 5\r\nTransFer-Encoding: chunked\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"), 400);
    EXPECT_EQ(verdict("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer_Encoding: chunked\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer---Encoding: chunked\r\n"), 400);
    EXPECT_EQ(with_fields("Content_Length: 5\r\n"), 400);
    EXPECT_EQ(with_fields("Transfer-Encoding: chunked\r\n", "GET"), 400);
    EXPECT_EQ(with_fields("Content-Length: 1\r\n", "HEAD"), 400);
    EXPECT_EQ(with_fields("Content-Length: 0\r\n", "GET"), 0);
}

TEST(HttpGate, ContentLengthIsADecimalNumber) {
    for (const std::string_view good : {"0", "5", "05", "4194304"})
        EXPECT_EQ(with_fields("Content-Length: " + std::string(good) + "\r\n"), 0) << good;
    for (const std::string_view bad :
         {"+5", "-1", "-1234", "0x5", "5, 5", "5, 6", "5 5", "5;", "abc", "", "1e3", "5.0", "18446744073709551616", "18446744073709551615",
          "9223372036854775808", "-123456789123456789123456789", "000000000000000000005"})
        EXPECT_EQ(with_fields("Content-Length: " + std::string(bad) + "\r\n"), 400) << bad;
    EXPECT_EQ(with_fields("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
    EXPECT_EQ(with_fields("Content-Length: 5\r\nContent-Length: 6\r\n"), 400);
    EXPECT_EQ(with_fields("Content-Length: " + std::to_string(bounds.body_bytes + 1) + "\r\n"), 413);
    EXPECT_EQ(with_fields("Content-Length: 10000000000\r\nExpect: 100-continue\r\n"), 413);
}

TEST(HttpGate, Targets) {
    for (const std::string_view good :
         {"/", "/a/b", "/a?b=c&d=[1]{2}|3^4`5\\", "/%41", "/v1/models/org%2Fname:tag", "/~user/a;b=c", "/a//b", "http://localhost/",
          "HTTP://LOCALHOST/x?y", "http://localhost", "http://localhost?q", "/a.b/..c/.d"})
        EXPECT_EQ(with_target(good), 0) << good;
    for (const std::string_view bad : {"*",
                                       "a",
                                       "a/b",
                                       "//..",
                                       "/../",
                                       "/a/../b",
                                       "/a/..",
                                       "/.",
                                       "/%2e%2e/",
                                       "/%2E%2e",
                                       "/a/%2e/b",
                                       "/%00",
                                       "/a%0d%0ab",
                                       "/%7f",
                                       "/%c0%ae",
                                       "/%c0%ae%c0%ae/x",
                                       "/%ff",
                                       "/%ed%a0%80",
                                       "/%",
                                       "/%4",
                                       "/%zz",
                                       "/a#b",
                                       "/a?b#c",
                                       "/a\"b",
                                       "/<",
                                       "/a\\b",
                                       "/a\x80",
                                       "ftp://localhost/",
                                       "http://",
                                       "http:///x",
                                       "http://a b/",
                                       "http://u:p@localhost/",
                                       "http://localhost:99999/",
                                       "localhost:80",
                                       "http://other/"})
        EXPECT_EQ(with_target(bad), 400) << bad;
    EXPECT_EQ(with_target("*", "OPTIONS"), 0);
    EXPECT_EQ(with_target(base::cat('/', std::string(bounds.target_bytes, 'a'))), 414);
    EXPECT_EQ(with_target(base::cat('/', std::string(9'000, 'a'))), 414);
    EXPECT_EQ(with_target(base::cat('/', std::string(bounds.target_bytes - 1, 'a'))), 0);
}

TEST(HttpGate, SizeAndCountOfHeaders) {
    std::string many;
    for (size_t i = 0; i + 1 < bounds.headers_count; ++i) many += "a:\r\n";
    EXPECT_EQ(with_fields(many), 0);
    EXPECT_EQ(with_fields(many + "a:\r\n"), 431);
    EXPECT_EQ(with_fields("A: " + std::string(bounds.header_bytes, 'x') + "\r\n"), 431);
    std::string ten_thousand;
    for (int i = 0; i < 10'000; ++i) ten_thousand += "x: y\r\n";
    EXPECT_EQ(with_fields(ten_thousand), 431);
}

TEST(HttpGate, HeadersThatMayComeOnce) {
    for (const std::string_view name : {"Authorization", "X-Api-Key", "Content-Type", "Origin", "Expect"})
        EXPECT_EQ(with_fields(std::string(name) + ": 100-continue\r\n" + std::string(name) + ": 100-continue\r\n"), 400) << name;
    EXPECT_EQ(with_fields("Accept: a\r\nAccept: b\r\n"), 0);
    EXPECT_EQ(with_fields("Expect: tea\r\n"), 417);
}

TEST(HttpGate, KeepAlive) {
    const auto keeps = [](std::string_view bytes) {
        HeadGate gate(bounds);
        EXPECT_EQ(gate.scan(bytes), GateState::complete);
        return gate.head().keep_alive;
    };
    EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, keep-alive\r\n\r\n"));
    EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive ,\t CLOSE\r\n\r\n"));
    EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: te\r\nConnection: close\r\n\r\n"));
    EXPECT_FALSE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

// Beast read one head and the gate another: whatever differs is refused.
TEST(HttpGate, BothReadingsMustAgree) {
    const auto disagreement = [](std::string_view ours, std::string_view beasts) -> std::string {
        HeadGate gate(bounds);
        EXPECT_EQ(gate.scan(ours), GateState::complete) << ours;
        server::BeastParser parser;
        boost::system::error_code error;
        parser.put(boost::asio::buffer(beasts.data(), beasts.size()), error);
        EXPECT_FALSE(error) << beasts;
        const auto refusal = server::check_parsed(gate.head(), parser);
        if (refusal) { EXPECT_EQ(refusal->status, 400u); }
        return refusal ? refusal->message : "";
    };
    const std::string plain = "POST /a HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\nContent-Length: 5\r\n\r\n";
    const std::string chunked = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(disagreement(plain, plain), "");
    EXPECT_EQ(disagreement(chunked, chunked), "");
    const auto with = [&](std::string_view from, std::string_view to) {
        std::string text = plain;
        return text.replace(text.find(from), from.size(), to);
    };
    EXPECT_NE(disagreement(plain, with("POST", "PUT")).find("request line"), std::string::npos);
    EXPECT_NE(disagreement(plain, with("/a", "/b")).find("request line"), std::string::npos);
    EXPECT_NE(disagreement(plain, with("1.1", "1.0")).find("version"), std::string::npos);
    EXPECT_NE(disagreement(plain, with("X: 1\r\n", "")).find("headers"), std::string::npos);
    EXPECT_NE(disagreement(plain, with("X: 1\r\n", "X: 3\r\n")).find("headers"), std::string::npos);
    EXPECT_NE(disagreement(plain, with("X: 1\r\n", "Y: 1\r\n")).find("headers"), std::string::npos);
    // What Beast 1.81 takes for no body.
    const std::string unknown = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n";
    EXPECT_NE(disagreement(chunked, unknown).find("headers"), std::string::npos);
    EXPECT_NE(disagreement("GET / HTTP/1.1\r\nHost: a\r\nX: close\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), "");
}

TEST(ChunkGate, BodiesThatAreWhole) {
    size_t used = 0;
    for (const std::string_view good :
         {"0\r\n\r\n", "c\r\nHellO world1\r\n0\r\n\r\n", "C\r\nHellO world1\r\n0\r\n\r\n", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
          "0000000000000001\r\na\r\n0\r\n\r\n", "1;a=b;c\r\nx\r\n0;last\r\n\r\n", "1;a=\"q \\\" ;\t\"\r\nx\r\n0\r\n\r\n",
          "0\r\nTrailer: v\r\nOther:\r\n\r\n"}) {
        EXPECT_EQ(chunk_verdict(std::string(good) + "GET / HTTP/1.1\r\n", &used), 0) << good;
        EXPECT_EQ(used, good.size()) << good;
        for (size_t n = 0; n < good.size(); ++n) EXPECT_EQ(chunk_verdict(good.substr(0, n)), -1) << good.substr(0, n);
    }
}

TEST(ChunkGate, BodiesThatAreRefused) {
    for (const std::string_view bad : {"\r\n",
                                       "x\r\n",
                                       "-1\r\n",
                                       "+1\r\n",
                                       "0x1\r\n",
                                       "1 \r\n",
                                       " 1\r\n",
                                       "1\n",
                                       "1\r\r\n",
                                       "1\ra",
                                       "1\r\naa\r\n",
                                       "1\r\na\n",
                                       "1\r\na\r\r",
                                       "1\r\na0\r\n",
                                       "00000000000000001\r\n",
                                       "fffffffffffffffff\r\n",
                                       "1;\r\n",
                                       "1; a\r\n",
                                       "1;a=\r\n",
                                       "1;a=b c\r\n",
                                       "1;a=\"x\nGET / HTTP/1.1\"\r\n",
                                       "1;a=\"x\r\n",
                                       "1;a=\"x\"y\r\n",
                                       "1;a\n",
                                       "1;\x01\r\n",
                                       "0\r\n\n",
                                       "0\r\nA: b\n\r\n",
                                       "0\r\n folded\r\n",
                                       "0\r\nA : b\r\n\r\n",
                                       "0\r\nA: b\r\n c\r\n\r\n",
                                       "0\r\nnocolon\r\n\r\n",
                                       "0\r\n\rX",
                                       "0\r\nA: \x01\r\n\r\n"})
        EXPECT_EQ(chunk_verdict(bad), 400) << bad;
    EXPECT_EQ(chunk_verdict("fffffffffffffffe\r\n"), 413);  // -2, which wrapped elsewhere
    EXPECT_EQ(chunk_verdict("ffffffffffffffff\r\n"), 413);
    EXPECT_EQ(chunk_verdict("65\r\n", nullptr, 100), 413);  // 101 of 100
    EXPECT_EQ(chunk_verdict("32\r\n" + std::string(50, 'a') + "\r\n33\r\n", nullptr, 100), 413);
    EXPECT_EQ(chunk_verdict("64\r\n" + std::string(100, 'a') + "\r\n0\r\n\r\n", nullptr, 100), 0);
}

TEST(ChunkGate, ExtensionsAndTrailersHaveAnEnd) {
    // Fed without end, each is refused after a named number of bytes.
    const auto bytes_until_refused = [](std::string_view start, std::string_view unit) -> size_t {
        ChunkGate gate(1'000'000);
        size_t used = 0, total = 0;
        if (gate.feed(start, used) != GateState::more) return 0;
        while (total < 64 * limits::mib) {
            const GateState state = gate.feed(unit, used);
            total += used;
            if (state == GateState::refused) return total;
        }
        return total;
    };
    EXPECT_LE(bytes_until_refused("1;a=", std::string(1'000, 'x')), limits::http_chunk_line_bytes);
    EXPECT_LE(bytes_until_refused("1;a=\"", std::string(1'000, 'x')), limits::http_chunk_line_bytes);
    EXPECT_LE(bytes_until_refused("0\r\n", "Name: value\r\n"), limits::http_trailer_bytes);
    EXPECT_LE(bytes_until_refused("0\r\nName: ", std::string(1'000, 'x')), limits::http_trailer_bytes);
    // Many short extensions add up: 4,096 bytes of them at 9 a chunk.
    EXPECT_LE(bytes_until_refused("", "1;ext=abc\r\nx\r\n"), (limits::http_chunk_extension_bytes / 8 + 1) * 14);
    EXPECT_EQ(bytes_until_refused("", "1\r\nx\r\n"), 6'000'001u);  // without extensions the body ends it: 1,000,000 chunks and a digit
}

}  // namespace
