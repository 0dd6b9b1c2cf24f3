// The connection over a socket in memory: order, framing, leftover bytes, clients that leave, handlers that fail, and
// every I/O operation failing in turn.
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "http_harness.h"
#include "server/sse.h"

namespace {

using http_test::MemoryServer;
using http_test::parse_replies;
using http_test::statuses;
namespace asio = boost::asio;
using server::HttpRequest;
using server::HttpResponse;
using server::ResponseWriter;

const std::string get = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string post = "POST /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";
const std::string chunked =
    "POST /c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n";

TEST(HttpConnection, AnswersInOrder) {
    MemoryServer memory;
    const auto replies = memory.replies(get + post + chunked + get);
    ASSERT_EQ(statuses(replies), "200 200 200 200");
    EXPECT_EQ(replies[0].body, "GET /a ");
    EXPECT_EQ(replies[1].body, "POST /b hello");
    EXPECT_EQ(replies[2].body, "POST /c hello world");
    EXPECT_EQ(replies[0].header("connection"), "keep-alive");
    EXPECT_EQ(replies[0].header("x-content-type-options"), "nosniff");
    EXPECT_EQ(memory.shared->connections.size(), 0u);
}

TEST(HttpConnection, AThousandPipelinedRequestsInOneSegment) {
    MemoryServer memory;
    std::string requests;
    for (int i = 0; i < 1'000; ++i) requests += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    const auto replies = memory.replies(requests);
    ASSERT_EQ(replies.size(), 1'000u);
    for (int i = 0; i < 1'000; ++i) {
        EXPECT_EQ(replies[static_cast<size_t>(i)].status, 200);
        EXPECT_EQ(replies[static_cast<size_t>(i)].body, "POST /" + std::to_string(i) + " x");
    }
}

// In Beast 1.81 an assertion fails when the last chunk comes first and in pieces; every cut of every kind of body.
TEST(HttpConnection, ChunkedBodiesInAnyTwoPieces) {
    const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const std::string& body :
         {std::string("0\r\n\r\n"), std::string("000\r\n\r\n"), std::string("0;e=\"v\"\r\n\r\n"), std::string("0\r\nT: v\r\nU: w\r\n\r\n"),
          std::string("1\r\nx\r\n0\r\n\r\n"), std::string("1;e\r\nx\r\n002\r\nyz\r\n0\r\nT:\r\n\r\n")}) {
        const std::string bytes = head + body + get;
        for (size_t cut = head.size() - 2; cut < bytes.size(); ++cut) {
            MemoryServer memory;
            auto client = memory.connect();
            client->write_some(asio::buffer(bytes.data(), cut));
            memory.poll();
            client->write_some(asio::buffer(bytes.data() + cut, 1));
            memory.poll();
            if (cut + 1 < bytes.size()) client->write_some(asio::buffer(bytes.data() + cut + 1, bytes.size() - cut - 1));
            memory.poll();
            const std::string text(client->str().data(), client->str().size());
            EXPECT_EQ(statuses(parse_replies(text)), "200 200") << body << " cut at " << cut - head.size();
            client->close();
            memory.run();
        }
    }
}

TEST(HttpConnection, ByteByByte) {
    MemoryServer memory;
    auto client = memory.connect();
    for (const char c : get + chunked + post) {
        client->write_some(asio::buffer(&c, 1));
        memory.poll();
    }
    const auto text = client->str();
    EXPECT_EQ(statuses(parse_replies({text.data(), text.size()})), "200 200 200");
    client->close();
    memory.run();
    EXPECT_EQ(memory.shared->connections.size(), 0u);
}

TEST(HttpConnection, BodiesOfAllSizesComeWhole) {
    MemoryServer memory;
    for (const size_t n : {0u, 1u, 4'095u, 4'096u, 4'097u, 65'535u, 65'536u, 65'537u, 300'000u}) {
        std::string body(n, 'b');
        for (size_t i = 0; i < n; ++i) body[i] = static_cast<char>('a' + i % 23);
        auto replies = memory.replies("POST /n HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(n) + "\r\n\r\n" + body);
        ASSERT_EQ(replies.size(), 1u);
        EXPECT_EQ(replies[0].body, "POST /n " + body);
        std::string framed;
        for (size_t at = 0, piece = 1; at < n; at += piece, piece = piece * 3 % 9'001 + 1) {
            piece = std::min(piece, n - at);
            char size[20];
            std::snprintf(size, sizeof size, "%zX\r\n", piece);
            framed += size + body.substr(at, piece) + "\r\n";
        }
        replies = memory.replies("POST /n HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + "0\r\n\r\n");
        ASSERT_EQ(replies.size(), 1u);
        EXPECT_EQ(replies[0].body, "POST /n " + body);
    }
}

// Each is followed by a second request in the leftover bytes: one answer, then the end.
TEST(HttpConnection, AfterARefusalNothingMoreIsRead) {
    const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const std::string body = "5\r\nhello\r\n0\r\n\r\n";
    const auto post_with = [](std::string_view fields) { return "POST / HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n"; };
    const std::vector<std::pair<std::string, std::string>> inputs = {
        // What Beast 1.81 lets through.
        {post_with("Transfer-Encoding: identity\r\n") + body, "400"},
        {post_with("Transfer-Encoding: xchunked\r\n") + body, "400"},
        {post_with("Transfer-Encoding: chunked, identity\r\n") + body, "400"},
        {post_with("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n") + "hello", "400"},
        {"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body, "400"},
        {post_with("X: a\r\n b\r\n"), "400"},
        {post_with("Transfer-Encoding:\r\n chunked\r\n") + body, "400"},
        {"GET / HTTP/1.1\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.com\r\n\r\n", "400"},
        {post_with("Transfer-Encoding: gzip, chunked\r\n") + body, "400"},
        {post_with("Transfer-Encoding: chunked\r\n") + "5;a=\"\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n\"\r\nhello\r\n0\r\n\r\n", "400"},
        // Lengths that disagree or are none.
        {post_with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + body, "400"},
        {post_with("Content-Length: 5\r\nContent-Length: 6\r\n") + "hello", "400"},
        {post_with("Content-Length: 5, 5\r\n") + "hello", "400"},
        {post_with("Content-Length: 5, 6\r\n") + "hello", "400"},
        {post_with("Content-Length: +5\r\n") + "hello", "400"},
        {post_with("Content-Length: 0x5\r\n") + "hello", "400"},
        {post_with("Content-Length: -1\r\n"), "400"},
        {post_with("Content-Length: 18446744073709551616\r\n"), "400"},
        {post_with("Content-Length: 10000000000\r\nExpect: 100-continue\r\n"), "413"},
        {post_with("Expect: 200-ok\r\n"), "417"},
        // Chunks.
        {post_with("Transfer-Encoding: chunked\r\n") + "-1\r\nhello\r\n0\r\n\r\n", "400"},
        {post_with("Transfer-Encoding: chunked\r\n") + "00000000000000005\r\nhello\r\n0\r\n\r\n", "400"},
        {post_with("Transfer-Encoding: chunked\r\n") + "fffffffffffffffe\r\nhello\r\n0\r\n\r\n", "413"},
        {post_with("Transfer-Encoding: chunked\r\n") + "5\nhello\r\n0\r\n\r\n", "400"},
        {post_with("Transfer-Encoding: chunked\r\n") + "5\r\nhello0\r\n\r\n", "400"},
        {post_with("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\nbad trailer\r\n\r\n", "400"},
        {post_with("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\nContent-Length: 5\r\nX : y\r\n\r\n", "400"},
        // Bytes and lines.
        {"GET / HTTP/1.1\nHost: localhost\n\n", "400"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\rX: y\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(1, '\0') + "\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", "400"},
        {"GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
        {"\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
        {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), "400"},
        {std::string(1'000'000, '\xaa'), "400"},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n" +
             [] {
                 std::string s;
                 for (int i = 0; i < 10'000; ++i) s += "a: b\r\n";
                 return s;
             }() +
             "\r\n",
         "431"},
        {"GET /" + std::string(9'000, 'u') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", "414"},
        {"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", "501"},
        {"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n", "405"},
        {"GET /a/../b HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
        {"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n", "403"},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", "403"},
        // Not a refusal, but the last request of its connection.
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200"},
        {"GET / HTTP/1.0\r\n\r\n", "200"},
    };
    for (const auto& [bytes, status] : inputs) {
        MemoryServer memory;
        const auto replies = memory.replies(bytes + smuggled);
        EXPECT_EQ(statuses(replies), status) << bytes.substr(0, 200);
        if (replies.empty()) continue;
        EXPECT_EQ(replies[0].header("connection"), "close") << bytes.substr(0, 200);
        EXPECT_TRUE(replies[0].whole);
        if (status != "200") {
            EXPECT_EQ(replies[0].body.substr(0, 21), "{\"error\":{\"message\":\"") << replies[0].body;
            EXPECT_EQ(memory.shared->stats.requests, 0u) << bytes.substr(0, 200);
        }
        EXPECT_EQ(memory.shared->connections.size(), 0u) << bytes.substr(0, 200);
    }
}

TEST(HttpConnection, SecondRequestMayBeTheBadOne) {
    MemoryServer memory;
    EXPECT_EQ(statuses(memory.replies(get + "GET / HTTP/1.1\r\n\r\n" + get)), "200 400");
}

TEST(HttpConnection, UnfinishedRequestsOfAClientThatLeavesGetNoAnswer) {
    const std::string request = chunked;
    for (size_t n = 0; n < request.size(); ++n) {
        MemoryServer memory;
        EXPECT_EQ(memory.talk(request.substr(0, n)), "") << n;
        EXPECT_EQ(memory.shared->stats.requests, 0u);
        EXPECT_EQ(memory.shared->connections.size(), 0u);
    }
}

TEST(HttpConnection, HeadIsGetWithoutABody) {
    MemoryServer memory;
    const auto replies =
        parse_replies(memory.talk("HEAD /abc HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /abc HTTP/1.1\r\nHost: localhost\r\n\r\n"), true);
    ASSERT_EQ(statuses(replies), "200 200");
    EXPECT_EQ(replies[0].header("content-length"), "10");  // "HEAD /abc "
}

TEST(HttpConnection, ARefusedHeadHasNoBodyEither) {
    MemoryServer memory;
    const std::string text = memory.talk("HEAD / HTTP/1.1\r\nHost: evil.com\r\n\r\n");
    EXPECT_EQ(text.substr(0, 12), "HTTP/1.1 403");
    EXPECT_EQ(text.substr(text.find("\r\n\r\n")), "\r\n\r\n");
}

// Bodies together: 10 bytes at a time here. Who comes too late is told before a byte is read; who leaves makes room.
TEST(HttpConnection, AllBodiesTogetherAreBounded) {
    server::HttpOptions options;
    options.limits.body_bytes = 6;
    options.limits.bodies_bytes = 10;
    MemoryServer memory(options);
    const auto head = [](const char* length) { return "POST /e HTTP/1.1\r\nHost: localhost\r\n" + std::string(length) + "\r\n\r\n"; };
    auto first = memory.connect();
    first->write_some(asio::buffer(head("Content-Length: 6")));
    memory.poll();
    EXPECT_EQ(memory.shared->bodies_bytes, 6u);
    const auto refused = memory.replies(head("Content-Length: 5"));
    ASSERT_EQ(statuses(refused), "503");
    EXPECT_EQ(refused[0].header("retry-after"), "1");
    EXPECT_EQ(statuses(memory.replies(head("Content-Length: 4") + "abcd")), "200");
    EXPECT_EQ(statuses(memory.replies(head("Transfer-Encoding: chunked") + "4\r\nabcd\r\n0\r\n\r\n")), "200");
    EXPECT_EQ(statuses(memory.replies(head("Transfer-Encoding: chunked") + "4\r\nabcd\r\n1\r\ne\r\n0\r\n\r\n")), "503");
    EXPECT_EQ(memory.shared->bodies_bytes, 6u);
    first->write_some(asio::buffer(std::string("abcdef")));
    memory.poll();
    EXPECT_EQ(memory.shared->bodies_bytes, 0u);
    EXPECT_EQ(statuses(memory.replies(head("Content-Length: 5") + "abcde")), "200");
    first->close();
    memory.run();
}

TEST(HttpConnection, ExpectContinue) {
    MemoryServer memory;
    auto client = memory.connect();
    const std::string head = "POST /e HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    client->write_some(asio::buffer(head));
    memory.poll();
    EXPECT_EQ(client->str(), "HTTP/1.1 100 Continue\r\n\r\n");
    client->write_some(asio::buffer(std::string("abc")));
    memory.poll();
    const std::string text(client->str().data(), client->str().size());
    EXPECT_EQ(statuses(parse_replies(text)), "100 200");
    client->close();
    memory.run();
    // The body is there already, or there is none: no need for the interim answer.
    EXPECT_EQ(statuses(memory.replies(head + "abc")), "200");
    EXPECT_EQ(statuses(memory.replies("GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n")), "200");
    // HTTP/1.0 knows no expectations (RFC 9110 10.1.1).
    EXPECT_EQ(statuses(memory.replies("POST / HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n\r\na")), "200");
}

TEST(HttpConnection, NoContentHasNoLength) {
    MemoryServer memory({}, [](HttpRequest, ResponseWriter& writer) -> asio::awaitable<void> {
        HttpResponse response;
        response.status = 204;
        response.body = "dropped";
        co_await writer.respond(std::move(response));
    });
    const auto replies = memory.replies(get + get);
    ASSERT_EQ(statuses(replies), "204 204");
    EXPECT_EQ(replies[0].header("content-length"), "");
}

TEST(HttpConnection, HeaderValuesOfAnswersAreOneLine) {
    MemoryServer memory({}, [](HttpRequest, ResponseWriter& writer) -> asio::awaitable<void> {
        HttpResponse response;
        response.headers.emplace_back("X-Echo", "a\r\nSet-Cookie: b");
        co_await writer.respond(std::move(response));
    });
    const auto replies = memory.replies(get);
    ASSERT_EQ(statuses(replies), "200");
    EXPECT_EQ(replies[0].header("x-echo"), "a  Set-Cookie: b");
    EXPECT_EQ(replies[0].header("set-cookie"), "");
}

asio::awaitable<void> stream_three(HttpRequest, ResponseWriter& writer) {
    HttpResponse head = server::sse_head();
    bool alive = co_await writer.begin_stream(std::move(head));
    for (int i = 0; alive && i < 3; ++i) {
        std::string event = server::sse_data(std::to_string(i));
        alive = co_await writer.write(std::move(event));
        std::string nothing;
        if (alive) alive = co_await writer.write(std::move(nothing));  // must not end the body
    }
    if (alive) co_await writer.end_stream();
}

// The client's end, sent to and not closed.
std::string ask_open(MemoryServer& memory, std::string_view bytes) {
    auto client = memory.connect();
    client->write_some(asio::buffer(bytes.data(), bytes.size()));
    memory.poll();
    const std::string text(client->str().data(), client->str().size());
    client->close();
    memory.run();
    return text;
}

TEST(HttpConnection, Streams) {
    MemoryServer memory({}, stream_three);
    const std::string wanted = "data: 0\n\ndata: 1\n\ndata: 2\n\n";
    auto replies = parse_replies(ask_open(memory, get + get));
    ASSERT_EQ(statuses(replies), "200 200");
    EXPECT_EQ(replies[0].body, wanted);
    EXPECT_EQ(replies[1].body, wanted);
    EXPECT_EQ(replies[0].header("transfer-encoding"), "chunked");
    EXPECT_EQ(replies[0].header("content-length"), "");
    EXPECT_EQ(replies[0].header("content-type"), "text/event-stream");
    // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
    replies = parse_replies(ask_open(memory, "GET / HTTP/1.0\r\n\r\n"));
    ASSERT_EQ(statuses(replies), "200");
    EXPECT_EQ(replies[0].header("transfer-encoding"), "");
    EXPECT_EQ(replies[0].header("connection"), "close");
    EXPECT_EQ(replies[0].body, wanted);
    replies = parse_replies(ask_open(memory, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"), true);
    EXPECT_EQ(statuses(replies), "200 200");
}

// A handler that waits until it is told, or for ever.
struct Waiting {
    int told = 0;
    int finished = 0;
    bool stream = false;
    bool set_late = false;
    asio::steady_timer* timer = nullptr;

    asio::awaitable<void> handle(HttpRequest, ResponseWriter& writer) {
        const auto executor = co_await asio::this_coro::executor;
        asio::steady_timer wait(executor, asio::steady_timer::time_point::max());
        timer = &wait;
        bool gone = false;
        const auto callback = [&] {
            ++told;
            gone = true;
            wait.cancel();
        };
        if (stream) {
            HttpResponse head = server::sse_head();
            (void)co_await writer.begin_stream(std::move(head));
        }
        if (set_late) {  // after another turn of the loop
            asio::steady_timer turn(executor, std::chrono::milliseconds(1));
            boost::system::error_code ignored;
            co_await turn.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
        writer.on_client_gone(callback);
        while (!gone) {
            boost::system::error_code ignored;
            co_await wait.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
        EXPECT_TRUE(writer.client_gone());
        ++finished;
    }
};

TEST(HttpConnection, AClientThatLeavesIsNoticedWhileTheHandlerWorks) {
    for (const bool stream : {false, true}) {
        for (const bool late : {false, true}) {
            for (const bool pipelined : {false, true}) {
                Waiting waiting;
                waiting.stream = stream;
                waiting.set_late = late;
                MemoryServer memory(
                    {}, [&](HttpRequest request, ResponseWriter& writer) { return waiting.handle(std::move(request), writer); });
                auto client = memory.connect();
                client->write_some(asio::buffer(post + (pipelined ? get : "")));
                memory.poll();
                EXPECT_EQ(waiting.told, 0);
                client->close();
                memory.run();
                EXPECT_EQ(waiting.told, 1);
                EXPECT_EQ(waiting.finished, 1);  // and the pipelined request of a client that left is not begun
                EXPECT_EQ(memory.shared->stats.clients_gone, 1u);
                EXPECT_EQ(memory.shared->connections.size(), 0u);
            }
        }
    }
}

TEST(HttpConnection, QuickAnswersReachAClientThatClosedItsSendingSide) {
    MemoryServer memory;  // talk() closes before the first byte is read
    EXPECT_EQ(statuses(memory.replies(get + post)), "200 200");
}

TEST(HttpConnection, HandlersThatFail) {
    const auto run = [](server::Handler handler, std::string_view bytes) {
        MemoryServer memory({}, std::move(handler));
        auto replies = parse_replies(ask_open(memory, bytes));
        EXPECT_EQ(memory.shared->connections.size(), 0u);
        return std::pair(replies, memory.log);
    };
    const auto thrown = run(
        [](HttpRequest, ResponseWriter&) -> asio::awaitable<void> {
            throw std::runtime_error("no luck");
            co_return;
        },
        get + get);
    ASSERT_EQ(statuses(thrown.first), "500");
    EXPECT_EQ(thrown.first[0].header("connection"), "close");
    EXPECT_EQ(thrown.first[0].body.find("no luck"), std::string::npos);  // for the log, not for strangers
    EXPECT_NE(thrown.second.find("no luck"), std::string::npos);
    EXPECT_NE(thrown.second.find(thrown.first[0].header("x-request-id")), std::string::npos);

    const auto odd = run(
        [](HttpRequest, ResponseWriter&) -> asio::awaitable<void> {
            throw 5;
            co_return;
        },
        get);
    EXPECT_EQ(statuses(odd.first), "500");

    const auto in_stream = run(
        [](HttpRequest, ResponseWriter& writer) -> asio::awaitable<void> {
            HttpResponse head = server::sse_head();
            (void)co_await writer.begin_stream(std::move(head));
            throw std::runtime_error("late");
        },
        get + get);
    ASSERT_EQ(statuses(in_stream.first), "200");
    EXPECT_FALSE(in_stream.first[0].whole);

    const auto silent = run([](HttpRequest, ResponseWriter&) -> asio::awaitable<void> { co_return; }, get + get);
    EXPECT_EQ(statuses(silent.first), "500 500");

    const auto unfinished = run(
        [](HttpRequest, ResponseWriter& writer) -> asio::awaitable<void> {
            HttpResponse head = server::sse_head();
            (void)co_await writer.begin_stream(std::move(head));
        },
        get + get);
    ASSERT_EQ(statuses(unfinished.first), "200");
    EXPECT_FALSE(unfinished.first[0].whole);
}

// The loop is destroyed while requests are in every phase: the coroutines go with it, each object once (a sanitizer's matter).
TEST(HttpConnection, TheLoopEndsInTheMiddle) {
    for (const std::string& bytes : {std::string(), get.substr(0, 9), get, post + get, post.substr(0, post.size() - 1), chunked}) {
        Waiting waiting;
        waiting.stream = true;
        std::unique_ptr<http_test::MemoryStream> client;
        std::weak_ptr<server::HttpShared> shared;
        {
            MemoryServer memory({},
                                [&](HttpRequest request, ResponseWriter& writer) { return waiting.handle(std::move(request), writer); });
            shared = memory.shared;
            client = memory.connect();
            client->write_some(asio::buffer(bytes));
            memory.poll();
            EXPECT_EQ(memory.shared->connections.size(), 1u);
            client.reset();
        }
        EXPECT_TRUE(shared.expired());
        EXPECT_EQ(waiting.finished, 0);
    }
}

TEST(HttpConnection, Draining) {
    MemoryServer memory;
    auto idle = memory.connect();
    memory.poll();
    ASSERT_EQ(memory.shared->connections.size(), 1u);
    (*memory.shared->connections.begin())->close_if_idle();
    memory.run();
    EXPECT_EQ(memory.shared->connections.size(), 0u);
    memory.shared->draining = true;
    const auto replies = memory.replies(get + get);
    ASSERT_EQ(statuses(replies), "200");
    EXPECT_EQ(replies[0].header("connection"), "close");
}

TEST(HttpConnection, TimeLimits) {
    server::HttpOptions options;
    options.limits.header_time_ms = 40;
    options.limits.body_time_ms = 40;
    options.limits.idle_time_ms = 40;
    options.limits.linger_time_ms = 20;
    MemoryServer memory(options);
    const auto left_alone = [&](std::string_view bytes) {
        auto client = memory.connect();
        if (!bytes.empty()) client->write_some(asio::buffer(bytes.data(), bytes.size()));
        memory.run();
        EXPECT_EQ(memory.shared->connections.size(), 0u) << bytes;
        const auto replies = parse_replies({client->str().data(), client->str().size()});
        for (const auto& reply : replies) {
            if (reply.status == 408) { EXPECT_EQ(reply.header("connection"), "close"); }
        }
        return statuses(replies);
    };
    EXPECT_EQ(left_alone(""), "");  // never said anything
    EXPECT_EQ(left_alone("GET / HT"), "408");
    EXPECT_EQ(left_alone(get), "200");  // keep-alive ends without a word
    EXPECT_EQ(left_alone(get + "GET"), "200 408");
    EXPECT_EQ(left_alone(post.substr(0, post.size() - 1)), "408");
    EXPECT_EQ(left_alone(chunked.substr(0, chunked.size() - 1)), "408");
}

TEST(HttpConnection, ADripOfBytesDoesNotProlongTheTime) {
    server::HttpOptions options;
    options.limits.header_time_ms = 60;
    options.limits.linger_time_ms = 10;
    MemoryServer memory(options);
    auto client = memory.connect();
    const auto start = std::chrono::steady_clock::now();
    const std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(1'000, 'x');
    for (size_t i = 0; i < head.size() && !memory.shared->connections.empty(); ++i) {
        client->write_some(asio::buffer(&head[i], 1));
        memory.io.restart();
        memory.io.run_for(std::chrono::milliseconds(2));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1'000));
    const std::string text(client->str().data(), client->str().size());
    EXPECT_EQ(statuses(parse_replies(text)), "408");
}

// The n-th operation on the socket fails, for n = 0, 1, 2, ... until none does: whatever happens, the connection ends, the
// handler's coroutine ends, and what was sent before is a prefix of the right answers.
TEST(HttpConnection, EveryOperationFailingOnce) {
    const std::string requests = get + "POST /e HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9000\r\n\r\n" +
                                 std::string(9'000, 'z') + chunked + get;
    int handled = 0, ended = 0;
    const server::Handler handler = [&](HttpRequest request, ResponseWriter& writer) -> asio::awaitable<void> {
        ++handled;
        struct AtEnd {
            int& count;
            ~AtEnd() { ++count; }
        } at_end{ended};
        bool told = false;
        writer.on_client_gone([&] { told = true; });
        if (request.path == "/a") {
            co_await stream_three(std::move(request), writer);
        } else {
            co_await http_test::echo(std::move(request), writer);
        }
        EXPECT_EQ(told, writer.client_gone());
    };
    std::string whole;
    {
        MemoryServer memory({}, handler);
        auto client = memory.connect();
        client->write_some(asio::buffer(requests));
        memory.poll();
        whole.assign(client->str().data(), client->str().size());
        client->close();
        memory.run();
    }
    // Ids differ from run to run; compare without them.
    const auto without_ids = [](std::string text) {
        for (size_t at = 0; (at = text.find("req_", at)) != std::string::npos; ++at) text.replace(at, 20, 20, '-');
        return text;
    };
    const std::string wanted = without_ids(whole);
    ASSERT_EQ(statuses(parse_replies(whole)), "200 200 200 200");
    size_t n = 0;
    for (;; ++n) {
        ASSERT_LT(n, 500u);
        handled = ended = 0;
        boost::beast::test::fail_count fail(n);
        MemoryServer memory({}, handler);
        auto client = memory.connect(&fail);
        client->write_some(asio::buffer(requests));
        memory.poll();
        const std::string got = without_ids({client->str().data(), client->str().size()});
        client->close();
        memory.run();
        EXPECT_EQ(handled, ended) << n;
        EXPECT_EQ(memory.shared->connections.size(), 0u) << n;
        if (got == wanted) break;
        EXPECT_EQ(got, wanted.substr(0, got.size())) << n;
    }
    EXPECT_GE(n, 12u);  // reads of 4 KiB and at least one write for each piece of the answers
}

}  // namespace
