// The exposition format: what a Prometheus server would refuse, and the families that others read.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "server/prometheus.h"
#include "tests/server/api_harness.h"

namespace {

using api::Harness;

const std::string hello = R"({"messages":[{"role":"user","content":"secret prompt"}]})";

struct Exposition {
    std::map<std::string, std::string> types;  // family -> type
    std::map<std::string, double> samples;     // name{labels} -> value
};

// A strict reader of text format 0.0.4: HELP and TYPE before the samples, each family once.
Exposition read(const std::string& text) {
    Exposition out;
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream lines(text);
    std::string family;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# HELP ")) {
            family = line.substr(7, line.find(' ', 7) - 7);
            EXPECT_EQ(out.types.count(family), 0u) << family << " comes twice";
            continue;
        }
        if (line.starts_with("# TYPE ")) {
            std::istringstream words(line.substr(7));
            std::string name, type;
            words >> name >> type;
            EXPECT_EQ(name, family);
            EXPECT_TRUE(type == "counter" || type == "gauge" || type == "histogram") << line;
            EXPECT_TRUE(type != "counter" || name.ends_with("_total")) << name;
            out.types[name] = type;
            continue;
        }
        const size_t space = line.rfind(' ');
        EXPECT_NE(space, std::string::npos) << line;
        const std::string key = line.substr(0, space), name = key.substr(0, key.find('{'));
        EXPECT_TRUE(name == family || (out.types[family] == "histogram" &&
                                       (name == family + "_bucket" || name == family + "_sum" || name == family + "_count")))
            << line;
        EXPECT_EQ(out.samples.count(key), 0u) << "twice: " << key;
        size_t used = 0;
        out.samples[key] = std::stod(line.substr(space + 1), &used);
        EXPECT_EQ(used, line.size() - space - 1) << line;
    }
    return out;
}

TEST(Metrics, FormatAndFamilies) {
    Harness h;
    h.model.id = "odd\"name\\";
    h.load();
    h.engine.numbers.kv_blocks_total = 100;
    h.engine.numbers.kv_blocks_pinned = 25;
    h.engine.numbers.running = 3;
    h.engine.numbers.waiting = 4;
    h.engine.metrics_.ttft_s.observe(0.03);
    h.engine.metrics_.ttft_s.observe(500);
    h.engine.metrics_.ttft_s.observe(1e9);
    h.post("/v1/chat/completions", hello);
    const api::Seen& seen = h.call("GET", "/metrics");
    EXPECT_EQ(seen.head.content_type, "text/plain; version=0.0.4; charset=utf-8");
    const Exposition e = read(seen.body);
    EXPECT_EQ(e.samples.at("hearth_requests_running"), 3);
    EXPECT_EQ(e.samples.at("hearth_kv_blocks{state=\"pinned\"}"), 25);
    EXPECT_EQ(e.samples.at("hearth_http_requests_total{route=\"/chat/completions\",status=\"200\"}"), 1);
    EXPECT_EQ(e.samples.at("hearth_time_to_first_token_seconds_bucket{le=\"0.02\"}"), 0);
    EXPECT_EQ(e.samples.at("hearth_time_to_first_token_seconds_bucket{le=\"0.04\"}"), 1);
    EXPECT_EQ(e.samples.at("hearth_time_to_first_token_seconds_bucket{le=\"2560\"}"), 2);
    EXPECT_EQ(e.samples.at("hearth_time_to_first_token_seconds_bucket{le=\"+Inf\"}"), 3);
    EXPECT_EQ(e.samples.at("hearth_time_to_first_token_seconds_count"), 3);
    EXPECT_GT(e.samples.at("hearth_resident_bytes"), 1e6);
    // What routers, scalers and dashboards of vLLM read.
    const std::string labels = "{model_name=\"odd\\\"name\\\\\",engine=\"0\"}";
    EXPECT_EQ(e.samples.at("vllm:num_requests_running" + labels), 3);
    EXPECT_EQ(e.samples.at("vllm:num_requests_waiting" + labels), 4);
    EXPECT_EQ(e.samples.at("vllm:kv_cache_usage_perc" + labels), 0.25);
    for (const char* family : {"vllm:cache_config_info", "vllm:lora_requests_info", "vllm:prompt_tokens_total",
                               "vllm:generation_tokens_total", "vllm:request_success_total", "vllm:time_to_first_token_seconds",
                               "vllm:inter_token_latency_seconds", "vllm:e2e_request_latency_seconds"})
        EXPECT_EQ(e.types.count(family), 1u) << family;
    // The text of a prompt is nowhere.
    EXPECT_EQ(seen.body.find("secret"), std::string::npos);
}

TEST(Metrics, VllmNamesCanBeOff) {
    Harness h;
    h.options.vllm_metrics = false;
    h.routes = std::make_unique<server::Routes>(h.options, *h.streams, *h.worker, h.clock);
    h.load();
    EXPECT_EQ(h.call("GET", "/metrics").body.find("vllm:"), std::string::npos);
}

TEST(Metrics, VllmsBoundariesAreASubsetOfOurs) {
    const auto contains = [](std::span<const double> ours, std::initializer_list<double> theirs) {
        for (const double bound : theirs) EXPECT_NE(std::find(ours.begin(), ours.end(), bound), ours.end()) << bound;
    };
    contains(engine::itl_bounds_s, {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80});
    contains(engine::ttft_bounds_s,
             {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560});
    contains(engine::request_bounds_s, {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});
}

TEST(Metrics, Numbers) {
    std::string out;
    server::PrometheusText p(out);
    p.one("a", "gauge", "x", 0.1, {{"l", "a\nb\"c\\"}});
    p.one("b", "gauge", "x", 1e20);
    EXPECT_EQ(out, "# HELP a x\n# TYPE a gauge\na{l=\"a\\nb\\\"c\\\\\"} 0.1\n# HELP b x\n# TYPE b gauge\nb 1e+20\n");
}

}  // namespace
