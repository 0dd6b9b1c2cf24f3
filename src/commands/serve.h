// `hearth serve`: loads a model and answers HTTP until a signal. Wiring and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.h"

namespace commands {

// One member per option of `hearth serve`; option_table.cpp has the table of flags, environment names, bounds and help.
struct ServeOptions {
    std::string model_path;          // the .gguf, used where it lies
    std::string alias;               // id shown in /v1/models and answers; empty: the file's name without .gguf
    std::string host = "127.0.0.1";  // numeric address to bind
    uint16_t port = 8080;            // 0: any free port, printed and written to port_file
    std::string port_file;           // when set: the port in decimal and a newline, written once bound
    uint32_t context = 0;            // tokens one sequence may hold; 0: the model's own; refused when its KV doesn't fit
    std::string kv_budget = "auto";  // "auto" or bytes, with an optional suffix K, M, G (powers of 1024)
    std::string kv_type = "f16";     // f16 or f32
    uint32_t max_queue = 64;         // waiting requests; one more is a 429
    uint32_t max_sequences = limits::sequences_running;  // running at once
    uint32_t default_max_tokens = 2048;                  // answer length without max_tokens (also bounded by the context)
    uint32_t threads = 0;                                // compute threads; 0: the cores this process may use
    std::string isa;                                     // scalar, avx2, avx512; empty: the best present
    uint32_t activation_bits = 16;                       // 16: products as exact as the weights; 8: faster prompts (kernels/cpu/cpu.h)
    bool prefix_cache = true;
    std::string chat_template;                    // a file with a Jinja template, or a built-in one's name; empty: the model file's own
    std::string api_key_file;                     // one key a line, # comments; empty: no key asked for
    bool insecure = false;                        // bind beyond loopback without a key
    std::vector<std::string> hosts;               // further names accepted in the Host header
    std::vector<std::string> cors_origins;        // origins allowed to call from a browser; "*" allows all
    uint64_t max_body = limits::http_body_bytes;  // bytes of a request body; more is a 413
    uint32_t drain_s = 30;                        // after SIGTERM: seconds that admitted requests may take to finish
    bool vllm_metrics = true;                     // also export the vllm:-named families that routers and scalers read
    bool quiet = false;                           // no start-up lines and no access log
};

// Runs until SIGTERM or SIGINT. Returns the exit code: 0 drained, 1 could not start (address in use, key file),
// 2 a bad model file or option value, 70 the engine made no progress for a long time.
int serve_command(const ServeOptions& options);

}  // namespace commands
