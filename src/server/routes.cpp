#include "server/routes.h"

#include <algorithm>
#include <array>
#include <exception>
#include <random>
#include <vector>

#include "base/ascii.h"
#include "base/message.h"
#include "base/mix.h"
#include "engine/engine_thread.h"
#include "json/parse.h"
#include "json/writer.h"
#include "server/error_shape.h"
#include "server/openai.h"

namespace server {
namespace {

constexpr double ns_per_s = 1e9;
// Without the trailing slash and the /v1 that every API route may have.
std::string_view bare_path(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    if (path == "/v1") return "/";
    if (path.starts_with("/v1/")) path.remove_prefix(3);
    return path;
}

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i);
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

// "/v1/chat/completion does not exist; did you mean /v1/chat/completions?"
HttpResponse no_such_route(std::string_view path) {
    constexpr size_t path_bytes_max = 128, near_max = 3;
    const std::string_view bare = bare_path(path).substr(0, path_bytes_max);
    std::vector<std::pair<size_t, std::string_view>> near;
    for (const Routes::Row& row : Routes::table()) {
        const size_t distance = edit_distance(bare, row.path);
        const bool part =
            bare.size() >= 4 && (row.path.find(bare.substr(1)) != std::string_view::npos || bare.find(row.path) != std::string_view::npos);
        if (distance <= std::max<size_t>(2, row.path.size() / 3) || part) near.emplace_back(distance, row.path);
    }
    std::sort(near.begin(), near.end());
    std::string message = "no route " + base::printable(path);
    for (size_t i = 0; i < std::min(near.size(), near_max); ++i)
        message.append(i == 0 ? "; did you mean /v1" : ", /v1").append(near[i].second);
    message += near.empty() ? "; /v1/models and /v1/chat/completions are two that exist" : "?";
    return error_response(404, message, "not_found");
}

HttpResponse json_response(std::string body) {
    HttpResponse response;
    response.body = std::move(body);
    return response;
}

HttpResponse to_answer(base::Result<std::string> result) {
    if (!result) return to_response(result.error());
    return json_response(std::move(result).value());
}

// A body that a browser could send across origins without asking first (a "simple" request) is refused when the
// browser says that it comes from a page: pages must send JSON, for which it asks. Scripts without Origin may send
// anything, with or without Content-Type.
std::optional<HttpResponse> wrong_body_type(const HttpRequest& request) {
    const std::string_view encoding = request.header("content-encoding");
    if (!encoding.empty() && encoding != "identity")
        return error_response(415, "a body with Content-Encoding is not accepted; send plain JSON", "unsupported_media_type");
    std::string type(request.header("content-type"));
    std::transform(type.begin(), type.end(), type.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const size_t charset = type.find("charset=");
    if (charset != std::string::npos) {
        const std::string_view name = std::string_view(type).substr(charset + 8);
        if (!name.starts_with("utf-8") && !name.starts_with("\"utf-8\"") && !name.starts_with("utf8") && !name.starts_with("us-ascii"))
            return error_response(415, "the body must be JSON in UTF-8", "unsupported_media_type");
    }
    if (request.header("origin").empty()) return std::nullopt;
    const std::string_view media = std::string_view(type).substr(0, type.find(';'));
    if (media.starts_with("application/json")) return std::nullopt;
    return error_response(415, "a request from a web page must have Content-Type: application/json", "unsupported_media_type");
}

void write_model(json::Writer& w, const ServedModel& model) {
    w.begin_object().member("id", model.id).member("object", "model").member("created", model.created_unix_s).member("owned_by", "hearth");
    w.member("max_model_len", model.context_length).member("context_length", model.context_length);
    w.member("default_max_tokens", std::min(model.default_max_tokens, model.context_length));
    w.key("meta").begin_object().member("n_ctx_train", model.context_trained).member("n_params", model.n_params);
    w.member("size", model.size_bytes).member("n_vocab", model.n_vocab).member("architecture", model.architecture).end_object();
    w.key("architecture").begin_object();
    w.key("input_modalities")
        .begin_array()
        .value("text")
        .end_array()
        .key("output_modalities")
        .begin_array()
        .value("text")
        .end_array()
        .end_object();
    w.key("capabilities").begin_array().value("completion").end_array();
    w.key("sampling_defaults").begin_object().member("temperature", SamplingDefaults::temperature).member("top_k", SamplingDefaults::top_k);
    w.member("top_p", SamplingDefaults::top_p).member("min_p", SamplingDefaults::min_p).end_object();
    w.end_object();
}

// The elements of a comma-separated header, without the white space around them.
template <typename Visit>
void for_elements(std::string_view list, Visit visit) {
    const auto trim = [](std::string_view s) {
        while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
        while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
        return s;
    };
    while (true) {
        const size_t comma = list.find(',');
        visit(trim(list.substr(0, comma)));
        if (comma == std::string_view::npos) return;
        list.remove_prefix(comma + 1);
    }
}

bool same_word(std::string_view a, std::string_view lower) {
    return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) { return base::lower(x) == y; });
}

// RFC 9110 12.5.3: a coding with the weight 0 is not wanted; "*" stands for every coding that is not named.
bool accepts_gzip(std::string_view accept_encoding) {
    std::optional<bool> named, any;
    for_elements(accept_encoding, [&](std::string_view element) {
        const size_t semicolon = element.find(';');
        std::string_view coding = element.substr(0, semicolon), weight = semicolon == std::string_view::npos ? "" : element.substr(semicolon + 1);
        while (coding.ends_with(' ') || coding.ends_with('\t')) coding.remove_suffix(1);
        while (weight.starts_with(' ') || weight.starts_with('\t')) weight.remove_prefix(1);
        const bool refused = (weight.starts_with("q=0") || weight.starts_with("Q=0")) && weight.find_first_not_of(".0", 3) == std::string_view::npos;
        if (same_word(coding, "gzip") || same_word(coding, "x-gzip")) named = !refused;
        if (coding == "*") any = !refused;
    });
    return named.value_or(any.value_or(false));
}

// RFC 9110 13.1.2: "*" fits anything that is there; tags are compared weakly.
bool none_match_fits(std::string_view if_none_match, std::string_view etag) {
    bool fits = false;
    for_elements(if_none_match, [&](std::string_view element) {
        if (element.starts_with("W/")) element.remove_prefix(2);
        fits |= element == "*" || element == etag;
    });
    return fits;
}

}  // namespace

std::span<const Routes::Row> Routes::table() {
    // Sorted for readers of the message of a 404, not for the search.
    static constexpr std::array rows = {
        Row{"/chat/completions", "POST", true, &Routes::chat},  Row{"/completions", "POST", true, &Routes::completions},
        Row{"/models", "GET", false, &Routes::models},          Row{"/tokenize", "POST", false, &Routes::tokenize},
        Row{"/detokenize", "POST", false, &Routes::detokenize}, Row{"/apply-template", "POST", false, &Routes::apply_template},
        Row{"/health", "GET", false, &Routes::health},          Row{"/ready", "GET", false, &Routes::ready},
        Row{"/metrics", "GET", false, &Routes::metrics},
    };
    return rows;
}

Routes::Routes(RoutesOptions options, Streams& streams, Worker& worker, const base::Clock& clock)
    : options_(std::move(options)), streams_(streams), worker_(worker), clock_(clock), started_ns_(clock.now_ns()) {
    std::random_device device;
    random_state_ = (uint64_t{device()} << 32) ^ device();
}

uint64_t Routes::random_u64() {
    return base::next_mixed(random_state_);  // from a start that the system gave
}

Handler Routes::handler() {
    return [this](HttpRequest request, ResponseWriter& writer) { return dispatch(std::move(request), writer); };
}

void Routes::set_model(const ServedModel& model, double load_s) {
    model_ = &model;
    load_s_ = load_s;
}

bool Routes::engine_stuck(int64_t limit_ms) const {
    return model_ && engine::is_stuck(*model_->engine, clock_.now_ns(), limit_ms * 1'000'000);
}

Routes::Done Routes::dispatch(HttpRequest request, ResponseWriter& writer) {
    const std::string_view bare = bare_path(request.path);
    const Row* found = nullptr;
    for (const Row& row : table())
        if (row.path == bare) found = &row;
    static constexpr Row model_row{"/models/{id}", "GET", false, &Routes::one_model};
    if (!found && bare.starts_with("/models/") && bare.size() > 8) found = &model_row;
    static constexpr Row asset_row{"page", "GET", false, &Routes::asset};
    if (!found)
        for (const Asset& asset : options_.assets)
            if (asset.path == request.path) found = &asset_row;
    if (found) {
        co_await answer(*found, std::move(request), writer);
        co_return;
    }
    counts_.count("other", 404, 0);
    HttpResponse refusal = no_such_route(request.path);
    co_await writer.respond(std::move(refusal));
}

Routes::Done Routes::answer(const Row& row, HttpRequest request, ResponseWriter& writer) {
    NotingWriter noting(writer);
    const std::string method = request.method, request_id = request.request_id, remote = request.remote, key_name = request.key_name;
    const int64_t begun_ns = request.arrival_ns ? request.arrival_ns : clock_.now_ns();
    const bool method_fits = method == row.method || (row.method == "GET" && method == "HEAD");
    const std::string allow = row.method == "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
    std::optional<HttpResponse> refusal;
    if (method == "OPTIONS") {
        refusal.emplace();
        refusal->status = 204;
        refusal->headers.emplace_back("Allow", allow);
    } else if (!method_fits) {
        refusal = error_response(405, std::string(row.path) + " takes " + std::string(row.method) + ", not " + base::printable(method, 32),
                                 "method_not_allowed");
        refusal->headers.emplace_back("Allow", allow);
    } else if (row.method == "POST") {
        refusal = wrong_body_type(request);
        if (!refusal) refusal = not_serving();
        // First, whether it will ever be taken: a full queue says "try again", a server that ends doesn't.
        if (!refusal && row.generates && draining_)
            refusal = to_response(base::Error{base::ErrorCode::unavailable, "the server is shutting down", ""}, 5);
        if (!refusal) refusal = too_busy(row.generates);
    }
    std::exception_ptr failure;
    try {
        if (refusal)
            co_await noting.respond(std::move(*refusal));
        else
            co_await (this->*row.handle)(std::move(request), noting);
    } catch (...) { failure = std::current_exception(); }

    const double seconds = static_cast<double>(clock_.now_ns() - begun_ns) / ns_per_s;
    const unsigned status = failure ? 500 : noting.status();
    counts_.count(row.path, status, seconds);
    options_.access_log(base::cat(method, " ", row.path, " ", status, " ", static_cast<int64_t>(seconds * 1e3), " ms", noting.note, " ",
                                  remote, " ", request_id, key_name.empty() ? "" : " key ", key_name));
    if (failure) std::rethrow_exception(failure);  // the connection answers or cuts, and says why
}

std::optional<HttpResponse> Routes::not_serving() const {
    if (!model_) return to_response(base::Error{base::ErrorCode::unavailable, loading_status_, ""});
    if (engine_stuck()) return to_response(base::Error{base::ErrorCode::unavailable, "the engine makes no progress", ""}, 10);
    return std::nullopt;
}

std::optional<HttpResponse> Routes::too_busy(bool generates) const {
    const uint32_t queue_max = model_->queue_requests_max;
    const bool worker_full = preparing_count_ >= queue_max + limits::sequences_running;
    const bool queue_full = generates && queue_max > 0 && model_->engine->stats().waiting >= queue_max;
    if (!worker_full && !queue_full) return std::nullopt;
    return to_response(base::Error{base::ErrorCode::queue_full, base::cat("the queue is full: ", queue_max, " requests wait"), ""},
                       model_->engine->retry_after_s());
}

Routes::Done Routes::health(HttpRequest, NotingWriter& writer) {
    HttpResponse response = json_response(R"({"status":"ok"})");
    if (std::optional<HttpResponse> refusal = not_serving()) response = std::move(*refusal);
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::ready(HttpRequest, NotingWriter& writer) {
    HttpResponse response = json_response(R"({"status":"ready"})");
    if (draining_) response = to_response(base::Error{base::ErrorCode::unavailable, "the server is shutting down", ""});
    if (std::optional<HttpResponse> refusal = not_serving()) response = std::move(*refusal);
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::metrics(HttpRequest, NotingWriter& writer) {
    MetricsView view;
    view.version = options_.version;
    view.uptime_s = static_cast<double>(clock_.now_ns() - started_ns_) / ns_per_s;
    view.load_s = load_s_;
    view.model = model_;
    view.stuck = engine_stuck();
    view.draining = draining_;
    view.streams_live = streams_.live_count();
    view.streams_paused = streams_.paused_count();
    view.requests = &counts_;
    view.http = options_.http_stats();
    view.connections_open = options_.connections_open();
    view.vllm_names = options_.vllm_metrics;
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_text(view);
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::models(HttpRequest, NotingWriter& writer) {
    if (std::optional<HttpResponse> refusal = not_serving()) {
        co_await writer.respond(std::move(*refusal));
        co_return;
    }
    std::string body;
    json::Writer w(body);
    w.begin_object().member("object", "list").key("data").begin_array();
    write_model(w, *model_);
    w.end_array().end_object();
    HttpResponse response = json_response(std::move(body));
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::one_model(HttpRequest request, NotingWriter& writer) {
    if (std::optional<HttpResponse> refusal = not_serving()) {
        co_await writer.respond(std::move(*refusal));
        co_return;
    }
    const std::string_view id = bare_path(request.path).substr(std::string_view("/models/").size());
    if (id != model_->id) {
        HttpResponse refusal = error_response(
            404, base::cat("the model ", base::printable(id), " does not exist; ", base::printable(model_->id), " is served here"),
            "model_not_found");
        co_await writer.respond(std::move(refusal));
        co_return;
    }
    std::string body;
    json::Writer w(body);
    write_model(w, *model_);
    HttpResponse response = json_response(std::move(body));
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::tokenize(HttpRequest request, NotingWriter& writer) {
    auto job = [body = std::move(request.body), model = model_, &clock = clock_]() -> base::Result<std::string> {
        base::Result<json::Value> parsed = parse_body(body);
        if (!parsed) return parsed.take_error();
        return tokenize_answer(parsed.value(), *model, clock);
    };
    base::Result<std::string> result = co_await on_worker(std::move(job));
    HttpResponse response = to_answer(std::move(result));
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::detokenize(HttpRequest request, NotingWriter& writer) {
    auto job = [body = std::move(request.body), model = model_]() -> base::Result<std::string> {
        base::Result<json::Value> parsed = parse_body(body);
        if (!parsed) return parsed.take_error();
        return detokenize_answer(parsed.value(), *model);
    };
    base::Result<std::string> result = co_await on_worker(std::move(job));
    HttpResponse response = to_answer(std::move(result));
    co_await writer.respond(std::move(response));
}

Routes::Done Routes::apply_template(HttpRequest request, NotingWriter& writer) {
    auto job = [body = std::move(request.body), model = model_, &clock = clock_]() -> base::Result<std::string> {
        base::Result<json::Value> parsed = parse_body(body);
        if (!parsed) return parsed.take_error();
        return apply_template_answer(parsed.value(), *model, clock);
    };
    base::Result<std::string> result = co_await on_worker(std::move(job));
    HttpResponse response = to_answer(std::move(result));
    co_await writer.respond(std::move(response));
}

// The page: whichever form of the file the client can read; unchanged files are a 304.
Routes::Done Routes::asset(HttpRequest request, NotingWriter& writer) {
    const bool gzip = accepts_gzip(request.header("accept-encoding"));
    const Asset* chosen = nullptr;
    for (const Asset& asset : options_.assets) {
        if (asset.path != request.path) continue;
        if (!chosen || (asset.encoding == "gzip") == gzip) chosen = &asset;
    }
    CHECK(chosen);
    HttpResponse response;
    response.content_type = chosen->content_type;
    response.headers = {{"ETag", std::string(chosen->etag)},
                        {"Cache-Control", "no-cache"},
                        {"Vary", "Accept-Encoding"},
                        {"Content-Security-Policy", std::string(options_.assets_csp)},
                        {"Referrer-Policy", "no-referrer"}};
    if (none_match_fits(request.header("if-none-match"), chosen->etag)) {
        response.status = 304;
    } else {
        if (!chosen->encoding.empty()) response.headers.emplace_back("Content-Encoding", std::string(chosen->encoding));
        response.body = chosen->bytes;
    }
    co_await writer.respond(std::move(response));
}

}  // namespace server
