// Every limit of the program, in one table: what it bounds, its unit, why it has that value.
// ARCHITECTURE.md prints this table; tests/tidy.py checks that it does. Options may lower or raise only
// what option_table.cpp says; everything else is fixed here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace limits {

inline constexpr size_t kib = 1024, mib = 1024 * kib;

// --- a model file (gguf/) --------------------------------------------------------------------------
inline constexpr uint64_t gguf_kv_count = 65'536;               // metadata entries
inline constexpr uint64_t gguf_tensors_count = 65'536;          // tensors
inline constexpr uint64_t gguf_key_bytes = 64 * kib;            // one metadata key
inline constexpr uint64_t gguf_string_bytes = 16 * mib;         // one string value
inline constexpr uint64_t gguf_array_elements = 16 * mib;       // one array value
inline constexpr uint64_t gguf_tensor_name_bytes = 64;          // one tensor name
inline constexpr uint32_t gguf_split_parts = 512;               // files of a split model, each with an open descriptor
inline constexpr uint32_t gguf_dims = 4;                        // dimensions of a tensor
inline constexpr uint64_t gguf_alignment_min = 8;               // the specification wants a multiple of 8
inline constexpr uint64_t gguf_alignment_max = 64 * kib;        // and a power of two
inline constexpr uint32_t model_layers = 1'024;
inline constexpr uint32_t model_width = 1 << 20;                // embedding_length, feed_forward_length, heads x head_dim
inline constexpr uint32_t model_heads = 4'096;
inline constexpr uint32_t model_experts = 1'024;
inline constexpr uint32_t model_head_dim = 1'024;
inline constexpr uint32_t model_context_tokens = 1 << 24;       // the longest context a file may claim

inline constexpr size_t quantize_chunk_bytes = 16 * mib;        // of a tensor, read and encoded before it is written: bounds the quantizer's memory

// --- text (text/) ----------------------------------------------------------------------------------
inline constexpr size_t vocab_tokens = 1 << 20;
inline constexpr size_t vocab_token_bytes = 64 * kib;           // text of one token
inline constexpr size_t vocab_special_bytes = 256;              // text of one control or user-defined token: bounds the search at each byte
inline constexpr size_t vocab_piece_bytes = 1'024;              // a SentencePiece token that merging can make: bounds the look-up of a pair
inline constexpr size_t vocab_merges = 4 << 20;
inline constexpr size_t template_bytes = 1 * mib;               // source of a chat template
inline constexpr uint64_t template_steps = 1'000'000;           // evaluation steps of one rendering
inline constexpr size_t template_output_bytes = 8 * mib;        // also the sum of all strings alive while rendering
inline constexpr uint32_t template_depth = 64;                  // nesting of statements and expressions; macro calls in macro calls
inline constexpr int64_t template_time_ms = 250;                // wall time of one rendering
inline constexpr size_t template_nodes = 1 << 18;               // statements and expressions of one template: bounds its memory
inline constexpr size_t template_values = 1 << 20;              // elements of all lists and dicts alive while rendering
inline constexpr uint32_t template_value_depth = 128;           // lists in lists, when printed or compared; above json_depth
inline constexpr uint32_t template_frames = 1'024;              // evaluations that wait for an inner one: bounds the stack

// --- a request (server/, engine/) --------------------------------------------------------------------
inline constexpr uint32_t json_depth = 64;
inline constexpr size_t json_values_count = 256 * kib;          // values of one body: its tree takes at most about 20 MiB
inline constexpr size_t stop_strings_count = 16;
inline constexpr size_t stop_string_bytes = 256;
inline constexpr size_t logit_bias_entries = 1'024;
inline constexpr uint32_t top_logprobs = 20;
inline constexpr uint32_t choices_count = 8;                    // `n`
inline constexpr size_t messages_count = 4'096;
inline constexpr size_t message_parts_count = 1'024;            // text parts of one message
inline constexpr size_t prompts_count = 16;                     // prompts of one /v1/completions; with `n` at most this many answers
inline constexpr size_t ignored_fields_listed = 16;             // names in x-hearth-ignored; further ones are counted

// --- the engine --------------------------------------------------------------------------------------
inline constexpr uint32_t kv_block_tokens = 64;                 // tokens of one KV block, of one hash and of one attention reduction
inline constexpr uint32_t sequences_running = 64;               // sequences that share a step
inline constexpr uint32_t step_tokens = 512;                    // rows of one step, decode rows and prefill chunks together
inline constexpr uint32_t event_text_bytes = 256;               // text carried by one event; longer text takes several
inline constexpr uint32_t event_ring_entries = 8'192;           // events between engine and loop; a full ring pauses sequences
inline constexpr uint32_t queue_requests_max = 4'096;           // the most --max-queue may ask for
inline constexpr size_t queue_state_bytes = 64 * mib;           // token lists and counts of all requests, waiting or running; beyond it 429
inline constexpr uint32_t bypass_requests = 8;                  // later requests that may pass one that waits for KV blocks
inline constexpr int64_t bypass_time_ms = 2'000;                // after that long at the front nothing passes it any more
inline constexpr uint32_t bypass_scan = 32;                     // blocked requests looked past in one step

inline constexpr size_t file_name_bytes_shown = 200;            // of a model file's name in a message

// --- HTTP (server/) ----------------------------------------------------------------------------------
inline constexpr size_t http_header_bytes = 16 * kib;           // request line and headers together
inline constexpr size_t http_target_bytes = 8 * kib;
inline constexpr size_t http_headers_count = 100;
inline constexpr size_t http_read_buffer_bytes = 64 * kib;      // Beast's flat_buffer: bounds chunk extensions and trailers too
inline constexpr size_t tokenize_answer_bytes = 16 * mib;       // JSON of one /tokenize answer
inline constexpr size_t http_body_bytes = 4 * mib;              // default of --max-body
inline constexpr size_t http_bodies_bytes = 128 * mib;          // bodies of all requests in progress together; one more is told 503
inline constexpr size_t stream_buffer_bytes = 64 * kib;         // unsent SSE bytes of one stream; over it the sequence pauses
inline constexpr uint32_t connections_count = 1'024;            // open connections
inline constexpr int64_t http_header_time_ms = 10'000;          // total, for request line and headers
inline constexpr int64_t http_body_time_ms = 30'000;            // total, for a body
inline constexpr int64_t http_idle_time_ms = 60'000;            // keep-alive
inline constexpr int64_t http_write_stall_ms = 30'000;          // no byte taken by the client
inline constexpr int64_t http_linger_time_ms = 2'000;           // after a last answer, what the client still sends is read and dropped
inline constexpr int64_t http_peer_check_ms = 250;              // how often a socket behind a full buffer is asked whether its client is there
inline constexpr size_t http_linger_bytes = 16 * mib;           // and at most this much of it
inline constexpr size_t http_chunk_line_bytes = 256;            // one chunk-size line with its extensions
inline constexpr size_t http_chunk_extension_bytes = 4 * kib;   // extensions of one body together
inline constexpr size_t http_trailer_bytes = 4 * kib;           // trailer section of a chunked body
inline constexpr size_t http_request_id_bytes = 128;            // a client's X-Request-Id that is echoed
inline constexpr int64_t http_accept_backoff_min_ms = 5;        // pause when no descriptor is left, doubled each time
inline constexpr int64_t http_accept_backoff_max_ms = 1'000;    // and at most this
inline constexpr uint32_t http_overflow_connections = 64;       // connections over the cap that are told so; more are closed at once
inline constexpr int64_t engine_stuck_ms = 10'000;              // one step longer than this: /health says 503
inline constexpr int64_t engine_dead_ms = 30'000;               // and longer than this: the program ends with 70 for its supervisor
inline constexpr int64_t heartbeat_ms = 15'000;                 // SSE comment when nothing else is sent
inline constexpr size_t alias_bytes = 256;                      // of --alias
inline constexpr size_t api_key_bytes_min = 16;
inline constexpr size_t api_key_bytes_max = 512;
inline constexpr size_t api_keys_count = 1'024;

inline constexpr size_t spare_bytes = 256 * mib;                // left to the server itself when the KV budget is chosen

// --- logs (base/) ------------------------------------------------------------------------------------
inline constexpr size_t log_line_bytes = 4 * kib;               // one line with its newline; what a pipe takes in one piece (PIPE_BUF)

static_assert((gguf_alignment_max & (gguf_alignment_max - 1)) == 0);
static_assert(step_tokens >= sequences_running, "every running sequence can decode in one step");
static_assert(event_ring_entries >= 4 * sequences_running, "one step of every sequence always fits");
static_assert(http_header_bytes < http_read_buffer_bytes);
static_assert(spare_bytes >= http_bodies_bytes + queue_state_bytes + connections_count * http_read_buffer_bytes);

}  // namespace limits
