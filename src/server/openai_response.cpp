#include "server/openai_response.h"

#include <algorithm>
#include <cmath>

#include "server/sse.h"

namespace server {
namespace {

// What OpenAI sends for a probability of zero.
constexpr float logprob_floor = -9999.0f;

std::string_view finish_name(engine::FinishReason reason) { return reason == engine::FinishReason::length ? "length" : "stop"; }

// Characters that begin here: every byte but continuation bytes begins one, so pieces of a character sum up to one.
size_t count_characters(std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }
double per_second(double count, int64_t ns) { return ns > 0 ? count * 1e9 / static_cast<double>(ns) : 0.0; }

float shown_logprob(float logprob) { return std::isfinite(logprob) ? std::max(logprob, logprob_floor) : logprob_floor; }

void write_usage(json::Writer& w, const AnswerTotals& t) {
    w.key("usage").begin_object();
    w.member("prompt_tokens", t.prompt_tokens)
        .member("completion_tokens", t.completion_tokens)
        .member("total_tokens", t.prompt_tokens + t.completion_tokens);
    w.key("prompt_tokens_details").begin_object().member("cached_tokens", t.cached_tokens).end_object();
    w.key("completion_tokens_details").begin_object().member("reasoning_tokens", 0).end_object();
    w.end_object();
}

// llama.cpp's names. predicted_ms runs from the first token to the last, so the rate counts the gaps between tokens.
void write_timings(json::Writer& w, const AnswerTotals& t) {
    const uint32_t computed = t.prompt_tokens - std::min(t.prompt_tokens, t.cached_tokens);
    w.key("timings").begin_object();
    w.member("cache_n", t.cached_tokens).member("prompt_n", computed).member("prompt_ms", ms(t.prefill_ns));
    w.member("prompt_per_token_ms", computed ? ms(t.prefill_ns) / computed : 0.0)
        .member("prompt_per_second", per_second(computed, t.prefill_ns));
    w.member("predicted_n", t.completion_tokens).member("predicted_ms", ms(t.decode_ns));
    w.member("predicted_per_token_ms", t.decode_gaps ? ms(t.decode_ns) / t.decode_gaps : 0.0);
    w.member("predicted_per_second", per_second(t.decode_gaps, t.decode_ns)).member("queue_ms", ms(t.queue_ns));
    w.end_object();
}

}  // namespace

OpenAiAnswer::OpenAiAnswer(AnswerOptions options, const text::Tokenizer& tokenizer) : options_(std::move(options)), tokenizer_(tokenizer) {
    choices_.resize(options_.n_choices);
    json::Writer w(chunk_head_);
    w.begin_object().member("id", options_.id);
    w.member("object", options_.chat ? "chat.completion.chunk" : "text_completion");
    w.member("created", options_.created_unix_s).member("model", options_.model).member("system_fingerprint", options_.fingerprint);
    w.key("choices").begin_array();  // left open: each chunk goes on from here
}

std::string_view OpenAiAnswer::echo_of(uint32_t prompt) const {
    return prompt < options_.echo.size() ? std::string_view(options_.echo[prompt]) : std::string_view();
}

// The token that ended the answer is not part of it.
bool OpenAiAnswer::shows_token(const Piece& piece) const {
    if (piece.token < 0) return false;
    return !(piece.finish_reason == engine::FinishReason::stop && tokenizer_.is_end_of_generation(piece.token));
}

void OpenAiAnswer::begin(Choice& choice, uint32_t prompt) {
    choice.begun = true;
    choice.characters = count_characters(echo_of(prompt));
}

OpenAiAnswer::TokenEntry OpenAiAnswer::note(Choice& choice, const Piece& piece) {
    TokenEntry entry;
    if ((options_.logprobs || options_.return_tokens) && shows_token(piece)) {
        entry = {piece.token, piece.logprob, piece.top, choice.characters};
        // Of control tokens no text is shown, so nothing after them moves.
        if (tokenizer_.token_kind(piece.token) != text::TokenKind::control)
            choice.characters += count_characters(tokenizer_.token_bytes(piece.token));
    }
    if (piece.finish_reason != engine::FinishReason::none) {
        choice.finish_reason = piece.finish_reason;
        choice.usage = piece.usage;
    }
    return entry;
}

// {"content":[{token, logprob, bytes, top_logprobs}], "refusal":null} for chat;
// {"tokens":[], "token_logprobs":[], "top_logprobs":[{}], "text_offset":[]} for completions.
void OpenAiAnswer::write_logprobs(json::Writer& w, std::span<const TokenEntry> entries) const {
    w.key("logprobs");
    if (!options_.logprobs) {
        w.value(nullptr);
        return;
    }
    const auto one = [&](engine::TokenId token, float logprob) {
        const std::string_view bytes = tokenizer_.token_bytes(token);
        w.member("token", bytes).member("logprob", shown_logprob(logprob)).key("bytes").begin_array();
        for (const char byte : bytes) w.value(static_cast<int>(static_cast<unsigned char>(byte)));
        w.end_array();
    };
    w.begin_object();
    if (options_.chat) {
        w.key("content").begin_array();
        for (const TokenEntry& entry : entries) {
            w.begin_object();
            one(entry.token, entry.logprob);
            w.key("top_logprobs").begin_array();
            for (const engine::TokenLogprob& top : entry.top) {
                w.begin_object();
                one(top.token, top.logprob);
                w.end_object();
            }
            w.end_array().end_object();
        }
        w.end_array().member("refusal", nullptr).end_object();
        return;
    }
    w.key("tokens").begin_array();
    for (const TokenEntry& entry : entries) w.value(tokenizer_.token_bytes(entry.token));
    w.end_array().key("token_logprobs").begin_array();
    for (const TokenEntry& entry : entries) w.value(shown_logprob(entry.logprob));
    w.end_array().key("top_logprobs").begin_array();
    for (const TokenEntry& entry : entries) {
        w.begin_object();
        for (const engine::TokenLogprob& top : entry.top) w.member(tokenizer_.token_bytes(top.token), shown_logprob(top.logprob));
        w.end_object();
    }
    w.end_array().key("text_offset").begin_array();
    for (const TokenEntry& entry : entries) w.value(uint64_t{entry.text_offset});
    w.end_array().end_object();
}

void OpenAiAnswer::write_tokens(json::Writer& w, std::span<const TokenEntry> entries) const {
    if (!options_.return_tokens) return;
    w.key("tokens").begin_array();
    for (const TokenEntry& entry : entries) w.value(entry.token);
    w.end_array();
}

// `last`: the chunk that ends the last choice carries the timings when no usage chunk will.
void OpenAiAnswer::append_chunk(std::string& out, std::string_view choice_json, bool last) const {
    std::string chunk = chunk_head_;
    chunk += choice_json;
    chunk += ']';
    if (options_.include_usage) chunk += ",\"usage\":null";
    if (last && !options_.include_usage) {
        std::string extra;
        json::Writer w(extra);
        w.begin_object();
        write_timings(w, totals());
        w.end_object();
        chunk += ',';
        chunk.append(extra, 1, extra.size() - 2);  // the member without its braces
    }
    chunk += '}';
    out += sse_data(chunk);
}

std::string OpenAiAnswer::frames(std::span<const Piece> pieces) {
    std::string out;
    for (const Piece& piece : pieces) {
        Choice& choice = choices_.at(piece.choice);
        // One chunk of this choice; `delta` writes the members of delta (chat) or is the text.
        const auto chunk = [&](std::string_view text, bool role, std::span<const TokenEntry> entries, std::string_view finish, bool last) {
            std::string json;
            json::Writer w(json);
            w.begin_object().member("index", piece.choice);
            if (options_.chat) {
                w.key("delta").begin_object();
                if (role)
                    w.member("role", "assistant").member("content", "");
                else if (finish.empty())
                    w.member("content", text);
                w.end_object();
            } else {
                w.member("text", text);
            }
            if (entries.empty())
                w.member("logprobs", nullptr);
            else
                write_logprobs(w, entries);
            if (!entries.empty()) write_tokens(w, entries);
            w.key("finish_reason");
            if (finish.empty())
                w.value(nullptr);
            else
                w.value(finish);
            w.end_object();
            append_chunk(out, json, last);
        };
        if (!choice.begun) {
            begin(choice, piece.prompt);
            if (options_.chat)
                chunk("", true, {}, "", false);
            else if (!echo_of(piece.prompt).empty())
                chunk(echo_of(piece.prompt), false, {}, "", false);
        }
        const TokenEntry entry = note(choice, piece);
        const bool detail = entry.token >= 0;
        if (detail || !piece.text.empty())
            chunk(piece.text, false, detail ? std::span<const TokenEntry>(&entry, 1) : std::span<const TokenEntry>(), "", false);
        // An error or a cut has no finish_reason here: an error event follows.
        if (piece.finish_reason == engine::FinishReason::stop || piece.finish_reason == engine::FinishReason::length) {
            const bool last = std::all_of(choices_.begin(), choices_.end(),
                                          [](const Choice& c) { return c.finish_reason != engine::FinishReason::none; });
            chunk("", false, {}, finish_name(piece.finish_reason), last);
        }
    }
    return out;
}

std::string OpenAiAnswer::tail() const {
    std::string out;
    if (options_.include_usage) {
        std::string members;
        json::Writer w(members);
        const AnswerTotals sums = totals();
        w.begin_object();
        write_usage(w, sums);
        write_timings(w, sums);
        w.end_object();
        out += sse_data(chunk_head_ + "]," + members.substr(1));
    }
    out += sse_done;
    return out;
}

void OpenAiAnswer::collect(std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) {
        Choice& choice = choices_.at(piece.choice);
        if (!choice.begun) {
            begin(choice, piece.prompt);
            choice.text = echo_of(piece.prompt);
        }
        TokenEntry entry = note(choice, piece);
        choice.text += piece.text;
        if (entry.token >= 0) choice.tokens.push_back(std::move(entry));
    }
}

std::string OpenAiAnswer::whole() const {
    std::string out;
    json::Writer w(out);
    w.begin_object().member("id", options_.id).member("object", options_.chat ? "chat.completion" : "text_completion");
    w.member("created", options_.created_unix_s).member("model", options_.model).member("system_fingerprint", options_.fingerprint);
    w.key("choices").begin_array();
    for (uint32_t i = 0; i < choices_.size(); ++i) {
        const Choice& choice = choices_[i];
        w.begin_object().member("index", i);
        if (options_.chat)
            w.key("message")
                .begin_object()
                .member("role", "assistant")
                .member("content", choice.text)
                .member("refusal", nullptr)
                .end_object();
        else
            w.member("text", choice.text);
        write_logprobs(w, choice.tokens);
        write_tokens(w, choice.tokens);
        w.member("finish_reason", finish_name(choice.finish_reason)).end_object();
    }
    w.end_array();
    const AnswerTotals sums = totals();
    write_usage(w, sums);
    write_timings(w, sums);
    w.end_object();
    return out;
}

AnswerTotals OpenAiAnswer::totals() const {
    AnswerTotals t;
    for (size_t i = 0; i < choices_.size(); ++i) {
        const engine::Usage& usage = choices_[i].usage;
        if (i % options_.choices_per_prompt == 0)
            t.prompt_tokens += usage.prompt_tokens, t.cached_tokens += usage.cached_tokens;  // computed once
        t.completion_tokens += usage.completion_tokens;
        t.decode_gaps += usage.completion_tokens > 0 ? usage.completion_tokens - 1 : 0;
        t.queue_ns = std::max(t.queue_ns, usage.queue_ns);
        t.prefill_ns = std::max(t.prefill_ns, usage.prefill_ns);
        t.decode_ns = std::max(t.decode_ns, usage.decode_ns);  // choices decode side by side
    }
    return t;
}

}  // namespace server
