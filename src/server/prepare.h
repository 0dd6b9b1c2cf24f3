// From a parsed request to tokens: render the template, encode, check against the model. Pure functions, run on the
// worker thread so that a long prompt delays nobody's stream; the rendered text stays inside.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/request.h"
#include "json/value.h"
#include "server/openai_request.h"
#include "server/served_model.h"
#include "text/tokenizer.h"

namespace server {

struct Prepared {
    std::vector<engine::Request> requests;  // one a prompt; id, cache_salt and arrival_ns are the caller's to fill
    std::vector<std::string> echo;          // text to put before each answer; empty or one a prompt
    std::vector<std::string> ignored;       // further names for x-hearth-ignored
};

// Errors: context_length_exceeded in OpenAI's words with both numbers; what the template raises; ids outside the
// vocabulary. `fallback_seed` is used when the request names none.
base::Result<Prepared> prepare(const ChatRequest& request, const ServedModel& model, uint64_t fallback_seed, const base::Clock& clock);
base::Result<Prepared> prepare(const CompletionRequest& request, const ServedModel& model, uint64_t fallback_seed);

// The template's output for a conversation. Names of template arguments that the template never reads are appended
// to `ignored`.
base::Result<std::vector<text::Segment>> render_chat(const ChatRequest& request, const ServedModel& model, const base::Clock& clock,
                                                     std::vector<std::string>& ignored);

// Bodies of /tokenize, /detokenize and /apply-template to the JSON of their answers.
base::Result<std::string> tokenize_answer(const json::Value& body, const ServedModel& model, const base::Clock& clock);
base::Result<std::string> detokenize_answer(const json::Value& body, const ServedModel& model);
base::Result<std::string> apply_template_answer(const json::Value& body, const ServedModel& model, const base::Clock& clock);

}  // namespace server
