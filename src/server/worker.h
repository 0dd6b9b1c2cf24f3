// One thread for pure, slow work (templates, tokens), so that the loop never computes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace server {

class Worker {
  public:
    Worker() : pool_(1) {}
    // Waits for the job at work; jobs not begun are dropped.
    ~Worker() {
        pool_.stop();
        pool_.join();
    }

    // Runs `job` on the worker and gives its result back on the caller's thread. Jobs run one after another; each
    // connection has one request at a time, so at most limits::connections_count wait.
    template <typename Job>
    boost::asio::awaitable<std::invoke_result_t<Job&>> run(Job job) {
        using Value = std::invoke_result_t<Job&>;
        // The job is passed as a parameter: a parameter lives in the coroutine's frame, a capture would not.
        // Asio asks for a result with a default constructor: hence the optional.
        auto body = [](Job j) -> boost::asio::awaitable<std::optional<Value>> { co_return j(); };
        std::optional<Value> value = co_await boost::asio::co_spawn(pool_.get_executor(), body(std::move(job)), boost::asio::use_awaitable);
        co_return std::move(*value);
    }

  private:
    boost::asio::thread_pool pool_;
};

}  // namespace server
