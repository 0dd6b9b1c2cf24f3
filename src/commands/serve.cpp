#include "commands/serve.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "base/limits.h"
#include "base/log.h"
#include "base/message.h"
#include "base/version.h"
#include "commands/loaded_model.h"
#include "commands/sd_notify.h"
#include "commands/words.h"
#include "commands/terminal.h"
#include "engine/engine_thread.h"
#include "server/listener.h"
#include "server/routes.h"

namespace commands {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr int exit_cannot_start = 1, exit_bad_model = 2, exit_stuck = 70;
constexpr milliseconds tick{250};
// After the streams are cut: time for their last words to reach the clients.
constexpr milliseconds cut_grace{500};

int fail(int code, const base::Error& error) {
    std::fprintf(stderr, "hearth: %s\n", error.message.c_str());
    return code;
}

// One run of the server. Members are destroyed from the last to the first: what a coroutine of the loop refers to
// stands above the loop, whose destructor ends the last of them.
class Serve {
  public:
    explicit Serve(const ServeOptions& options) : options_(options), clock_(base::system_clock()), started_ns_(clock_.now_ns()) {
        streams_.emplace(io_.get_executor());
        worker_.emplace();
    }

    ~Serve() {
        if (loader_.joinable()) loader_.join();
        if (engine_thread_) engine_thread_->stop();
        // Connections that are cut see it and end; until then their handlers may ask the server for its counts.
        if (http_) http_->close_all();
        worker_.reset();
        io_.restart();
        io_.poll();
        http_.reset();
    }

    int run() {
        if (std::optional<int> code = start()) return *code;
        io_.run();
        return exit_code_;
    }

  private:
    std::optional<int> start() {
        server::HttpOptions http;
        http.address = options_.host;
        http.port = options_.port;
        http.hosts = options_.hosts;
        http.cors_origins = options_.cors_origins;
        http.insecure = options_.insecure;
        http.limits.body_bytes = options_.max_body;
        http.open_paths = {"/health", "/v1/health", "/ready", "/v1/ready"};
        for (const server::Asset& asset : server::assets()) http.open_paths.emplace_back(asset.path);
        http.log = [](std::string_view line) { base::log_warning(line); };
        if (!options_.api_key_file.empty()) {
            base::Result<server::ApiKeys> keys = server::ApiKeys::load(options_.api_key_file);
            if (!keys) return fail(exit_cannot_start, keys.error());
            http.keys = std::move(keys).value();
        }
        keys_count_ = http.keys.size();

        server::RoutesOptions routes;
        routes.version = std::string(::version);
        routes.assets = server::assets();
        routes.assets_csp = server::assets_csp();
        routes.vllm_metrics = options_.vllm_metrics;
        if (!options_.quiet) routes.access_log = [](std::string_view line) { base::log_info(line); };
        routes.http_stats = [this] { return http_->stats(); };
        routes.connections_open = [this] { return http_->active_connections(); };
        routes_.emplace(std::move(routes), *streams_, *worker_, clock_);

        http_.emplace(io_, std::move(http), routes_->handler(), clock_);
        base::Result<uint16_t> port = http_->start();
        if (!port) return fail(exit_cannot_start, port.error());
        port_ = port.value();
        if (!options_.port_file.empty() && !write_port_file()) return exit_cannot_start;

        signals_.async_wait([this](boost::system::error_code error, int number) { on_signal(error, number); });
        arm_tick();
        loader_ = std::thread([this] { load(); });
        return std::nullopt;
    }

    // Written beside and renamed, so that a reader finds a whole number or nothing.
    bool write_port_file() {
        const std::string temporary = options_.port_file + ".tmp";
        std::FILE* file = std::fopen(temporary.c_str(), "we");
        const bool written = file && std::fprintf(file, "%u\n", unsigned{port_}) > 0;
        if (file && std::fclose(file) == 0 && written && std::rename(temporary.c_str(), options_.port_file.c_str()) == 0) return true;
        std::fprintf(stderr, "hearth: cannot write the port to %s: %s\n", base::printable(options_.port_file).c_str(),
                     std::strerror(errno));
        return false;
    }

    // --- loading: on its own thread, so that /health answers meanwhile ---

    void load() {
        ProgressBar bar("loading", clock_);
        LoadHooks hooks;
        hooks.planned = [this](const Fit& fit, const std::string& hardware) { print_plan(fit, hardware); };
        hooks.progress = [this, &bar](uint64_t done, uint64_t total) {
            load_percent_.store(static_cast<unsigned>(done * 100 / total), std::memory_order_relaxed);
            if (!options_.quiet) bar.update(done, total);
        };
        using Loaded = base::Result<std::unique_ptr<LoadedModel>>;
        auto result = std::make_shared<Loaded>(base::Error{base::ErrorCode::unavailable, "", ""});
        try {
            *result = load_model(options_, clock_, streams_->waker(), hooks);
        } catch (const std::exception& error) {  // no memory, no threads: a line and a code, as from main()
            *result = Loaded(base::Error{base::ErrorCode::unavailable, base::cat("loading failed: ", std::string_view(error.what())), ""});
        }
        bar.finish();
        asio::post(io_, [this, result] { on_loaded(std::move(*result)); });
    }

    void on_loaded(base::Result<std::unique_ptr<LoadedModel>> result) {
        loader_.join();
        if (!result) {
            // The file is as it should be where the machine had too little of something.
            const bool machine = result.error().code == base::ErrorCode::unavailable;
            finish(fail(machine ? exit_cannot_start : exit_bad_model, result.error()));
            return;
        }
        loaded_ = std::move(result).value();
        if (!loaded_->template_problem.empty())
            base::log_warning(base::cat("no chat: ", base::printable(loaded_->template_problem, 200), "; /v1/completions works"));
        streams_->set_engine(*loaded_->engine);
        engine_thread_.emplace(*loaded_->engine);
        engine_thread_->start();
        const double seconds = static_cast<double>(clock_.now_ns() - started_ns_) / 1e9;
        routes_->set_model(loaded_->served, seconds);
        print_ready(seconds);
        notify_.send("READY=1\nSTATUS=serving " + loaded_->served.id);
    }

    // --- what a person sees ---

    void print_plan(const Fit& fit, const std::string& hardware) const {
        if (options_.quiet) return;
        std::printf("hearth %s\n", std::string(::version).c_str());
        std::printf("cpu    %s\n", hardware.c_str());
        std::printf("fit    weights %s + work %s + KV %s (%llu tokens, %u full context%s of %u) of %s available\n",
                    bytes_text(fit.weights_bytes).c_str(), bytes_text(fit.work_bytes).c_str(), bytes_text(fit.kv_bytes).c_str(),
                    static_cast<unsigned long long>(fit.kv_tokens()), fit.full_contexts(), fit.full_contexts() == 1 ? "" : "s", fit.context_length,
                    bytes_text(fit.available_bytes).c_str());
        std::fflush(stdout);
    }

    void print_ready(double seconds) const {
        if (options_.quiet) return;
        const bool v6 = options_.host.find(':') != std::string::npos;
        // Nobody connects to 0.0.0.0: this machine itself is reached at loopback, others use its address or an allowed name.
        const bool every = options_.host == "0.0.0.0" || options_.host == "::";
        const std::string shown = options_.host == "0.0.0.0" ? "127.0.0.1" : options_.host == "::" ? "::1" : options_.host;
        const std::string url = base::cat("http://", v6 ? "[" : "", shown, v6 ? "]" : "", ":", port_);
        std::string key = keys_count_ > 0     ? base::cat("one of ", keys_count_, " keys asked for")
                          : options_.insecure ? "no key asked for"
                                              : "no key asked for (loopback only)";
        std::printf("model  %s\n", loaded_->served.id.c_str());
        std::printf("chat   %s/\n", url.c_str());
        std::printf("api    %s/v1   %s\n", url.c_str(), key.c_str());
        if (every) std::printf("       from elsewhere at this machine's addresses; by a name only with --allow-host NAME\n");
        std::printf("ready  in %.1f s; Ctrl-C ends\n", seconds);
        std::fflush(stdout);
    }

    // --- four times a second: watchdog, systemd, progress ---

    void arm_tick() {
        timer_.expires_after(tick);
        timer_.async_wait([this](boost::system::error_code error) {
            if (error) return;
            on_tick();
            arm_tick();
        });
    }

    void on_tick() {
        const int64_t now = clock_.now_ns();
        if (!loaded_) {
            const std::string status = base::cat("Loading model, ", load_percent_.load(std::memory_order_relaxed), " %");
            routes_->set_loading_status(status);
            // Ten more seconds at a time, as long as this loop turns and the loader reads.
            if (notify_.enabled()) notify_.send("EXTEND_TIMEOUT_USEC=10000000\nSTATUS=" + status);
        } else if (routes_->engine_stuck(limits::engine_dead_ms)) {
            die_stuck();
        } else if (routes_->engine_stuck() != said_stuck_) {
            said_stuck_ = !said_stuck_;
            base::log_error(said_stuck_ ? base::cat("the engine makes no progress: one step has taken more than ", limits::engine_stuck_ms / 1000, " s") : std::string("the engine goes on"));
        }
        // Tied to the engine: no sign of life while a step hangs.
        if (notify_.watchdog_us() > 0 && !said_stuck_ && now - watchdog_ns_ >= static_cast<int64_t>(notify_.watchdog_us()) * 1000 / 2) {
            watchdog_ns_ = now;
            notify_.send("WATCHDOG=1");
        }
        if (draining_) check_drained(now);
    }

    // For the supervisor to start anew; a hung thread can't be joined.
    [[noreturn]] void die_stuck() {
        const engine::EngineStats s = loaded_->engine->stats();
        base::log_error(base::cat("the engine has hung for ", limits::engine_dead_ms / 1000, " s: ", s.running, " running, ", s.waiting, " waiting, ", s.kv_blocks_pinned,
                                  " of ", s.kv_blocks_total, " blocks pinned, ", s.steps, " steps done; ending with code 70"));
        std::_Exit(exit_stuck);
    }

    // --- the end ---

    void on_signal(const boost::system::error_code& error, int number) {
        if (error) return;
        // While loading there is nothing to finish, and the loader can't be stopped; a second signal does not wait.
        if (draining_ || !loaded_) std::_Exit(draining_ ? 128 + number : 0);
        signals_.async_wait([this](boost::system::error_code e, int n) { on_signal(e, n); });
        draining_ = true;
        http_->stop_accepting();
        routes_->set_draining();
        loaded_->engine->start_draining();
        const uint32_t in_progress = routes_->generations_count();
        notify_.send("STOPPING=1\nSTATUS=finishing what was begun");
        if (!options_.quiet || in_progress > 0)
            base::log_info(base::cat("ending: ", in_progress, in_progress == 1 ? " answer" : " answers", " in progress, up to ",
                                     options_.drain_s, " s; a second signal ends at once"));
        drain_end_ns_ = clock_.now_ns() + int64_t{options_.drain_s} * 1'000'000'000;
        check_drained(clock_.now_ns());
    }

    void check_drained(int64_t now) {
        if (routes_->generations_count() == 0) {
            if (!closing_) {
                closing_ = true;
                close_end_ns_ = now + std::chrono::nanoseconds(cut_grace).count();
                http_->close_idle();
            }
            if (http_->active_connections() == 0 || now >= close_end_ns_) {
                http_->close_all();
                finish(0);
            }
        } else if (now >= drain_end_ns_) {
            if (!cut_) {
                cut_ = true;
                base::log_warning(
                    base::cat("cutting ", routes_->generations_count(), " answers that did not finish in ", options_.drain_s, " s"));
                streams_->abort_all({base::ErrorCode::unavailable, "the server is shutting down", ""});
                close_end_ns_ = now + std::chrono::nanoseconds(cut_grace).count();
            } else if (now >= close_end_ns_) {
                http_->close_all();
                finish(0);
            }
        }
    }

    void finish(int code) {
        exit_code_ = code;
        io_.stop();
    }

    const ServeOptions& options_;
    const base::Clock& clock_;
    const int64_t started_ns_;
    SdNotify notify_;
    std::unique_ptr<LoadedModel> loaded_;
    std::optional<engine::EngineThread> engine_thread_;
    std::optional<server::Streams> streams_;
    std::optional<server::Routes> routes_;
    asio::io_context io_{1};
    std::optional<server::Worker> worker_;  // its jobs' ends are the loop's work
    std::optional<server::HttpServer> http_;
    asio::signal_set signals_{io_, SIGTERM, SIGINT, SIGHUP};  // SIGHUP: the terminal is gone; answers still finish
    asio::steady_timer timer_{io_};
    std::thread loader_;
    std::atomic<unsigned> load_percent_{0};
    uint16_t port_ = 0;
    size_t keys_count_ = 0;
    int exit_code_ = 0;
    bool said_stuck_ = false;
    int64_t watchdog_ns_ = 0;
    bool draining_ = false, cut_ = false, closing_ = false;
    int64_t drain_end_ns_ = 0, close_end_ns_ = 0;
};

}  // namespace

int serve_command(const ServeOptions& options) { return Serve(options).run(); }

}  // namespace commands
