// One thread for pure, slow work (templates, tokens), so that the loop never computes.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
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

    // Runs `job` on the worker and gives its result back on the caller's executor, as soon as it is there: jobs behind it in
    // the queue are not waited for. (co_spawn onto the pool would post once more to it before it calls back.)
    template <typename Job>
    boost::asio::awaitable<std::invoke_result_t<Job&>> run(Job job) {
        namespace asio = boost::asio;
        using Value = std::invoke_result_t<Job&>;
        // Asio asks for a result with a default constructor: hence the optional.
        auto start = [this](auto handler, Job todo) {
            auto executor = asio::get_associated_executor(handler, pool_.get_executor());
            auto work = asio::make_work_guard(executor);
            asio::post(pool_, [handler = std::move(handler), todo = std::move(todo), work = std::move(work), executor]() mutable {
                std::exception_ptr thrown;
                std::optional<Value> value;
                try {
                    value.emplace(todo());
                } catch (...) {
                    thrown = std::current_exception();
                }
                asio::post(executor, [handler = std::move(handler), work = std::move(work), thrown, value = std::move(value)]() mutable {
                    std::move(handler)(thrown, std::move(value));
                });
            });
        };
        std::optional<Value> value =
            co_await asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr, std::optional<Value>)>(
                start, asio::use_awaitable, std::move(job));
        co_return std::move(*value);
    }

  private:
    boost::asio::thread_pool pool_;
};

}  // namespace server
