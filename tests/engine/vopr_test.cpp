// The engine simulated: one thread, a fake clock, a fake model, and from one seed a world of arrivals, cancels, pauses,
// slow readers, sizes, stop strings, choices and shared prefixes. After every step the ledger is checked; in the end
// everything must have finished, every answer must be the one that its request gets alone, and nothing may be held.
// A failing seed replays bit for bit: HEARTH_VOPR_SEED=<seed> engine_test --gtest_filter='Vopr.*'
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "tests/engine/plain_answer.h"
#include "tests/engine/rig.h"

using namespace engine;
using engine_test::Answer;
using engine_test::PlainAnswer;

namespace {

// What really happened, so that a simulation that never reaches a state can't pass for one that survives it.
struct Coverage {
    uint64_t steps = 0, accepted = 0, finished = 0, refused_full = 0, refused_long = 0;
    uint64_t cached_tokens = 0, mixed_steps = 0, bypasses = 0, event_room_waits = 0, pauses = 0;
    uint64_t cancelled_before_rows = 0, cancelled_before_token = 0, cancelled_decoding = 0, cancelled_paused = 0, cancelled_in_inbox = 0;
    uint64_t stopped_by_string = 0, stopped_by_token = 0, lengths = 0, errors = 0, choices = 0;

    void add(const Coverage& c) {
        static_assert(sizeof(Coverage) % sizeof(uint64_t) == 0);
        auto* to = reinterpret_cast<uint64_t*>(this);
        const auto* from = reinterpret_cast<const uint64_t*>(&c);
        for (size_t i = 0; i < sizeof(Coverage) / sizeof(uint64_t); ++i) to[i] += from[i];
    }
};

// A broken CHECK aborts: say which seed it was.
volatile uint64_t current_seed = 0;
void on_abort(int) {
    char line[160];
    const int n = std::snprintf(line, sizeof line, "replay: HEARTH_VOPR_SEED=%llu engine_test --gtest_filter='Vopr.*'\n",
                                static_cast<unsigned long long>(current_seed));
    [[maybe_unused]] const auto written = write(2, line, static_cast<size_t>(n));
}

class World {
  public:
    explicit World(uint64_t seed) : random_(seed) {
        EngineConfig config;
        config.sequences_max = 1 + pick(8);
        config.step_tokens_max = config.sequences_max + pick(pick(2) == 0 ? 12 : 150);
        config.prefill_chunk_max = 1 + pick(pick(3) == 0 ? 8 : 120);
        config.queue_requests_max = pick(3) == 0 ? pick(3) : 1 + pick(14);
        config.event_ring_entries = 40 + pick(pick(2) == 0 ? 40 : 2'000);  // one token needs up to 5
        config.prefix_cache = pick(5) != 0;
        support::FakeModelConfig model;
        model.kv_blocks_count = 4 + pick(pick(2) == 0 ? 12 : 60);
        model.context_length = 64 + pick(900);
        model.seed = random_();
        model.bias.assign(model.n_vocab, 0.0f);
        for (const char* text = "abc"; *text != 0; ++text) model.bias[static_cast<size_t>(*text)] = 1.5f;
        for (TokenId t = support::FakeTokenizer::first_piece; t < static_cast<TokenId>(model.n_vocab); ++t) model.bias[static_cast<size_t>(t)] = 0.7f;
        model.bias[support::FakeTokenizer::eos] = pick(2) == 0 ? 0.0f : 1.2f;
        model.nan_token = 1;
        model.infinity_token = 2;
        model.zeros_token = 3;
        model.clock = &clock_;
        config_ = config;
        context_ = config.context_length = model.context_length;
        model_ = std::make_unique<support::FakeModel>(model);
        engine_ = Engine::create(config, *model_, tokenizer_, clock_, [this] { woken_ = true; });
        for (auto& base : bases_) {
            base.resize(pick(400));
            for (TokenId& t : base) t = 'a' + static_cast<TokenId>(pick(26));
        }
        arrivals_left_ = 3 + pick(25);
        arrival_odds_ = 1 + pick(6);
        cancel_odds_ = 4 + pick(60);
        pause_odds_ = 6 + pick(60);
        reader_ = pick(3);
    }

    void run() {
        for (int tick = 0; arrivals_left_ > 0 || engine_->has_work(); ++tick) {
            ASSERT_LT(tick, 200'000) << "not everything finishes";
            if (arrivals_left_ > 0 && pick(arrival_odds_) == 0) {
                for (uint32_t burst = 1 + (pick(4) == 0 ? pick(6) : 0); burst > 0 && arrivals_left_ > 0; --burst) arrive();
            }
            if (pick(cancel_odds_) == 0) cancel_some();
            if (pick(pause_odds_) == 0) pause_some();
            if (arrivals_left_ == 0 || pick(8) == 0) resume_all();
            woken_ = false;
            engine_->step();
            engine_->check_integrity();
            fresh_.clear();
            clock_.advance_ns(static_cast<int64_t>(pick(50)) * 1'000'000);
            read_some();
            if (testing::Test::HasFatalFailure()) return;
        }
        read_all();
        judge();
    }

    Coverage seen;

  private:
    struct Live {
        Request request;
        bool cancelled = false, paused = false, cancelled_fresh = false, cancelled_paused = false;
        uint32_t n_ended = 0;
    };

    uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

    void arrive() {
        arrivals_left_ -= 1;
        Request r;
        r.id = next_id_++;
        const auto& base = bases_[pick(3)];
        r.tokens.assign(base.begin(), base.begin() + static_cast<ptrdiff_t>(pick(2) == 0 ? base.size() : pick(static_cast<uint32_t>(base.size() + 1))));
        for (uint32_t n = pick(3) == 0 ? 0 : pick(70); n > 0; --n) r.tokens.push_back('a' + static_cast<TokenId>(pick(26)));
        if (r.tokens.empty()) r.tokens.push_back('x');
        if (pick(25) == 0) r.tokens.back() = 1 + static_cast<TokenId>(pick(3));  // its first row is broken
        r.max_tokens = 1 + pick(pick(2) == 0 ? 8 : 90);
        if (pick(4) == 0) r.min_tokens = pick(12);
        r.ignore_eos = pick(6) == 0;
        r.cache_prompt = pick(6) != 0;
        r.cache_salt = pick(2);
        r.n_choices = pick(4) == 0 ? 1 + pick(4) : 1;
        if (pick(5) == 0) {
            r.logprobs = true;
            r.top_logprobs = pick(21);
        }
        static const std::vector<std::string> stops{"ab", "abc", "END", "ca", "bb", "\xC3\xA9", "cabc", "aaa", "the ", "\n\n"};
        for (uint32_t n = pick(3) == 0 ? 1 + pick(4) : 0; n > 0; --n) r.stop.push_back(stops[pick(static_cast<uint32_t>(stops.size()))]);
        SamplingParams& p = r.sampling;
        p.seed = random_();
        p.temperature = pick(2) == 0 ? 0.0f : 0.5f + static_cast<float>(pick(100)) / 80.0f;
        if (pick(3) == 0) p.top_k = 1 + static_cast<int32_t>(pick(40));
        if (pick(3) == 0) p.top_p = 0.3f + static_cast<float>(pick(70)) / 100.0f;
        if (pick(5) == 0) p.frequency_penalty = static_cast<float>(pick(40)) / 20.0f;
        if (pick(5) == 0) p.repetition_penalty = 1.0f + static_cast<float>(pick(10)) / 10.0f;
        if (pick(5) == 0) p.repetition_last_n = static_cast<int32_t>(pick(30));
        r.arrival_ns = clock_.now_ns();

        const uint64_t n_prompt = r.tokens.size(), n_total = n_prompt + r.max_tokens;
        const EngineStats before = engine_->stats();
        const base::Result<void> answer = engine_->submit(r);
        if (answer.ok()) {
            seen.accepted += 1;
            EXPECT_LE(engine_->stats().waiting, config_.queue_requests_max);
            live_[r.id].request = r;
            fresh_.insert(r.id);
            return;
        }
        switch (answer.error().code) {
            case base::ErrorCode::context_length_exceeded: {
                seen.refused_long += 1;
                const uint64_t blocks = (n_total - 1 + 63) / 64, shared = n_prompt / 64;
                const bool over_pool = blocks + (blocks - shared) * (r.n_choices - 1) > model_->kv_blocks_count();
                EXPECT_TRUE(n_total > context_ || over_pool);
                break;
            }
            case base::ErrorCode::queue_full:
                seen.refused_full += 1;
                EXPECT_EQ(before.waiting, config_.queue_requests_max);
                break;
            case base::ErrorCode::invalid_argument: EXPECT_GT(r.n_choices, config_.sequences_max); break;
            default: ADD_FAILURE() << answer.error().message;
        }
    }

    Live* some_live() {
        std::vector<Live*> open;
        for (auto& [id, l] : live_) {
            if (l.n_ended < l.request.n_choices) open.push_back(&l);
        }
        return open.empty() ? nullptr : open[pick(static_cast<uint32_t>(open.size()))];
    }
    void cancel_some() {
        Live* l = some_live();
        if (l == nullptr) return;
        if (!l->cancelled) {
            l->cancelled_fresh = fresh_.contains(l->request.id);
            l->cancelled_paused = l->paused;
        }
        l->cancelled = true;
        engine_->cancel(l->request.id);
        if (pick(4) == 0) engine_->cancel(l->request.id);    // twice
        if (pick(4) == 0) engine_->cancel(next_id_ + 1'000);  // nobody
    }
    void pause_some() {
        if (Live* l = some_live(); l != nullptr) {
            l->paused = true;
            seen.pauses += 1;
            engine_->pause(l->request.id);
        }
    }
    void resume_all() {
        for (auto& [id, l] : live_) {
            if (!l.paused) continue;
            l.paused = false;
            engine_->resume(id);
        }
    }

    // reader_ 0: takes all at once; 1: a few at a time; 2: sleeps for long.
    void read_some() {
        if (reader_ == 0) return read_all();
        if (reader_ == 2 && pick(arrivals_left_ > 0 ? 60 : 10) != 0) return;
        Event event;
        for (uint32_t n = pick(30); (n > 0 || reader_ == 2) && engine_->pop_event(event); --n) take(event);
    }
    void read_all() {
        Event event;
        while (engine_->pop_event(event)) take(event);
    }
    void take(const Event& event) {
        ASSERT_TRUE(live_.contains(event.id)) << "an event of a request that was never accepted";
        Live& l = live_[event.id];
        Answer& a = answers_[{event.id, event.choice}];
        ASSERT_EQ(static_cast<int>(a.finish), static_cast<int>(FinishReason::none)) << "an event after the end";
        const std::string_view text = event.text_view();
        if (!text.empty()) {  // never half a character
            ASSERT_NE(static_cast<unsigned char>(text.front()) & 0xc0, 0x80);
        }
        a.text += text;
        if (event.token >= 0) {
            a.tokens.push_back(event.token);
            if (l.request.logprobs) {
                ASSERT_EQ(event.n_top, l.request.top_logprobs);
                ASSERT_LE(event.logprob, 0.0f);
            }
        }
        if (event.finish_reason == FinishReason::none) return;
        a.finish = event.finish_reason;
        a.stop_index = event.stop_index;
        a.usage = event.usage;
        l.n_ended += 1;
        ASSERT_EQ(event.last_choice, l.n_ended == l.request.n_choices);
        ASSERT_EQ(a.usage.completion_tokens, a.tokens.size());
        ASSERT_EQ(a.usage.prompt_tokens, l.request.tokens.size());
        ASSERT_LT(a.usage.cached_tokens, a.usage.prompt_tokens);
    }

    void judge() {
        uint64_t n_first_tokens = 0, n_first_row_errors = 0, cancelled = 0, n_closed = 0;
        for (auto& [id, l] : live_) {
            ASSERT_EQ(l.n_ended, l.request.n_choices) << "request " << id << " has not ended";
            n_closed += 1;
            bool has_token = false, was_cancelled = false;
            for (uint32_t choice = 0; choice < l.request.n_choices; ++choice) {
                const Answer& got = answers_[{id, choice}];
                const PlainAnswer want = engine_test::plain_answer(*model_, tokenizer_, l.request, choice);
                has_token |= !got.tokens.empty();
                seen.choices += 1;
                if (got.finish == FinishReason::cancelled) {
                    ASSERT_TRUE(l.cancelled);
                    was_cancelled = true;
                    seen.cancelled_decoding += !got.tokens.empty();
                    ASSERT_LE(got.tokens.size(), want.tokens.size());
                    ASSERT_TRUE(std::equal(got.tokens.begin(), got.tokens.end(), want.tokens.begin()));
                    continue;
                }
                ASSERT_EQ(got.tokens, want.tokens) << "request " << id << " choice " << choice << " prompt " << l.request.tokens.size();
                ASSERT_EQ(static_cast<int>(got.finish), static_cast<int>(want.finish));
                if (got.finish == FinishReason::error) {
                    seen.errors += 1;
                    continue;
                }
                ASSERT_EQ(got.text, want.text);
                ASSERT_EQ(got.stop_index, want.stop_index);
                seen.stopped_by_string += got.stop_index >= 0;
                seen.stopped_by_token += got.finish == FinishReason::stop && got.stop_index < 0;
                seen.lengths += got.finish == FinishReason::length;
            }
            n_first_tokens += has_token;
            n_first_row_errors += !has_token && !was_cancelled;
            cancelled += was_cancelled;
            if (was_cancelled) {
                seen.cancelled_paused += l.cancelled_paused;
                seen.cancelled_in_inbox += l.cancelled_fresh;
            }
        }
        const EngineStats s = engine_->stats();
        EXPECT_EQ(s.kv_blocks_pinned, 0u);
        EXPECT_EQ(s.kv_blocks_reserved, 0u);
        EXPECT_EQ(s.running + s.waiting, 0u);
        EXPECT_EQ(s.finished_stop + s.finished_length + s.finished_cancelled + s.finished_error, n_closed);
        EXPECT_LE(s.finished_cancelled, cancelled);  // a request with a broken choice counts as an error
        const EngineMetrics& m = engine_->metrics();
        // vllm#8115: the count of first tokens is the number of requests that had one, pauses and cancels or not.
        EXPECT_EQ(m.ttft_s.count(), n_first_tokens);
        EXPECT_EQ(m.e2e_s.count(), n_closed);
        seen.steps += s.steps;
        seen.finished += n_closed - cancelled;
        seen.cached_tokens += s.cached_tokens;
        seen.mixed_steps += s.mixed_steps;
        seen.bypasses += m.bypasses.load();
        seen.event_room_waits += m.event_room_waits.load();
        seen.cancelled_before_rows += n_closed - m.queue_s.count();
        seen.cancelled_before_token += m.queue_s.count() - n_first_tokens - n_first_row_errors;
    }

    std::mt19937_64 random_;
    support::FakeClock clock_;
    support::FakeTokenizer tokenizer_;
    EngineConfig config_;
    std::unique_ptr<support::FakeModel> model_;
    std::unique_ptr<Engine> engine_;
    std::vector<TokenId> bases_[3];
    std::map<RequestId, Live> live_;
    std::map<std::pair<RequestId, uint32_t>, Answer> answers_;
    std::set<RequestId> fresh_;
    RequestId next_id_ = 1;
    uint32_t context_ = 0, arrivals_left_ = 0, arrival_odds_ = 1, cancel_odds_ = 1, pause_odds_ = 1, reader_ = 0;
    bool woken_ = false;
};

}  // namespace

TEST(Vopr, EverySeedFinishesWithTheAnswersItsRequestsGetAlone) {
    uint64_t first = 0, count = std::getenv("HEARTH_VERIFY") != nullptr ? 100'000 : 1'000;
    if (const char* seed = std::getenv("HEARTH_VOPR_SEED"); seed != nullptr) {
        first = std::strtoull(seed, nullptr, 10);
        count = 1;
    }
    const auto old_handler = std::signal(SIGABRT, on_abort);
    Coverage seen;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        current_seed = seed;
        World world(seed);
        world.run();
        if (HasFailure()) {
            ADD_FAILURE() << "replay: HEARTH_VOPR_SEED=" << seed << " engine_test --gtest_filter='Vopr.*'";
            break;
        }
        seen.add(world.seen);
    }
    std::signal(SIGABRT, old_handler);
    RecordProperty("steps", std::to_string(seen.steps));
    if (count == 1 || HasFailure()) return;
    EXPECT_GT(seen.steps, count * 20);
    EXPECT_GT(seen.accepted, count * 5);
    EXPECT_GT(seen.finished, count * 4);
    EXPECT_GT(seen.cached_tokens, count * 32) << "prefix hits";
    EXPECT_GT(seen.mixed_steps, count) << "steps with prefill and decode rows";
    EXPECT_GT(seen.bypasses, count / 20);
    EXPECT_GT(seen.event_room_waits, count / 20);
    EXPECT_GT(seen.pauses, count);
    EXPECT_GT(seen.refused_full, count / 4);
    EXPECT_GT(seen.refused_long, count / 4);
    EXPECT_GT(seen.cancelled_before_rows, count / 20);
    EXPECT_GT(seen.cancelled_before_token, count / 20);
    EXPECT_GT(seen.cancelled_decoding, count / 20);
    EXPECT_GT(seen.cancelled_paused, count / 40);
    EXPECT_GT(seen.cancelled_in_inbox, count / 100);
    EXPECT_GT(seen.stopped_by_string, count / 2);
    EXPECT_GT(seen.stopped_by_token, count / 2);
    EXPECT_GT(seen.lengths, count);
    EXPECT_GT(seen.errors, count / 20);
}
