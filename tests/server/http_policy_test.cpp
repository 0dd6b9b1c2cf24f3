// Who may ask: Host and Origin, CORS, API keys, bind rule, request ids; and the shape of errors and events.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "http_harness.h"
#include "server/sse.h"

namespace {

using boost::asio::ip::make_address;
using server::ApiKeys;
using server::Cors;
using server::HostCheck;
using server::parse_authority;

bool allowed(const HostCheck& check, std::string_view host) {
    const auto authority = parse_authority(host);
    return authority && check.allows(*authority);
}

TEST(HostCheck, LoopbackNamesAndConfiguredOnes) {
    const HostCheck check(make_address("127.0.0.1"), {"chat.example", "Box.local:8080", "::5"});
    for (const std::string_view good :
         {"localhost", "LOCALHOST.", "localhost:1", "127.0.0.1", "127.9.9.9:80", "[::1]:80", "[::1]", "[::ffff:127.0.0.1]",
          "[0:0:0:0:0:0:0:1]", "chat.example", "CHAT.EXAMPLE.:9", "box.local", "[::5]:80"})
        EXPECT_TRUE(allowed(check, good)) << good;
    for (const std::string_view bad :
         {"evil.com", "localhost.evil.com", "evil.localhost", "localhost..", "127.0.0.1.evil.com", "127.1.evil", "192.168.1.5", "0.0.0.0",
          "[::]", "[::2]", "chat.example.evil.com", "xchat.example", "2130706433", "0x7f.1", "[fe80::1]", "[::ffff:10.0.0.1]", ""})
        EXPECT_FALSE(allowed(check, bad)) << bad;
}

TEST(HostCheck, BoundAddressAndAllAddresses) {
    const HostCheck one(make_address("192.168.1.5"), {});
    EXPECT_TRUE(allowed(one, "192.168.1.5:8080"));
    EXPECT_TRUE(allowed(one, "[::ffff:192.168.1.5]"));
    EXPECT_FALSE(allowed(one, "192.168.1.6"));
    EXPECT_FALSE(allowed(one, "evil.com"));
    for (const char* any : {"0.0.0.0", "::"}) {
        const HostCheck all(make_address(any), {});
        EXPECT_TRUE(allowed(all, "192.168.1.6"));
        EXPECT_TRUE(allowed(all, "[2001:db8::1]:8080"));
        for (const std::string_view bad : {"evil.com", "0.0.0.0", "[::]", "169.254.1.1", "[fe80::1]", "[::ffff:169.254.1.1]", "224.0.0.1"})
            EXPECT_FALSE(allowed(all, bad)) << bad;
    }
    const HostCheck anything(make_address("127.0.0.1"), {"*"});
    EXPECT_TRUE(allowed(anything, "evil.com"));
}

TEST(HostCheck, SameOrigin) {
    const auto same = [](std::string_view origin, std::string_view host) { return HostCheck::same_origin(origin, *parse_authority(host)); };
    EXPECT_TRUE(same("http://localhost:8080", "localhost:8080"));
    EXPECT_TRUE(same("http://LOCALHOST:8080", "localhost.:8080"));
    EXPECT_TRUE(same("http://[::1]:8080", "[::1]:8080"));
    EXPECT_TRUE(same("https://chat.example", "chat.example"));
    EXPECT_TRUE(same("https://chat.example", "chat.example:443"));
    EXPECT_TRUE(same("http://chat.example:80", "chat.example"));
    for (const std::string_view origin :
         {"null", "", "http://evil.com", "http://localhost:8081", "http://localhost", "http://localhost.evil.com:8080", "localhost:8080",
          "file://", "ftp://localhost:8080", "http://localhost:8080/", "http://localhost:8080@evil.com", "http://"})
        EXPECT_FALSE(same(origin, "localhost:8080")) << origin;
}

// One request with these header lines, to a server with these options.
http_test::Reply ask(server::HttpOptions options, std::string_view fields, std::string_view method = "GET",
                     std::string_view path = "/v1/models") {
    http_test::MemoryServer memory(std::move(options));
    const std::string request = std::string(method) + " " + std::string(path) + " HTTP/1.1\r\n" +
                                (fields.find("Host:") == std::string_view::npos ? "Host: localhost\r\n" : "") + std::string(fields) +
                                "\r\n";
    const auto replies = http_test::parse_replies(memory.talk(request), method == "HEAD");
    EXPECT_EQ(replies.size(), 1u);
    return replies.empty() ? http_test::Reply{} : replies[0];
}

bool has_error_shape(const http_test::Reply& reply, std::string_view code) {
    return reply.header("content-type") == "application/json" && reply.body.find("{\"error\":{\"message\":\"") == 0 &&
           reply.body.find("\"param\":null") != std::string::npos &&
           reply.body.find("\"code\":\"" + std::string(code) + "\"") != std::string::npos;
}

TEST(Admission, HostAndOrigin) {
    EXPECT_EQ(ask({}, "").status, 200);
    const auto evil = ask({}, "Host: evil.com\r\n");
    EXPECT_EQ(evil.status, 403);
    EXPECT_TRUE(has_error_shape(evil, "host_not_allowed")) << evil.body;
    EXPECT_EQ(evil.header("connection"), "close");
    // A foreign page may not change anything; reading is kept from it by the lack of CORS headers.
    EXPECT_EQ(ask({}, "Origin: http://evil.com\r\n", "POST").status, 403);
    EXPECT_EQ(ask({}, "Origin: null\r\n", "POST").status, 403);
    EXPECT_EQ(ask({}, "Origin: http://localhost\r\n", "POST").status, 200);
    EXPECT_EQ(ask({}, "Origin: http://localhost:8080\r\nHost: localhost:8080\r\n", "POST").status, 200);
    EXPECT_EQ(ask({}, "", "POST").status, 200);
    const auto read = ask({}, "Origin: http://evil.com\r\n");
    EXPECT_EQ(read.status, 200);
    EXPECT_EQ(read.header("access-control-allow-origin"), "");
    EXPECT_TRUE(has_error_shape(ask({}, "Origin: null\r\n", "DELETE"), "origin_not_allowed"));
}

TEST(Admission, AbsoluteTargetsHostIsChecked) {
    EXPECT_EQ(ask({}, "Host: evil.com\r\n", "GET", "http://evil.com/").status, 403);
    EXPECT_EQ(ask({}, "", "GET", "http://localhost/x").status, 200);
    EXPECT_EQ(ask({}, "", "GET", "http://evil.com/").status, 400);
}

TEST(Admission, OptionsStar) {
    const auto reply = ask({}, "", "OPTIONS", "*");
    EXPECT_EQ(reply.status, 204);
    EXPECT_NE(reply.header("allow").find("POST"), std::string::npos);
}

TEST(CorsCases, OffUnlessListed) {
    const auto off = ask({}, "Origin: http://app.example\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS");
    EXPECT_EQ(off.status, 403);
    for (const auto& [name, value] : off.headers) EXPECT_NE(name.substr(0, 14), "access-control") << name;
    // Without a request method it is an ordinary OPTIONS for the routes.
    EXPECT_EQ(ask({}, "Origin: http://app.example\r\n", "OPTIONS").status, 200);
}

TEST(CorsCases, PreflightOfAListedOriginNeedsNoKey) {
    server::HttpOptions options;
    options.cors_origins = {"http://app.example"};
    options.keys = std::move(ApiKeys::parse("0123456789abcdef").value());
    const auto reply = ask(options,
                           "Origin: http://app.example\r\nAccess-Control-Request-Method: POST\r\n"
                           "Access-Control-Request-Headers: authorization,Content-Type, x-stainless-os,x-stainless-retry-count , "
                           "anthropic-version,x-evil,b@d\r\n",
                           "OPTIONS");
    EXPECT_EQ(reply.status, 204);
    EXPECT_EQ(reply.header("access-control-allow-origin"), "http://app.example");
    EXPECT_EQ(reply.header("access-control-allow-headers"),
              "authorization, content-type, x-stainless-os, x-stainless-retry-count, anthropic-version");
    EXPECT_NE(reply.header("access-control-allow-methods").find("POST"), std::string::npos);
    EXPECT_EQ(reply.header("access-control-max-age"), "86400");
    EXPECT_EQ(reply.header("access-control-allow-credentials"), "");
    EXPECT_EQ(reply.header("vary"), "Origin");
    EXPECT_EQ(reply.header("connection"), "keep-alive");
    // The request itself needs the key; its 401 can be read by the page.
    const auto refused = ask(options, "Origin: http://app.example\r\n", "POST");
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.header("access-control-allow-origin"), "http://app.example");
    const auto answered = ask(options, "Origin: HTTP://APP.example\r\nAuthorization: Bearer 0123456789abcdef\r\n", "POST");
    EXPECT_EQ(answered.status, 200);
    EXPECT_EQ(ask(options, "Origin: http://evil.com\r\nAuthorization: Bearer 0123456789abcdef\r\n", "POST").status, 403);
    EXPECT_EQ(ask(options, "Origin: http://app.example.evil.com\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS").status, 403);
}

TEST(CorsCases, Star) {
    server::HttpOptions options;
    options.cors_origins = {"*"};
    EXPECT_EQ(ask(options, "Origin: null\r\n", "POST").status, 200);
    const auto reply = ask(options, "Origin: http://any.example\r\n");
    EXPECT_EQ(reply.header("access-control-allow-origin"), "*");
    EXPECT_NE(reply.header("access-control-expose-headers").find("X-Request-Id"), std::string::npos);
}

TEST(ApiKeyFile, ReadsKeysAndNames) {
    const auto keys = ApiKeys::parse("# comment\n\n  alice:0123456789abcdef \r\nfedcba9876543210\nweb.ui-2:sk-abcdefghijklmnop:q");
    ASSERT_TRUE(keys.ok()) << keys.error().message;
    EXPECT_EQ(keys.value().size(), 3u);
    ASSERT_NE(keys.value().find("0123456789abcdef"), nullptr);
    EXPECT_EQ(keys.value().find("0123456789abcdef")->name, "alice");
    EXPECT_EQ(keys.value().find("fedcba9876543210")->name, "");
    EXPECT_EQ(keys.value().find("sk-abcdefghijklmnop:q")->name, "web.ui-2");
    // SHA-256 of "0123456789abcdef" is 9f9f5111f7b27a78... (sha256sum): the salt is its first 8 bytes, little-endian.
    EXPECT_EQ(keys.value().find("0123456789abcdef")->salt, 0x787ab2f711519f9fu);
    for (const std::string_view wrong :
         {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0", "alice:0123456789abcdef", "# comment"})
        EXPECT_EQ(keys.value().find(wrong), nullptr) << wrong;
    EXPECT_EQ(keys.value().find(std::string(1 << 20, 'a')), nullptr);
}

TEST(ApiKeyFile, FaultsNameTheLineAndNotTheKey) {
    for (const auto& [text, line] :
         std::vector<std::pair<std::string, std::string>>{{"short", "line 1"},
                                                          {"\nalice:short-secret", "line 2"},
                                                          {"a b:0123456789abcdef", "line 1"},
                                                          {":0123456789abcdef", "line 1"},
                                                          {"0123456789 abcdef", "line 1"},
                                                          {"0123456789abcde\xc3\xa9", "line 1"},
                                                          {std::string(600, 'x'), "line 1"},
                                                          {"0123456789abcdef\nbob:0123456789abcdef", "line 2"}}) {
        const auto keys = ApiKeys::parse(text);
        ASSERT_FALSE(keys.ok()) << text;
        EXPECT_NE(keys.error().message.find(line), std::string::npos) << keys.error().message;
        EXPECT_EQ(keys.error().message.find("secret"), std::string::npos);
        EXPECT_EQ(keys.error().message.find("0123"), std::string::npos);
    }
    EXPECT_FALSE(ApiKeys::parse("# nothing\n").ok());
    EXPECT_FALSE(ApiKeys::load("/nonexistent/keys").ok());
    EXPECT_FALSE(ApiKeys::load("/").ok());
    const std::string path = testing::TempDir() + "http_policy_test_keys";
    std::ofstream(path) << "alice:0123456789abcdef\n";
    const auto loaded = ApiKeys::load(path);
    ASSERT_TRUE(loaded.ok());
    EXPECT_NE(loaded.value().find("0123456789abcdef"), nullptr);
    std::ofstream(path) << std::string(2 << 20, '#');
    EXPECT_FALSE(ApiKeys::load(path).ok());
    std::remove(path.c_str());
    std::string many;
    for (size_t i = 0; i <= limits::api_keys_count; ++i) many += "key-number-" + std::to_string(1'000'000 + i) + "\n";
    EXPECT_FALSE(ApiKeys::parse(many).ok());
}

server::HttpOptions with_key() {
    server::HttpOptions options;
    options.keys = std::move(ApiKeys::parse("alice:0123456789abcdef\nbob:fedcba9876543210").value());
    return options;
}

TEST(Keys, Cases) {
    EXPECT_EQ(ask(with_key(), "Authorization: Bearer 0123456789abcdef\r\n").status, 200);
    EXPECT_EQ(ask(with_key(), "Authorization: bearer  0123456789abcdef\r\n").status, 200);
    EXPECT_EQ(ask(with_key(), "x-api-key: fedcba9876543210\r\n").status, 200);
    EXPECT_EQ(ask(with_key(), "x-api-key: fedcba9876543210\r\nAuthorization: Bearer fedcba9876543210\r\n").status, 200);
    for (const std::string_view wrong :
         {"", "Authorization: Bearer 0123456789abcdeg\r\n", "Authorization: Bearer 0123456789abcde\r\n", "Authorization: Bearer \r\n",
          "Authorization: Bearer\r\n", "Authorization: Basic 0123456789abcdef\r\n", "Authorization: 0123456789abcdef\r\n",
          "Authorization: Bearer 0123456789abcdef fedcba9876543210\r\n", "x-api-key: no\r\n",
          "Authorization: Bearer alice:0123456789abcdef\r\n"}) {
        const auto reply = ask(with_key(), wrong);
        EXPECT_EQ(reply.status, 401) << wrong;
        EXPECT_EQ(reply.header("www-authenticate").substr(0, 6), "Bearer");
        EXPECT_TRUE(has_error_shape(reply, wrong.empty() ? "missing_api_key" : "invalid_api_key")) << reply.body;
    }
    EXPECT_EQ(ask(with_key(), "x-api-key: fedcba9876543210\r\nAuthorization: Bearer 0123456789abcdef\r\n").status, 400);
    EXPECT_EQ(ask(with_key(), "Authorization: Bearer 0123456789abcdef\r\nAuthorization: Bearer 0123456789abcdef\r\n").status, 400);
    EXPECT_EQ(ask(with_key(), "Authorization: Bearer " + std::string(15'000, 'a') + "\r\n").status, 401);
    EXPECT_EQ(ask(with_key(), "Authorization: Bearer " + std::string(1'000'000, 'a') + "\r\n").status, 431);
}

TEST(Keys, OpenPaths) {
    EXPECT_EQ(ask(with_key(), "", "GET", "/health").status, 200);
    EXPECT_EQ(ask(with_key(), "", "GET", "/health/").status, 200);
    EXPECT_EQ(ask(with_key(), "", "HEAD", "/ready").status, 200);
    EXPECT_EQ(ask(with_key(), "", "GET", "/%68ealth").status, 200);
    EXPECT_EQ(ask(with_key(), "", "POST", "/health").status, 401);
    EXPECT_EQ(ask(with_key(), "", "GET", "/healthy").status, 401);
    EXPECT_EQ(ask(with_key(), "", "GET", "/health/x").status, 401);
    EXPECT_EQ(ask(with_key(), "", "GET", "/metrics").status, 401);
    EXPECT_EQ(ask(with_key(), "", "GET", "/Health").status, 401);
}

TEST(Keys, HandlerLearnsWhichKey) {
    std::vector<std::pair<uint64_t, std::string>> seen;
    const auto run = [&](server::HttpOptions options, std::string_view fields) {
        http_test::MemoryServer memory(std::move(options),
                                       [&](server::HttpRequest request, server::ResponseWriter& writer) -> boost::asio::awaitable<void> {
                                           seen.emplace_back(request.key_salt, request.key_name);
                                           server::HttpResponse response;
                                           co_await writer.respond(std::move(response));
                                       });
        memory.talk("GET / HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n");
    };
    run(with_key(), "x-api-key: 0123456789abcdef\r\n");
    run(with_key(), "x-api-key: fedcba9876543210\r\n");
    run({}, "x-api-key: fedcba9876543210\r\n");
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_EQ(seen[0].second, "alice");
    EXPECT_EQ(seen[1].second, "bob");
    EXPECT_NE(seen[0].first, seen[1].first);
    EXPECT_NE(seen[0].first, 0u);
    EXPECT_EQ(seen[2].first, 0u);  // no keys, no salt
}

TEST(BindRule, LoopbackOrKeyOrTold) {
    using server::check_bind;
    for (const char* loopback : {"127.0.0.1", "127.3.3.3", "::1", "localhost", "::ffff:127.0.0.1"})
        EXPECT_TRUE(check_bind(loopback, false, false).ok()) << loopback;
    for (const char* beyond : {"0.0.0.0", "::", "192.168.1.1", "2001:db8::1", "::ffff:10.0.0.1", "::ffff:0.0.0.0"}) {
        EXPECT_FALSE(check_bind(beyond, false, false).ok()) << beyond;
        EXPECT_TRUE(check_bind(beyond, true, false).ok());
        EXPECT_TRUE(check_bind(beyond, false, true).ok());
    }
    for (const char* no_address : {"", "example.com", "127.0.0.1:80", "1.2.3", "[::1]", "a\nb"})
        EXPECT_FALSE(check_bind(no_address, true, true).ok()) << no_address;
}

TEST(RequestId, EchoedWhenCleanElseMade) {
    EXPECT_EQ(ask({}, "X-Request-Id: abc-123._~:/+=@Z\r\n").header("x-request-id"), "abc-123._~:/+=@Z");
    for (const std::string_view dirty : {"", "a b", "a\"b", "<x>", "\xc3\xa9", "a\tb"}) {
        const std::string id = ask({}, "X-Request-Id: " + std::string(dirty) + "\r\n").header("x-request-id");
        EXPECT_EQ(id.substr(0, 4), "req_") << id;
        EXPECT_EQ(id.size(), 20u);
    }
    EXPECT_EQ(ask({}, "X-Request-Id: " + std::string(129, 'a') + "\r\n").header("x-request-id").substr(0, 4), "req_");
    // A line break can't even come in.
    EXPECT_EQ(ask({}, "X-Request-Id: a\rb\r\n").status, 400);
    EXPECT_EQ(ask({}, "X-Request-Id: a\r\n b\r\n").status, 400);
    http_test::MemoryServer memory;
    EXPECT_NE(memory.shared->new_request_id(), memory.shared->new_request_id());
}

TEST(Errors, AnyBytesGiveValidJson) {
    EXPECT_EQ(server::error_json("a\"b\\c\n\xff", "t", "", ""),
              "{\"error\":{\"message\":\"a\\\"b\\\\c\\u000a\\u00ff\",\"type\":\"t\",\"param\":null,\"code\":null}}");
    EXPECT_EQ(server::error_json("m", "t", "p", "c"), "{\"error\":{\"message\":\"m\",\"type\":\"t\",\"param\":\"p\",\"code\":\"c\"}}");
    EXPECT_EQ(server::error_type(503), "server_error");
    EXPECT_EQ(server::error_type(429), "invalid_request_error");
}

TEST(Sse, Frames) {
    EXPECT_EQ(server::sse_data("{\"a\":1}"), "data: {\"a\":1}\n\n");
    EXPECT_EQ(server::sse_done, "data: [DONE]\n\n");
    EXPECT_EQ(server::sse_heartbeat, ": ping\n");  // one line end: two make an empty event, at which openai-go gave up
    const auto head = server::sse_head();
    EXPECT_EQ(head.content_type, "text/event-stream");
    ASSERT_EQ(head.headers.size(), 2u);
    EXPECT_EQ(head.headers[0].second, "no-cache, no-transform");
    EXPECT_EQ(head.headers[1], (std::pair<std::string, std::string>("X-Accel-Buffering", "no")));
}

}  // namespace
