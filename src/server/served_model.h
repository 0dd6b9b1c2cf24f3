// What the routes know of the loaded model. Built once by commands/loaded_model, const afterwards; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace server {

struct ServedModel {
    std::string id;           // in /v1/models and in every answer
    std::string fingerprint;  // system_fingerprint: changes when the answers may
    int64_t created_unix_s = 0;
    std::string architecture;  // "llama"
    uint64_t n_params = 0;
    uint64_t size_bytes = 0;  // of the file
    uint32_t n_vocab = 0;
    uint32_t context_trained = 0;     // tokens, as the file says
    uint32_t context_length = 0;      // tokens, as enforced
    uint32_t default_max_tokens = 0;  // of an answer without max_tokens
    uint32_t queue_requests_max = 0;  // waiting requests; one more is refused
    uint32_t sequences_max = 1;       // running at once
    bool prefix_cache = true;
    std::string kv_type;  // "f16"
    const text::Tokenizer* tokenizer = nullptr;
    const text::ChatTemplate* chat_template = nullptr;  // null: the file has none
    std::string bos_token, eos_token;                   // texts, empty when the file has none
    engine::Engine* engine = nullptr;                   // its any-thread part and, from the loop only, pop_event
};

}  // namespace server
