// An engine on fakes, stepped by hand, with its events sorted into answers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_model.h"
#include "tests/support/fake_tokenizer.h"

namespace engine_test {

struct Answer {
    std::string text;
    std::vector<engine::TokenId> tokens;
    std::vector<engine::Event> events;
    engine::FinishReason finish = engine::FinishReason::none;
    bool last_choice = false;
    int32_t stop_index = -1;
    engine::Usage usage;
};

class Rig {
  public:
    explicit Rig(engine::EngineConfig config = {}, support::FakeModelConfig model = {}) : model_config(std::move(model)) {
        model_config.clock = &clock;
        if (config.context_length == 0) config.context_length = model_config.context_length;
        fake = std::make_unique<support::FakeModel>(model_config);
        e = engine::Engine::create(config, *fake, tokenizer, clock, [this] { ++wakes; });
    }

    engine::Request request(std::string_view prompt, uint32_t max_tokens) {
        engine::Request r;
        r.id = next_id++;
        tokenizer.encode(prompt, false, r.tokens);
        r.sampling.temperature = 0.0f;
        r.max_tokens = max_tokens;
        r.arrival_ns = clock.now_ns();
        return r;
    }
    // A prompt of n tokens that depends on `key`.
    engine::Request long_request(uint32_t n, uint32_t max_tokens, uint32_t key = 0) {
        engine::Request r = request("x", max_tokens);
        r.tokens.clear();
        for (uint32_t i = 0; i < n; ++i) r.tokens.push_back(static_cast<engine::TokenId>('a' + (i * 7 + i / 26 + key * 5 + (i % (key + 2))) % 26));
        if (n > 1) r.tokens[0] = static_cast<engine::TokenId>('A' + key % 26);
        return r;
    }

    void drain() {
        engine::Event event;
        while (e->pop_event(event)) take(event);
    }
    void take(const engine::Event& event) {
        Answer& a = answers[{event.id, event.choice}];
        a.text += event.text_view();
        if (event.token >= 0) a.tokens.push_back(event.token);
        a.events.push_back(event);
        if (event.finish_reason != engine::FinishReason::none) {
            a.finish = event.finish_reason;
            a.last_choice = event.last_choice;
            a.stop_index = event.stop_index;
            a.usage = event.usage;
        }
    }
    bool step() {
        const bool did = e->step();
        e->check_integrity();
        drain();
        return did;
    }
    // Steps until nothing is left; false when that takes more than `most` steps.
    bool finish_all(int most = 100'000) {
        for (int i = 0; e->has_work(); ++i) {
            if (i >= most) return false;
            step();
        }
        drain();
        return true;
    }
    Answer& answer(engine::RequestId id, uint32_t choice = 0) { return answers[{id, choice}]; }
    bool is_empty() const {
        const engine::EngineStats s = e->stats();
        return s.kv_blocks_pinned == 0 && s.kv_blocks_reserved == 0 && s.running == 0 && s.waiting == 0 && !e->has_work();
    }

    support::FakeClock clock;
    support::FakeTokenizer tokenizer;
    support::FakeModelConfig model_config;
    std::unique_ptr<support::FakeModel> fake;
    std::unique_ptr<engine::Engine> e;
    std::map<std::pair<engine::RequestId, uint32_t>, Answer> answers;
    engine::RequestId next_id = 1;
    uint64_t wakes = 0;
};

}  // namespace engine_test
