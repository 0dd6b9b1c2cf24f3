#include "tests/support/fake_engine.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace support {

base::Result<void> FakeEngine::submit(engine::Request request) {
    if (base::Result<void> open = gate(request); !open) return open;
    if (draining) return base::Error{base::ErrorCode::unavailable, "draining", ""};
    submitted.push_back(request);
    Live live;
    for (uint32_t i = 0; i < request.n_choices; ++i) live.choices.push_back({script(request, i), 0, false});
    live.request = std::move(request);
    live_.emplace(live.request.id, std::move(live));
    return {};
}

void FakeEngine::cancel(engine::RequestId id) {
    cancelled.push_back(id);
    live_.erase(id);
}

void FakeEngine::pause(engine::RequestId id) {
    paused.push_back(id);
    if (const auto at = live_.find(id); at != live_.end()) at->second.paused = true;
}

void FakeEngine::resume(engine::RequestId id) {
    resumed.push_back(id);
    if (const auto at = live_.find(id); at != live_.end()) at->second.paused = false;
}

void FakeEngine::emit(const Live& live, uint32_t choice, engine::Event event) {
    event.id = live.request.id;
    event.choice = choice;
    if (event.token >= 0 && live.request.logprobs) {
        event.logprob = -0.5f;
        event.n_top = static_cast<uint16_t>(live.request.top_logprobs);
        for (uint16_t i = 0; i < event.n_top; ++i) event.top[i] = {event.token + i, -0.5f - i};
    }
    events_.push_back(event);
}

bool FakeEngine::step() {
    bool worked = false;
    ++numbers.steps;
    for (auto at = live_.begin(); at != live_.end();) {
        Live& live = at->second;
        if (live.paused) {
            ++at;
            continue;
        }
        worked = true;
        for (uint32_t c = 0; c < live.choices.size(); ++c) {
            Choice& choice = live.choices[c];
            if (choice.ended) continue;
            engine::Event event;
            if (choice.next < choice.script.pieces.size()) {
                const std::string& text = choice.script.pieces[choice.next];
                CHECK_LE(text.size(), event.text.size());
                std::memcpy(event.text.data(), text.data(), text.size());
                event.text_bytes = static_cast<uint16_t>(text.size());
                event.token = first_token + static_cast<engine::TokenId>(choice.next++ % 26);
            }
            const bool all_said = choice.next == choice.script.pieces.size();
            if (all_said && (event.token < 0 || !choice.script.eos)) {
                choice.ended = true;
                if (event.token < 0 && choice.script.eos) event.token = 256;
                event.finish_reason = choice.script.finish;
                event.last_choice = std::all_of(live.choices.begin(), live.choices.end(), [](const Choice& other) { return other.ended; });
                event.usage.prompt_tokens = static_cast<uint32_t>(live.request.tokens.size());
                event.usage.cached_tokens = 2;
                event.usage.completion_tokens = static_cast<uint32_t>(choice.next) + (event.token == 256);
                event.usage.queue_ns = 1'000'000;
                event.usage.prefill_ns = 10'000'000;
                event.usage.decode_ns = 100'000'000;
            }
            emit(live, c, event);
        }
        const bool done = std::all_of(live.choices.begin(), live.choices.end(), [](const Choice& choice) { return choice.ended; });
        at = done ? live_.erase(at) : std::next(at);
    }
    if (worked) wake();
    return worked;
}

bool FakeEngine::pop_event(engine::Event& out) {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
}

}  // namespace support
