// Every route of the server: one table from path and method to a handler. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.h"
#include "server/assets.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/noting_writer.h"
#include "server/openai_request.h"
#include "server/openai_response.h"
#include "server/prepare.h"
#include "server/served_model.h"
#include "server/streams.h"
#include "server/worker.h"

namespace server {

struct RoutesOptions {
    std::string version;
    std::span<const Asset> assets;  // the page; empty: none
    std::string_view assets_csp;
    bool vllm_metrics = true;
    // One line at the end of each request; no prompt, key or answer in it.
    std::function<void(std::string_view)> access_log = [](std::string_view) {};
    std::function<HttpStats()> http_stats = [] { return HttpStats{}; };
    std::function<uint64_t()> connections_open = [] { return uint64_t{0}; };
};

// Counts something while the object lives, whichever way its coroutine ends.
class Counted {
  public:
    explicit Counted(uint32_t& count) : count_(count) { ++count_; }
    ~Counted() { --count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

  private:
    uint32_t& count_;
};

class Routes {
  public:
    // All references outlive the routes.
    Routes(RoutesOptions options, Streams& streams, Worker& worker, const base::Clock& clock);
    Routes(const Routes&) = delete;
    Routes& operator=(const Routes&) = delete;

    // For HttpServer; valid as long as the routes are.
    Handler handler();

    // --- states: loading until set_model, then ready; draining once told ---
    void set_loading_status(std::string status) { loading_status_ = std::move(status); }  // "Loading model"
    void set_model(const ServedModel& model, double load_s);                              // outlives the routes
    void set_draining() { draining_ = true; }                                             // generation is refused with 503 from now on
    // The engine's step in progress has taken longer than this: a hang, or a machine far too slow for the model.
    bool engine_stuck(int64_t limit_ms = limits::engine_stuck_ms) const;
    // Requests that are being prepared or answered.
    uint32_t generations_count() const { return generations_count_; }

    // A row of the table.
    struct Row {
        std::string_view path;    // "/chat/completions"; also answered under /v1
        std::string_view method;  // GET (HEAD too) or POST
        bool generates = false;   // refused while draining
        boost::asio::awaitable<void> (Routes::*handle)(HttpRequest, NotingWriter&);
    };
    static std::span<const Row> table();

  private:
    using Done = boost::asio::awaitable<void>;
    Done dispatch(HttpRequest request, ResponseWriter& writer);
    Done answer(const Row& row, HttpRequest request, ResponseWriter& writer);

    // routes.cpp
    Done health(HttpRequest request, NotingWriter& writer);
    Done ready(HttpRequest request, NotingWriter& writer);
    Done metrics(HttpRequest request, NotingWriter& writer);
    Done models(HttpRequest request, NotingWriter& writer);
    Done one_model(HttpRequest request, NotingWriter& writer);
    Done tokenize(HttpRequest request, NotingWriter& writer);
    Done detokenize(HttpRequest request, NotingWriter& writer);
    Done apply_template(HttpRequest request, NotingWriter& writer);
    Done asset(HttpRequest request, NotingWriter& writer);
    // What keeps a request from being served now: loading, stuck.
    std::optional<HttpResponse> not_serving() const;
    // Refuses a burst before its prompts cost any work: the worker has as much before it as the engine could take, or
    // (`generates`) the engine's queue is full. submit() decides for good.
    std::optional<HttpResponse> too_busy(bool generates) const;

    template <typename Job>
    boost::asio::awaitable<std::invoke_result_t<Job&>> on_worker(Job job) {
        const Counted counted(preparing_count_);
        co_return co_await worker_.run(std::move(job));
    }

    // routes_generate.cpp
    Done chat(HttpRequest request, NotingWriter& writer);
    Done completions(HttpRequest request, NotingWriter& writer);
    Done generate(const HttpRequest& request, NotingWriter& writer, const GenerationRequest& asked, AnswerOptions options,
                  base::Result<Prepared> prepared);
    Done answer_stream(ResponseWriter& writer, Stream& stream, OpenAiAnswer& answer, HttpResponse head);
    Done answer_whole(ResponseWriter& writer, Stream& stream, OpenAiAnswer& answer, HttpResponse head);
    uint64_t random_u64();
    AnswerOptions answer_options(bool chat, const GenerationRequest& asked);

    RoutesOptions options_;
    Streams& streams_;
    Worker& worker_;
    const base::Clock& clock_;
    const int64_t started_ns_;
    const ServedModel* model_ = nullptr;
    double load_s_ = 0;
    std::string loading_status_ = "Loading model";
    bool draining_ = false;
    uint32_t generations_count_ = 0;
    uint32_t preparing_count_ = 0;  // jobs given to the worker and not back yet
    RequestCounts counts_;
    uint64_t random_state_;
};

}  // namespace server
