// /v1/chat/completions and /v1/completions: parse, prepare on the worker, submit, answer.
#include <algorithm>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/message.h"
#include "server/openai.h"
#include "server/routes.h"
#include "server/sse.h"

namespace server {
namespace {

constexpr int64_t ns_per_ms = 1'000'000;

// Names of ignored fields for a header: a name may hold anything, a header may not.
std::string ignored_header(const std::vector<std::string>& names) {
    constexpr size_t name_bytes_max = 64;
    std::string out;
    for (size_t i = 0; i < std::min(names.size(), limits::ignored_fields_listed); ++i) {
        if (i > 0) out += ", ";
        for (const char c : names[i].substr(0, name_bytes_max)) {
            const bool plain =
                (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
            out += plain ? c : '?';
        }
    }
    if (names.size() > limits::ignored_fields_listed)
        out += ", and " + std::to_string(names.size() - limits::ignored_fields_listed) + " more";
    return out;
}

}  // namespace

AnswerOptions Routes::answer_options(bool chat, const GenerationRequest& asked) {
    AnswerOptions options;
    options.chat = chat;
    options.id = (chat ? "chatcmpl-" : "cmpl-") + base::hex16(random_u64());
    options.created_unix_s = clock_.wall_unix_s();
    options.model = model_->id;
    options.fingerprint = model_->fingerprint;
    options.choices_per_prompt = asked.n_choices;
    options.logprobs = asked.logprobs;
    options.return_tokens = asked.return_tokens;
    options.include_usage = asked.include_usage;
    return options;
}

// What the worker gives back: the request as parsed, and, when that went well, what it became.
template <typename Asked>
struct Worked {
    base::Result<Asked> parsed;
    std::optional<base::Result<Prepared>> prepared;
};

// Parsing belongs to the worker too: a body of 200,000 members takes a quarter of a second, and the loop carries all streams.
template <typename Asked, typename Prepare>
Worked<Asked> parse_and_prepare(base::Result<Asked> parsed, Prepare prepare_it) {
    Worked<Asked> out{std::move(parsed), {}};
    if (out.parsed) out.prepared.emplace(prepare_it(out.parsed.value()));
    return out;
}

Routes::Done Routes::chat(HttpRequest request, NotingWriter& writer) {
    const Counted counted(generations_count_);
    auto job = [body = std::exchange(request.body, {}), model = model_, seed = random_u64(), &clock = clock_] {
        return parse_and_prepare(parse_chat_request(body), [&](const ChatRequest& asked) { return prepare(asked, *model, seed, clock); });
    };
    auto [parsed, prepared] = co_await on_worker(std::move(job));
    if (!parsed) {
        HttpResponse refusal = to_response(parsed.error());
        co_await writer.respond(std::move(refusal));
        co_return;
    }
    AnswerOptions options = answer_options(true, parsed.value());
    co_await generate(request, writer, parsed.value(), std::move(options), std::move(*prepared));
}

Routes::Done Routes::completions(HttpRequest request, NotingWriter& writer) {
    const Counted counted(generations_count_);
    auto job = [body = std::exchange(request.body, {}), model = model_, seed = random_u64()] {
        return parse_and_prepare(parse_completion_request(body),
                                 [&](const CompletionRequest& asked) { return prepare(asked, *model, seed); });
    };
    auto [parsed, prepared] = co_await on_worker(std::move(job));
    if (!parsed) {
        HttpResponse refusal = to_response(parsed.error());
        co_await writer.respond(std::move(refusal));
        co_return;
    }
    AnswerOptions options = answer_options(false, parsed.value());
    co_await generate(request, writer, parsed.value(), std::move(options), std::move(*prepared));
}

Routes::Done Routes::generate(const HttpRequest& request, NotingWriter& writer, const GenerationRequest& asked, AnswerOptions options,
                              base::Result<Prepared> prepared) {
    if (writer.client_gone()) co_return;
    if (!prepared) {
        HttpResponse refusal = to_response(prepared.error());
        co_await writer.respond(std::move(refusal));
        co_return;
    }
    Prepared& ready = prepared.value();
    // A batch is taken as a whole; one that an idle server could not take is no question of waiting.
    const size_t batch_max = size_t{model_->queue_requests_max} + model_->sequences_max;
    if (ready.requests.size() > batch_max) {
        HttpResponse refusal = to_response(base::Error{
            base::ErrorCode::invalid_argument,
            base::cat("prompt has ", ready.requests.size(), " prompts; this server takes ", batch_max, " in one request at most (--max-queue)"), "prompt"});
        co_await writer.respond(std::move(refusal));
        co_return;
    }
    for (engine::Request& part : ready.requests) {
        part.cache_salt = request.key_salt;
        part.arrival_ns = request.arrival_ns ? request.arrival_ns : clock_.now_ns();
    }
    options.n_choices = asked.n_choices * static_cast<uint32_t>(ready.requests.size());
    options.echo = std::move(ready.echo);

    const std::shared_ptr<Stream> stream = streams_.open();
    // The connection may call back after this handler has ended.
    writer.on_client_gone([weak = std::weak_ptr<Stream>(stream)] {
        if (const std::shared_ptr<Stream> live = weak.lock()) live->abort({base::ErrorCode::unavailable, "the client has left", ""});
    });
    if (base::Result<void> accepted = stream->submit(std::move(ready.requests)); !accepted) {
        HttpResponse refusal = to_response(accepted.error(), model_->engine->retry_after_s());
        co_await writer.respond(std::move(refusal));
        co_return;
    }

    HttpResponse head;
    if (asked.stream) head = sse_head();
    std::vector<std::string> ignored = asked.ignored;
    ignored.insert(ignored.end(), ready.ignored.begin(), ready.ignored.end());
    if (!ignored.empty()) head.headers.emplace_back("x-hearth-ignored", ignored_header(ignored));
    OpenAiAnswer answer(std::move(options), *model_->tokenizer);
    if (asked.stream)
        co_await answer_stream(writer, *stream, answer, std::move(head));
    else
        co_await answer_whole(writer, *stream, answer, std::move(head));
    if (const AnswerTotals t = answer.totals(); t.prompt_tokens > 0)
        writer.note = base::cat(", ", t.prompt_tokens, "+", t.completion_tokens, " tokens (", t.cached_tokens, " cached), queue ",
                                t.queue_ns / ns_per_ms, " ms, prefill ", t.prefill_ns / ns_per_ms, " ms");
}

// The head goes out with the first event, so that an early error still has its own status; or with the first
// heartbeat, when the queue is long.
Routes::Done Routes::answer_stream(ResponseWriter& writer, Stream& stream, OpenAiAnswer& answer, HttpResponse head) {
    bool begun = false;
    while (true) {
        const bool moved = co_await stream.wait(limits::heartbeat_ms);
        if (writer.client_gone()) co_return;
        if (stream.error() && !begun) {
            HttpResponse refusal = to_response(*stream.error(), model_->engine->retry_after_s());
            co_await writer.respond(std::move(refusal));
            co_return;
        }
        if (!begun) {
            begun = true;
            const bool open = co_await writer.begin_stream(std::move(head));
            if (!open) co_return;
        }
        std::string bytes;
        bool last = false;
        if (stream.error()) {
            bytes = answer.frames(stream.take());
            bytes += sse_data(error_body(*stream.error()));
            last = true;
        } else if (moved) {
            const std::vector<Piece> pieces = stream.take();
            bytes = answer.frames(pieces);
            last = stream.ended();
            if (last) bytes += answer.tail();
        } else {
            bytes = sse_heartbeat;
        }
        if (!bytes.empty()) {
            const bool taken = co_await writer.write(std::move(bytes));
            if (!taken) co_return;
        }
        if (last) break;
    }
    co_await writer.end_stream();
}

Routes::Done Routes::answer_whole(ResponseWriter& writer, Stream& stream, OpenAiAnswer& answer, HttpResponse head) {
    while (true) {
        co_await stream.wait();
        if (writer.client_gone()) co_return;
        if (stream.error()) {
            HttpResponse refusal = to_response(*stream.error(), model_->engine->retry_after_s());
            co_await writer.respond(std::move(refusal));
            co_return;
        }
        answer.collect(stream.take());
        if (stream.ended()) break;
    }
    head.body = answer.whole();
    co_await writer.respond(std::move(head));
}

}  // namespace server
