// The HTTP server: listens, accepts, and owns what its connections share. All calls on the loop thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "server/connection.h"
#include "server/http.h"
#include "server/http_options.h"

namespace server {

class HttpServer {
  public:
    // `clock` outlives the server and its connections. Nothing is opened yet.
    HttpServer(boost::asio::io_context& io, HttpOptions options, Handler handler, const base::Clock& clock);
    // Cuts off all connections; their coroutines end on the loop's next turns.
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // Binds and listens; connections are accepted once the loop runs. The port that was bound.
    // Errors: invalid_argument (address, bind rule of check_bind), io (in use, no permission). Also ignores SIGPIPE.
    base::Result<uint16_t> start();
    // Closes the listening socket. Open connections go on.
    void stop_accepting();
    // Closes connections that wait for a request; from now on every answer is the last of its connection.
    void close_idle();
    // Cuts off every connection, also those with a request at work.
    void close_all();
    size_t active_connections() const;
    // Those that read or answer a request; what a drain waits for. The rest are idle, or are closed within
    // limits::http_linger_time_ms by themselves.
    size_t busy_connections() const;
    const HttpStats& stats() const;

  private:
    class Acceptor;
    boost::asio::io_context& io_;
    std::shared_ptr<HttpShared> shared_;
    std::shared_ptr<Acceptor> acceptor_;
    HttpOptions options_;  // until start
    Handler handler_;
    const base::Clock& clock_;
    HttpStats no_stats_;
};

}  // namespace server
