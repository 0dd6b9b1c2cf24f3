#include "server/metrics.h"

#include <unistd.h>

#include <cstdio>

#include "base/limits.h"
#include "server/prometheus.h"

namespace server {
namespace {

double number(uint64_t value) { return static_cast<double>(value); }

void write_process(PrometheusText& p, const MetricsView& view) {
    p.one("hearth_build_info", "gauge", "Version of the program.", 1, {{"version", view.version}});
    p.one("hearth_uptime_seconds", "gauge", "Time since the start.", view.uptime_s);
    p.one("hearth_resident_bytes", "gauge", "Memory of the process.", number(resident_bytes()));
    p.one("hearth_ready", "gauge", "1 when requests are taken.", view.model && !view.stuck && !view.draining);
    p.one("hearth_engine_stuck", "gauge", "1 when a step has taken longer than allowed.", view.stuck);
    p.one("hearth_model_load_seconds", "gauge", "Time that loading took.", view.load_s);
    p.one("hearth_streams", "gauge", "Answers in progress.", number(view.streams_live));
    p.one("hearth_streams_paused", "gauge", "Answers that wait for a slow reader.", number(view.streams_paused));
}

void write_http(PrometheusText& p, const MetricsView& view) {
    p.one("hearth_http_connections", "gauge", "Open connections.", number(view.connections_open));
    p.one("hearth_http_connections_total", "counter", "Connections accepted.", number(view.http.connections_accepted));
    p.one("hearth_http_refusals_total", "counter", "Requests turned away before any route: malformed, Host, Origin, key, size, time.",
          number(view.http.refusals));
    p.one("hearth_http_clients_gone_total", "counter", "Clients that left while their request was at work.",
          number(view.http.clients_gone));
    p.one("hearth_http_writes_stalled_total", "counter", "Answers cut because the client took no byte.", number(view.http.writes_stalled));
    if (!view.requests) return;
    p.family("hearth_http_requests_total", "counter", "Requests answered, by route and status; 499: the client had left.");
    for (const auto& [key, count] : view.requests->by_route_and_status())
        p.sample(number(count), {{"route", key.first}, {"status", std::to_string(key.second)}});
    p.histogram("hearth_http_request_seconds", "Time from the head of a request to the end of its answer.", view.requests->seconds());
}

void write_engine(PrometheusText& p, const ServedModel& model, const engine::EngineStats& s, const engine::EngineMetrics& m) {
    p.one("hearth_model_info", "gauge", "The model being served.", 1,
          {{"model", model.id}, {"architecture", model.architecture}, {"kv_type", model.kv_type}});
    p.one("hearth_context_tokens", "gauge", "Tokens that one sequence may hold.", model.context_length);
    p.one("hearth_requests_running", "gauge", "Sequences that share the steps.", s.running);
    p.one("hearth_requests_waiting", "gauge", "Requests in the queue.", s.waiting);
    p.one("hearth_requests_waiting_max", "gauge", "Length that the queue may have.", model.queue_requests_max);
    p.family("hearth_kv_blocks", "gauge", "KV blocks; pinned + reserved never exceed total.");
    p.sample(s.kv_blocks_total, {{"state", "total"}});
    p.sample(s.kv_blocks_pinned, {{"state", "pinned"}});
    p.sample(s.kv_blocks_reserved, {{"state", "reserved"}});
    p.sample(s.kv_blocks_cached, {{"state", "cached"}});
    p.one("hearth_steps_total", "counter", "Engine steps.", number(s.steps));
    p.one("hearth_mixed_steps_total", "counter", "Steps with prefill and decode rows.", number(s.mixed_steps));
    p.family("hearth_step_rows_total", "counter", "Rows of all steps.");
    p.sample(number(s.prefill_rows), {{"phase", "prefill"}});
    p.sample(number(s.decode_rows), {{"phase", "decode"}});
    p.one("hearth_prompt_tokens_total", "counter", "Prompt tokens of admitted requests.", number(s.prompt_tokens));
    p.one("hearth_cached_tokens_total", "counter", "Prompt tokens taken from the prefix cache.", number(s.cached_tokens));
    p.one("hearth_generated_tokens_total", "counter", "Tokens generated.", number(s.generated_tokens));
    p.family("hearth_requests_finished_total", "counter", "Requests by how they ended.");
    p.sample(number(s.finished_stop), {{"reason", "stop"}});
    p.sample(number(s.finished_length), {{"reason", "length"}});
    p.sample(number(s.finished_cancelled), {{"reason", "cancelled"}});
    p.sample(number(s.finished_error), {{"reason", "error"}});
    p.family("hearth_requests_refused_total", "counter", "Requests the engine did not take.");
    p.sample(number(m.refused_queue_full), {{"reason", "queue_full"}});
    p.sample(number(m.refused_context), {{"reason", "context"}});
    p.sample(number(m.refused_draining), {{"reason", "draining"}});
    p.one("hearth_admission_bypasses_total", "counter", "Admissions past a request that waited for blocks.", number(m.bypasses));
    p.one("hearth_event_room_waits_total", "counter", "Steps in which a sequence waited for the reader of events.",
          number(m.event_room_waits));
    p.histogram("hearth_time_to_first_token_seconds", "Arrival to first token.", m.ttft_s);
    p.histogram("hearth_inter_token_latency_seconds", "Between two tokens of a choice.", m.itl_s);
    p.histogram("hearth_queue_seconds", "Submission to first rows in a step.", m.queue_s);
    p.histogram("hearth_prefill_seconds", "First rows to first token.", m.prefill_s);
    p.histogram("hearth_decode_seconds", "First to last token.", m.decode_s);
    p.histogram("hearth_request_seconds", "Arrival to end.", m.e2e_s);
    p.histogram("hearth_step_seconds", "Duration of a step.", m.step_s);
    p.histogram("hearth_step_rows", "Rows of a step.", m.step_rows);
    p.histogram("hearth_request_prompt_tokens", "Prompt tokens of a request.", m.prompt_tokens);
    p.histogram("hearth_request_generation_tokens", "Generated tokens of a choice.", m.generation_tokens);
    p.histogram("hearth_request_max_tokens", "Answer length asked for.", m.max_tokens);
}

// The names that vLLM V1 has, for routers (llm-d, Gateway API), scalers (KEDA) and dashboards made for it.
void write_vllm(PrometheusText& p, const ServedModel& model, const engine::EngineStats& s, const engine::EngineMetrics& m) {
    const Label name{"model_name", model.id}, engine{"engine", "0"};
    const auto one = [&](std::string_view family, std::string_view type, std::string_view help, double value) {
        p.one(family, type, help, value, {name, engine});
    };
    const auto histogram = [&](std::string_view family, std::string_view help, const engine::Histogram& h) {
        p.histogram(family, help, h, {name, engine});
    };
    one("vllm:num_requests_running", "gauge", "Requests in execution.", s.running);
    one("vllm:num_requests_waiting", "gauge", "Requests waiting.", s.waiting);
    one("vllm:kv_cache_usage_perc", "gauge", "KV blocks in use, 0 to 1.",
        s.kv_blocks_total ? number(s.kv_blocks_pinned) / s.kv_blocks_total : 0.0);
    p.one("vllm:cache_config_info", "gauge", "KV cache configuration.", 1,
          {name,
           engine,
           {"block_size", std::to_string(limits::kv_block_tokens)},
           {"num_gpu_blocks", std::to_string(s.kv_blocks_total)},
           {"cache_dtype", model.kv_type},
           {"enable_prefix_caching", model.prefix_cache ? "True" : "False"}});
    p.one("vllm:lora_requests_info", "gauge", "Adapters; none here.", 0,
          {{"max_lora", "0"}, {"waiting_lora_adapters", ""}, {"running_lora_adapters", ""}});
    one("vllm:num_preemptions_total", "counter", "Preemptions; the ledger makes them impossible.", 0);
    one("vllm:prompt_tokens_total", "counter", "Prompt tokens.", number(s.prompt_tokens));
    one("vllm:generation_tokens_total", "counter", "Generated tokens.", number(s.generated_tokens));
    one("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.", number(s.prompt_tokens));
    one("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found there.", number(s.cached_tokens));
    p.family("vllm:request_success_total", "counter", "Finished requests.");
    p.sample(number(s.finished_stop), {name, engine, {"finished_reason", "stop"}});
    p.sample(number(s.finished_length), {name, engine, {"finished_reason", "length"}});
    p.sample(number(s.finished_cancelled), {name, engine, {"finished_reason", "abort"}});
    p.sample(number(s.finished_error), {name, engine, {"finished_reason", "error"}});
    histogram("vllm:time_to_first_token_seconds", "Time to first token.", m.ttft_s);
    histogram("vllm:inter_token_latency_seconds", "Time between tokens.", m.itl_s);
    histogram("vllm:e2e_request_latency_seconds", "Whole request.", m.e2e_s);
    histogram("vllm:request_queue_time_seconds", "Time waiting.", m.queue_s);
    histogram("vllm:request_prefill_time_seconds", "Time in prefill.", m.prefill_s);
    histogram("vllm:request_decode_time_seconds", "Time in decode.", m.decode_s);
    histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", m.prompt_tokens);
    histogram("vllm:request_generation_tokens", "Generated tokens.", m.generation_tokens);
    histogram("vllm:request_params_max_tokens", "max_tokens asked for.", m.max_tokens);
    histogram("vllm:iteration_tokens_total", "Rows of a step.", m.step_rows);
}

}  // namespace

void RequestCounts::count(std::string_view route, unsigned status, double seconds) {
    ++counts_[{std::string(route), status}];
    seconds_.observe(seconds);
}

std::string metrics_text(const MetricsView& view) {
    std::string out;
    PrometheusText p(out);
    write_process(p, view);
    write_http(p, view);
    if (view.model) {
        const engine::EngineStats stats = view.model->engine->stats();
        const engine::EngineMetrics& metrics = view.model->engine->metrics();
        write_engine(p, *view.model, stats, metrics);
        if (view.vllm_names) write_vllm(p, *view.model, stats, metrics);
    }
    return out;
}

uint64_t resident_bytes() {
    std::FILE* file = std::fopen("/proc/self/statm", "re");
    if (!file) return 0;
    unsigned long long total = 0, resident = 0;
    const int fields = std::fscanf(file, "%llu %llu", &total, &resident);
    std::fclose(file);
    return fields == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace server
