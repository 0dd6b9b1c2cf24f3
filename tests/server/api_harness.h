// The routes with everything around them faked: engine, tokenizer, template, socket.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "json/parse.h"
#include "server/routes.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine.h"
#include "tests/support/fake_tokenizer.h"

namespace api {

// "<role>content\n" for each message; an open "<assistant>" when asked. Only the content is the user's.
class FakeTemplate final : public text::ChatTemplate {
  public:
    base::Result<std::vector<text::Segment>> render(const text::ValueObject& variables, std::span<const std::string_view>,
                                                    const base::Clock&) const override {
        std::vector<text::Segment> out;
        bool add_prompt = false;
        for (const auto& [name, value] : variables) {
            if (name == "add_generation_prompt") add_prompt = std::get<bool>(value.data);
            if (name == "style") out.push_back({"[" + std::get<std::string>(value.data) + "]", true});
            if (name != "messages") continue;
            for (const text::Value& message : std::get<text::ValueArray>(value.data)) {
                const auto& members = std::get<text::ValueObject>(message.data);
                const std::string& role = std::get<std::string>(members[0].second.data);
                if (role == "tool") return base::Error{base::ErrorCode::invalid_argument, "no tools here", ""};
                out.push_back({"<" + role + ">", true});
                out.push_back({std::get<std::string>(members[1].second.data), false});
                out.push_back({"\n", true});
            }
        }
        if (add_prompt) out.push_back({"<assistant>", true});
        return out;
    }
    std::string_view source() const override { return "{{ messages }}{{ style }}"; }
};

// What a client would see.
struct Seen {
    server::HttpResponse head;
    std::string body;  // of a stream: all writes joined
    std::vector<std::string> writes;
    bool responded = false, streamed = false, ended = false, returned = false;
    json::Value json() const {
        auto parsed = json::parse(body);
        return parsed ? std::move(parsed).value() : json::Value{};
    }
    std::string_view header(std::string_view name) const {
        for (const auto& [key, value] : head.headers)
            if (key == name) return value;
        return {};
    }
    // Payloads of the events, without [DONE].
    std::vector<json::Value> events() const;
    bool done() const { return body.ends_with("data: [DONE]\n\n"); }
};

inline std::vector<json::Value> Seen::events() const {
    std::vector<json::Value> out;
    for (size_t at = 0; (at = body.find("data: ", at)) != std::string::npos;) {
        const size_t end = body.find("\n\n", at);
        const std::string_view payload = std::string_view(body).substr(at + 6, end - at - 6);
        if (payload != "[DONE]") {
            auto parsed = json::parse(payload);
            out.push_back(parsed ? std::move(parsed).value() : json::Value{});
        }
        at = end;
    }
    return out;
}

class FakeWriter final : public server::ResponseWriter {
  public:
    explicit FakeWriter(Seen& seen, boost::asio::io_context& io) : seen_(seen), io_(io) {}
    boost::asio::awaitable<void> respond(server::HttpResponse response) override {
        seen_.head = response;
        seen_.body = response.body;
        seen_.responded = true;
        co_return;
    }
    boost::asio::awaitable<bool> begin_stream(server::HttpResponse head) override {
        seen_.head = head;
        seen_.streamed = true;
        co_return !gone_;
    }
    boost::asio::awaitable<bool> write(std::string bytes) override {
        while (stalled && !gone_) {
            // Of the coroutine: this writer outlives the loop, a timer must not.
            boost::asio::steady_timer timer(io_, std::chrono::milliseconds(1));
            co_await timer.async_wait(boost::asio::use_awaitable);
        }
        if (gone_) co_return false;
        seen_.body += bytes;
        seen_.writes.push_back(std::move(bytes));
        co_return true;
    }
    boost::asio::awaitable<bool> end_stream() override {
        seen_.ended = true;
        co_return !gone_;
    }
    void on_client_gone(std::function<void()> callback) override { on_gone_ = std::move(callback); }
    bool client_gone() const override { return gone_; }

    void leave() {
        gone_ = true;
        if (on_gone_) on_gone_();
    }
    bool stalled = false;

  private:
    Seen& seen_;
    boost::asio::io_context& io_;
    bool gone_ = false;
    std::function<void()> on_gone_;
};

class Harness {
  public:
    Harness() {
        streams.emplace(io.get_executor());
        worker.emplace();
        model.id = "tiny";
        model.fingerprint = "fp_test";
        model.architecture = "llama";
        model.n_vocab = support::FakeTokenizer::vocab;
        model.context_length = model.context_trained = 1024;
        model.default_max_tokens = 100;
        model.queue_requests_max = 8;
        model.kv_type = "f16";
        model.tokenizer = &tokenizer;
        model.chat_template = &chat_template;
        model.engine = &engine;
        streams->set_engine(engine);
        engine.wake = streams->waker();
        options.version = "test";
        routes = std::make_unique<server::Routes>(options, *streams, *worker, clock);
    }
    void load() { routes->set_model(model, 0.5); }

    // One exchange at work. Keep it until the end of the test.
    struct Call {
        Seen seen;
        std::unique_ptr<FakeWriter> writer;
    };
    Call& begin(std::string method, std::string path, std::string body = "",
                std::vector<std::pair<std::string, std::string>> headers = {}) {
        calls.push_back(std::make_unique<Call>());
        Call& call = *calls.back();
        call.writer = std::make_unique<FakeWriter>(call.seen, io);
        server::HttpRequest request;
        request.method = std::move(method);
        request.path = std::move(path);
        request.headers = std::move(headers);
        request.body = std::move(body);
        request.remote = "127.0.0.1:1";
        request.request_id = "req_1";
        request.arrival_ns = clock.now_ns();
        request.key_salt = 42;
        boost::asio::co_spawn(io, routes->handler()(std::move(request), *call.writer), [&call](std::exception_ptr failure) {
            if (failure) std::rethrow_exception(failure);
            call.seen.returned = true;
        });
        return call;
    }
    // Lets the loop turn, without a step of the engine.
    void turn(int times = 20) {
        for (int i = 0; i < times; ++i) {
            io.restart();
            io.poll();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    // Loop and engine until `done`.
    template <typename Done>
    bool until(Done done) {
        for (int i = 0; i < 5000; ++i) {
            io.restart();
            io.poll();
            if (done()) return true;
            if (!engine.step()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }
    const Seen& call(std::string method, std::string path, std::string body = "",
                     std::vector<std::pair<std::string, std::string>> headers = {}) {
        Call& started = begin(std::move(method), std::move(path), std::move(body), std::move(headers));
        until([&] { return started.seen.returned; });
        return started.seen;
    }
    const Seen& post(std::string path, std::string body) {
        return call("POST", std::move(path), std::move(body), {{"content-type", "application/json"}});
    }

    support::FakeClock clock;
    support::FakeEngine engine;
    support::FakeTokenizer tokenizer;
    FakeTemplate chat_template;
    server::ServedModel model;
    server::RoutesOptions options;
    std::vector<std::unique_ptr<Call>> calls;
    std::optional<server::Streams> streams;
    std::unique_ptr<server::Routes> routes;
    boost::asio::io_context io;  // destroyed before what its coroutines refer to
    std::optional<server::Worker> worker;
};

}  // namespace api
