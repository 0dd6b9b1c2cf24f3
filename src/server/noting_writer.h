// The ResponseWriter that the routes see: passes everything on and remembers what the access log says at the end.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "server/http.h"

namespace server {

// Logged and counted when the client left before its answer; nothing is sent.
inline constexpr unsigned client_closed_request = 499;

class NotingWriter final : public ResponseWriter {
  public:
    explicit NotingWriter(ResponseWriter& inner) : inner_(inner) {}
    boost::asio::awaitable<void> respond(HttpResponse response) override {
        status_ = response.status;
        co_await inner_.respond(std::move(response));
    }
    boost::asio::awaitable<bool> begin_stream(HttpResponse head) override {
        status_ = head.status;
        co_return co_await inner_.begin_stream(std::move(head));
    }
    boost::asio::awaitable<bool> write(std::string bytes) override { co_return co_await inner_.write(std::move(bytes)); }
    boost::asio::awaitable<bool> end_stream() override { co_return co_await inner_.end_stream(); }
    void on_client_gone(std::function<void()> callback) override { inner_.on_client_gone(std::move(callback)); }
    bool client_gone() const override { return inner_.client_gone(); }
    // Goes behind the time in the log: " 37+8 tokens". No text of a prompt or an answer.
    std::string note;
    unsigned status() const { return client_gone() ? client_closed_request : status_; }

  private:
    ResponseWriter& inner_;
    unsigned status_ = client_closed_request;
};

}  // namespace server
