// The ResponseWriter of one request; lives in the session's frame while the handler works. Included by connection.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/connection.h"

namespace server {

class Connection::Answer final : public ResponseWriter {
  public:
    // `chunked`: a stream is framed (HTTP/1.1); else it ends with the connection.
    Answer(Connection& connection, bool head_only, bool chunked, bool keep_alive);
    ~Answer() override;

    boost::asio::awaitable<void> respond(HttpResponse response) override;
    boost::asio::awaitable<bool> begin_stream(HttpResponse head) override;
    boost::asio::awaitable<bool> write(std::string bytes) override;
    boost::asio::awaitable<bool> end_stream() override;
    void on_client_gone(std::function<void()> callback) override;
    bool client_gone() const override { return gone_; }

    void set_gone();
    bool complete() const { return state_ == State::complete; }
    // The whole answer is out and the connection may take another request.
    bool may_go_on() const { return complete() && keep_alive_; }

  private:
    enum class State { fresh, sending, streaming, complete, failed };
    void call_back();

    Connection& connection_;
    State state_ = State::fresh;
    const bool head_only_;
    const bool chunked_;
    bool keep_alive_;
    bool gone_ = false;
    std::function<void()> on_gone_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace server
