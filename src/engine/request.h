// What a client asks of the engine, as a value: command in (Request, by id), events out (event.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "model/batch.h"

namespace engine {

using TokenId = model::TokenId;
using RequestId = uint64_t;  // unique in the process, given by the caller, never reused

// Ranges are checked by server/openai (bad input is a 400); submit() refuses what is outside them all the same.
struct SamplingParams {
    float temperature = 1.0f;         // [0, 100]; 0 = greedy
    int32_t top_k = 0;                // 0 = off, else >= 1
    float top_p = 1.0f;               // (0, 1]
    float min_p = 0.0f;               // [0, 1)
    float typical_p = 1.0f;           // (0, 1]
    float repetition_penalty = 1.0f;  // (0, 10], as Keskar et al. 2019: logits of seen tokens divided (>0) or multiplied (<0)
    float presence_penalty = 0.0f;    // [-2, 2], over generated tokens (OpenAI)
    float frequency_penalty = 0.0f;   // [-2, 2], over generated tokens (OpenAI)
    int32_t repetition_last_n = -1;   // tokens that repetition_penalty looks back over, prompt included; -1 = all, 0 = off
    std::vector<std::pair<TokenId, float>> logit_bias;  // bias in [-100, 100]; -100 bans
    uint64_t seed = 0;                // the draw at generated token i of choice c depends on (seed, c, i) only
};

struct Request {
    RequestId id = 0;
    std::vector<TokenId> tokens;      // the prompt, at least one
    SamplingParams sampling;
    std::vector<std::string> stop;    // non-empty strings; never part of the output
    uint32_t max_tokens = 0;          // tokens to generate at most, >= 1; prompt + max_tokens <= context (checked by submit)
    uint32_t min_tokens = 0;          // end-of-generation tokens and stop strings are not honoured before
    bool ignore_eos = false;
    bool cache_prompt = true;         // may reuse, and leave behind, prefix blocks
    uint64_t cache_salt = 0;          // from the API key: prefixes are shared inside one key only
    uint32_t n_choices = 1;           // `n`; the prompt is computed once
    bool logprobs = false;
    uint32_t top_logprobs = 0;        // <= limits::top_logprobs
    int64_t arrival_ns = 0;           // base::Clock; TTFT counts from here
};

}  // namespace engine
