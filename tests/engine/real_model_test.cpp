// Bits through the whole engine: for a tiny model and for SmolLM2, a row's logits are the same bits alone and in company,
// for any chunk size, any joining and leaving, a prefix found or not, any number of threads, any instruction set here.
//
// A decorator of the forward pass notes for each row (hash of the tokens that the KV blocks hold for it, hash of its
// logits). The first time that a history is seen its request runs alone, in one chunk, without a cache, on one thread;
// after that the same history must always give the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>

#include "base/mapped_file.h"
#include "engine/engine.h"
#include "gguf/file.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"
#include "tests/support/fake_clock.h"
#include "tests/support/model_builder.h"
#include "tests/support/token_history.h"
#include "text/tokenizer.h"

using namespace engine;

namespace {

uint64_t hash_row(std::span<const float> row) {
    uint64_t h = row.size();
    for (const float x : row) h = support::TokenHistory::mix(h, std::bit_cast<uint32_t>(x));
    return h;
}

// All rows ever seen of one model, by history.
struct Ledger {
    std::unordered_map<uint64_t, uint64_t> bits;
    uint64_t compared = 0, different = 0;
};

class Recorder final : public model::ForwardPass {
  public:
    Recorder(std::unique_ptr<model::Model> inner, Ledger& ledger) : inner_(std::move(inner)), ledger_(ledger), history_(inner_->kv_blocks_count()) {}

    uint32_t n_vocab() const override { return inner_->n_vocab(); }
    uint32_t context_length() const override { return inner_->context_length(); }
    uint32_t kv_blocks_count() const override { return inner_->kv_blocks_count(); }
    model::Logits forward(const model::Batch& batch) override {
        const model::Logits logits = inner_->forward(batch);
        history_.store(batch);
        support::TokenHistory::for_logit_rows(batch, [&](const model::SequenceSlice& s, uint32_t position, uint32_t i) {
            const uint64_t bits = hash_row(logits.row(i));
            const auto [at, is_new] = ledger_.bits.try_emplace(history_.of(s, position), bits);
            if (is_new) return;
            ledger_.compared += 1;
            ledger_.different += at->second != bits;
        });
        sequences_max = std::max(sequences_max, static_cast<uint32_t>(batch.sequences.size()));
        return logits;
    }
    const model::Model& model() const { return *inner_; }
    uint32_t sequences_max = 0;

  private:
    std::unique_ptr<model::Model> inner_;
    Ledger& ledger_;
    support::TokenHistory history_;
};

struct Outcome {
    std::vector<TokenId> tokens;
    std::string text;
    FinishReason finish = FinishReason::none;
    bool operator==(const Outcome&) const = default;
};
using Outcomes = std::map<std::pair<RequestId, uint32_t>, Outcome>;

void drain(Engine& engine, Outcomes& outcomes) {
    Event event;
    while (engine.pop_event(event)) {
        Outcome& o = outcomes[{event.id, event.choice}];
        if (event.token >= 0) o.tokens.push_back(event.token);
        o.text += event.text_view();
        if (event.finish_reason != FinishReason::none) o.finish = event.finish_reason;
    }
}

// A model file, its tokenizer, and one loaded instance per (instruction set, threads).
class Bench {
  public:
    Bench(const gguf::File& file, kernels::KvType kv, uint32_t context, uint32_t blocks, uint32_t activation_bits) {
        auto tokenizer = text::Tokenizer::from_gguf(file);
        EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
        tokenizer_ = std::move(tokenizer).value();
        const auto add = [&](std::string_view isa, uint32_t threads) {
            auto backend = kernels::cpu::create({threads, std::string(isa), activation_bits});
            ASSERT_TRUE(backend.ok()) << backend.error().message;
            model::ModelOptions options;
            options.kv_type = kv;
            options.kv_blocks_count = blocks;
            options.context_length = context;
            auto loaded = model::Model::load(file, std::move(backend).value(), options);
            ASSERT_TRUE(loaded.ok()) << loaded.error().message;
            passes.push_back(std::make_unique<Recorder>(std::move(loaded).value(), ledger));
        };
        for (const uint32_t threads : {1u, 2u, 3u}) add(kernels::cpu::best_isa(), threads);
        for (const std::string_view isa : kernels::cpu::known_isas()) {
            if (isa != kernels::cpu::best_isa() && kernels::cpu::isa_runs_here(isa)) add(isa, 2);
        }
    }

    void run_alone(const Request& request) {
        EngineConfig config;
        config.context_length = passes[0]->context_length();
        config.prefill_chunk_max = limits::step_tokens;
        config.prefix_cache = false;
        const auto engine = Engine::create(config, *passes[0], *tokenizer_, clock_, nullptr);
        ASSERT_TRUE(engine->submit(request));
        while (engine->has_work()) {
            engine->step();
            drain(*engine, alone);
        }
    }

    // One schedule: `requests` arrive at random moments; some are cancelled, some pause.
    void run_schedule(uint64_t seed, const std::vector<Request>& universe, uint32_t n_requests, Recorder& pass) {
        std::mt19937_64 random(seed);
        const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
        EngineConfig config;
        config.context_length = pass.context_length();
        config.sequences_max = 3 + pick(30);
        config.step_tokens_max = config.sequences_max + pick(pick(3) == 0 ? 8 : 200);
        config.prefill_chunk_max = 1 + pick(pick(3) == 0 ? 9 : 150);
        config.prefix_cache = pick(5) != 0;
        const auto engine = Engine::create(config, pass, *tokenizer_, clock_, nullptr);
        Outcomes got;
        std::map<RequestId, const Request*> sent;
        RequestId next_id = 1;
        uint32_t left = n_requests;
        for (uint32_t i = 0; left > 0 || engine->has_work(); ++i) {
            ASSERT_LT(i, 100'000u);
            for (uint32_t burst = pick(4) == 0 ? 1 + pick(3) : 0; burst > 0 && left > 0; --burst, --left) {
                // The last one comes when all is quiet, and repeats the longest prompt: its prefix may be cached.
                if (left == 1 && engine->has_work()) break;
                const Request* longest = nullptr;
                for (const auto& [id, request] : sent) {
                    if (longest == nullptr || request->tokens.size() > longest->tokens.size()) longest = request;
                }
                const Request& chosen = left == 1 ? *longest : universe[pick(static_cast<uint32_t>(universe.size()))];
                Request r = chosen;
                r.id = next_id++;
                r.cache_prompt = left == 1 || pick(6) != 0;
                ASSERT_TRUE(engine->submit(r));
                sent[r.id] = &chosen;
            }
            if (!sent.empty()) {
                const RequestId id = 1 + random() % sent.size();
                if (pick(30) == 0) engine->cancel(id);
                if (pick(20) == 0) engine->pause(id);
                if (pick(10) == 0 || left <= 1) {
                    for (const auto& [paused, request] : sent) engine->resume(paused);
                }
            }
            engine->step();
            engine->check_integrity();
            drain(*engine, got);
        }
        for (const auto& [id, chosen] : sent) {
            for (uint32_t choice = 0; choice < chosen->n_choices; ++choice) {
                const Outcome &mine = got[{id, choice}], &want = alone[{chosen->id, choice}];
                if (mine.finish == FinishReason::cancelled) {
                    ASSERT_TRUE(std::equal(mine.tokens.begin(), mine.tokens.end(), want.tokens.begin(), want.tokens.begin() + static_cast<ptrdiff_t>(mine.tokens.size())));
                    ASSERT_TRUE(want.text.starts_with(mine.text));
                } else {
                    ASSERT_EQ(mine.text, want.text) << "seed " << seed << " request " << chosen->id;
                    ASSERT_TRUE(mine == want) << "seed " << seed << " request " << chosen->id;
                }
            }
        }
        ASSERT_EQ(ledger.different, 0u) << "seed " << seed << ": logits differ";
        const EngineStats s = engine->stats();
        ASSERT_EQ(s.kv_blocks_pinned + s.kv_blocks_reserved, 0u);
        mixed_steps += s.mixed_steps;
        cached_tokens += s.cached_tokens;
        schedules_with_hits += s.cached_tokens > 0;
        cancelled += s.finished_cancelled;
    }

    const text::Tokenizer& tokenizer() const { return *tokenizer_; }
    Ledger ledger;
    std::vector<std::unique_ptr<Recorder>> passes;
    Outcomes alone;
    uint64_t mixed_steps = 0, cached_tokens = 0, schedules_with_hits = 0, cancelled = 0;

  private:
    std::unique_ptr<text::Tokenizer> tokenizer_;
    support::FakeClock clock_;
};

// Requests with common beginnings, of all lengths up to n_prompt_max.
std::vector<Request> make_universe(const text::Tokenizer& tokenizer, uint64_t seed, size_t n, uint32_t n_prompt_max, uint32_t max_tokens) {
    std::mt19937_64 random(seed);
    const auto pick = [&](uint32_t m) { return static_cast<uint32_t>(random() % m); };
    std::vector<std::vector<TokenId>> bases(2);
    for (auto& base : bases) {
        std::string text;
        while (base.size() < n_prompt_max) {
            for (uint32_t letters = 1 + pick(7); letters > 0; --letters) text += static_cast<char>('a' + pick(26));
            text += ' ';
            base.clear();
            tokenizer.encode(text, false, base);
        }
    }
    std::vector<Request> universe(n);
    for (size_t i = 0; i < n; ++i) {
        Request& r = universe[i];
        r.id = i + 1;
        const auto& base = bases[pick(2)];
        const uint32_t n_prompt = pick(3) == 0 ? 1 + pick(20) : n_prompt_max / 2 + pick(n_prompt_max / 2);
        r.tokens.assign(base.begin(), base.begin() + std::min<ptrdiff_t>(n_prompt, static_cast<ptrdiff_t>(base.size())));
        if (pick(2) == 0) r.tokens.back() = static_cast<TokenId>(3 + pick(200));
        r.max_tokens = 1 + pick(max_tokens);
        r.ignore_eos = pick(2) == 0;
        r.n_choices = pick(6) == 0 ? 2 + pick(2) : 1;
        r.sampling.temperature = pick(2) == 0 ? 0.0f : 0.9f;
        r.sampling.top_p = pick(2) == 0 ? 1.0f : 0.9f;
        r.sampling.seed = random();
        if (pick(4) == 0) r.stop = {"e", " t"};
    }
    return universe;
}

}  // namespace

TEST(RealModel, AThousandSchedulesOfATinyModelGiveTheBitsOfEachRequestAlone) {
    const uint64_t n_schedules = std::getenv("HEARTH_VERIFY") != nullptr ? 10'000 : 1'000;
    struct Kind {
        quant::Type type;
        kernels::KvType kv;
        uint32_t activation_bits;
    };
    uint64_t seed = 0, compared = 0;
    const Kind kinds[] = {{quant::Type::q4_1, kernels::KvType::f16, 16}, {quant::Type::f32, kernels::KvType::f32, 16}, {quant::Type::q8_0, kernels::KvType::f16, 8}};
    for (const Kind& kind : kinds) {
        support::ModelSpec spec = support::spec_for(kind.type);
        spec.n_embd = 64;
        spec.n_heads = 2;
        spec.n_kv_heads = 1;
        spec.n_ff = 96;
        const std::vector<std::byte> image = support::build_model(spec);
        const auto file = gguf::File::parse(image, "tiny");
        ASSERT_TRUE(file.ok()) << file.error().message;
        Bench bench(file.value(), kind.kv, 256, 48, kind.activation_bits);
        if (HasFatalFailure()) return;
        const std::vector<Request> universe = make_universe(bench.tokenizer(), seed, 40, 200, 14);
        for (const Request& r : universe) bench.run_alone(r);
        ASSERT_EQ(bench.ledger.different, 0u);
        const uint64_t end = seed + n_schedules / std::size(kinds) + 1;
        for (; seed < end; ++seed) {
            bench.run_schedule(seed, universe, 3 + static_cast<uint32_t>(seed % 10), *bench.passes[seed % bench.passes.size()]);
            if (HasFatalFailure()) return;
        }
        EXPECT_GT(bench.cached_tokens, n_schedules * 10) << "prefix hits";
        EXPECT_GT(bench.schedules_with_hits, n_schedules / 10);
        EXPECT_GT(bench.mixed_steps, n_schedules) << "steps with prefill and decode rows";
        EXPECT_GT(bench.cancelled, n_schedules / 20);
        EXPECT_GT(bench.passes[0]->sequences_max, 6u);
        compared += bench.ledger.compared;
    }
    EXPECT_GT(compared, n_schedules * 30);
    RecordProperty("rows_compared", std::to_string(compared));
}

TEST(RealModel, SmolLM2GivesTheBitsOfEachRequestAlone) {
    const char* path = std::getenv("HEARTH_TEST_MODEL");
    if (path == nullptr) GTEST_SKIP() << "HEARTH_TEST_MODEL is not set";
    const bool verify = std::getenv("HEARTH_VERIFY") != nullptr;
    const auto view = base::system_files().open_mapped(path);
    ASSERT_TRUE(view.ok()) << view.error().message;
    const auto file = gguf::File::parse(view.value()->bytes(), path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    Bench bench(file.value(), kernels::KvType::f16, 512, 64, 16);
    if (HasFatalFailure()) return;
    const std::vector<Request> universe = make_universe(bench.tokenizer(), 7, verify ? 30 : 8, 150, verify ? 24 : 10);
    for (const Request& r : universe) bench.run_alone(r);
    // The scalar definition takes minutes for what the others do in seconds: a short schedule, unless there is time.
    for (uint64_t seed = 0; seed < (verify ? 200 : bench.passes.size() + 1); ++seed) {
        Recorder& pass = *bench.passes[seed % bench.passes.size()];
        const bool is_best = pass.model().backend().name().find(kernels::cpu::best_isa()) != std::string_view::npos;
        bench.run_schedule(seed, universe, verify || is_best ? 6 : 2, pass);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(bench.cached_tokens, 0u);
    EXPECT_GT(bench.mixed_steps, 0u);
    EXPECT_GT(bench.ledger.compared, 60u);
}
