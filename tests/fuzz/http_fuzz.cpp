// A client's bytes through the whole connection: gate, Beast's parser, body framing, checks, answers. The first byte says
// how the bytes are cut into pieces and whether an operation on the socket fails; the rest is what the client sends.
// Besides not crashing: the same bytes give the same answers however they are cut, all output is well-formed
// answers in order, the handler saw as many requests as there are 200s, and after a refusal nothing follows.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "tests/server/http_harness.h"

namespace {

using http_test::MemoryServer;
using http_test::Reply;

struct Outcome {
    std::string text;
    uint64_t requests = 0;
};

server::HttpOptions options() {
    server::HttpOptions options;
    // Small enough for a fuzzer to reach.
    options.limits.header_bytes = 512;
    options.limits.target_bytes = 128;
    options.limits.headers_count = 12;
    options.limits.read_buffer_bytes = 8'192;
    options.limits.body_bytes = 4'096;
    options.limits.linger_time_ms = 1;
    options.cors_origins = {"http://app.example"};
    return options;
}

boost::asio::awaitable<void> quiet_echo(server::HttpRequest request, server::ResponseWriter& writer) {
    CHECK(!request.path.empty() && (request.path[0] == '/'));
    CHECK(request.path.find('\0') == std::string::npos && request.path.find("/../") == std::string::npos);
    CHECK_LE(request.body.size(), 4'096u);
    server::HttpResponse response;
    response.headers.emplace_back("X-Path", request.path);
    response.body = std::move(request.body);
    co_await writer.respond(std::move(response));
}

// One server for all runs, as one process serves all clients.
MemoryServer& server_under_test() {
    static MemoryServer memory(options(), quiet_echo);
    return memory;
}

Outcome talk(std::string_view bytes, size_t piece, boost::beast::test::fail_count* fail) {
    MemoryServer& memory = server_under_test();
    memory.log.clear();
    const uint64_t before = memory.shared->stats.requests;
    std::unique_ptr<http_test::MemoryStream> client = memory.connect(fail);
    for (size_t at = 0; at < bytes.size(); at += piece) {
        boost::system::error_code ignored;
        client->write_some(boost::asio::buffer(bytes.data() + at, std::min(piece, bytes.size() - at)), ignored);
        memory.poll();
    }
    client->close();
    memory.run();
    CHECK_EQ(memory.shared->connections.size(), 0u);
    CHECK(memory.log.empty());  // nothing threw
    return {std::string(client->str().data(), client->str().size()), memory.shared->stats.requests - before};
}

std::string without_ids(std::string text) {
    for (size_t at = 0; (at = text.find("req_", at)) != std::string::npos; ++at)
        text.replace(at, std::min<size_t>(20, text.size() - at), "-");
    return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0 || size > 20'000) return 0;
    const uint8_t control = data[0];
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (control >= 0xc0) {
        boost::beast::test::fail_count fail(control & 0x3f);
        talk(bytes, 100, &fail);
        return 0;
    }
    const Outcome whole = talk(bytes, std::max<size_t>(bytes.size(), 1), nullptr);
    if (control > 0) {
        const Outcome pieces = talk(bytes, control, nullptr);
        CHECK_EQ(pieces.requests, whole.requests);
        // The interim 100 depends on whether the body was there already.
        if (whole.text.find("HTTP/1.1 100") == std::string::npos && pieces.text.find("HTTP/1.1 100") == std::string::npos)
            CHECK(without_ids(pieces.text) == without_ids(whole.text));
    }
    if (bytes.find("HEAD") != std::string_view::npos) return 0;  // answers without bodies: not to be told apart here
    const std::vector<Reply> replies = http_test::parse_replies(whole.text);
    uint64_t handled = 0;
    for (size_t i = 0; i < replies.size(); ++i) {
        const Reply& reply = replies[i];
        CHECK(reply.status >= 100 && reply.status < 600 && reply.whole);
        if (reply.status == 200) ++handled;
        if (reply.status >= 400 || reply.header("connection") == "close") CHECK_EQ(i + 1, replies.size());
    }
    CHECK_EQ(handled, whole.requests);
    return 0;
}
