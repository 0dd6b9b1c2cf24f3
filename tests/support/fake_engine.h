// An engine without tokens: each request gets the pieces of text that a script says, one piece a step and choice.
// Steps by hand. Any call is recorded, so that a test can ask what the server did.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace support {

class FakeEngine final : public engine::Engine {
  public:
    struct Script {
        std::vector<std::string> pieces;  // token i has the id first_token + i % 26
        engine::FinishReason finish = engine::FinishReason::stop;
        bool eos = true;  // the end is an event with the tokenizer's EOS (256 of FakeTokenizer)
    };
    // What choice `choice` of a request answers.
    std::function<Script(const engine::Request&, uint32_t choice)> script = [](const engine::Request&, uint32_t) {
        return Script{{"Hello", " world"}};
    };
    // Set to refuse the next submits.
    std::function<base::Result<void>(const engine::Request&)> gate = [](const engine::Request&) { return base::Result<void>(); };
    std::function<void()> wake = [] {};
    engine::EngineStats numbers;
    uint32_t retry_after = 7;
    static constexpr engine::TokenId first_token = 'a';

    std::vector<engine::Request> submitted;
    std::vector<engine::RequestId> cancelled, paused, resumed;
    bool draining = false;
    size_t live() const { return live_.size(); }

    base::Result<void> submit(engine::Request request) override;
    void cancel(engine::RequestId id) override;
    void pause(engine::RequestId id) override;
    void resume(engine::RequestId id) override;
    void start_draining() override { draining = true; }
    engine::EngineStats stats() const override { return numbers; }
    const engine::EngineMetrics& metrics() const override { return metrics_; }
    bool has_work() const override { return !live_.empty(); }
    uint32_t retry_after_s() const override { return retry_after; }
    bool step() override;
    void wait_for_work() override {}
    void stop_waiting() override {}
    void check_integrity() const override {}
    bool pop_event(engine::Event& out) override;

    engine::EngineMetrics metrics_;

  private:
    struct Choice {
        Script script;
        size_t next = 0;
        bool ended = false;
    };
    struct Live {
        engine::Request request;
        std::vector<Choice> choices;
        bool paused = false;
    };
    void emit(const Live& live, uint32_t choice, engine::Event event);

    std::map<engine::RequestId, Live> live_;
    std::deque<engine::Event> events_;
};

}  // namespace support
