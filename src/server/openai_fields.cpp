#include "server/openai_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/limits.h"
#include "server/openai.h"
#include "server/request_fields.h"

namespace server {
namespace {

using base::Result;
using json::Value;

constexpr int64_t tokens_max = INT32_MAX;

// --- honoured fields ---------------------------------------------------------------------------------------------

// Reads one field that is present and not null. `body` is for the few fields whose meaning hangs on another one.
using Reader = Result<void> (*)(GenerationRequest& out, const Value& body, std::string_view field, const Value& value);

struct Honoured {
    std::string_view name;
    Reader read;
};

template <auto Member>
Result<void> to_bool(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<bool> read = read_bool(field, value);
    if (!read) return read.take_error();
    out.*Member = read.value();
    return {};
}

// Bounds are in thousandths, so that they can be template arguments.
template <auto Member, int64_t Low, int64_t High>
Result<void> to_number(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<double> read = read_number(field, value, Low / 1000.0, High / 1000.0);
    if (!read) return read.take_error();
    out.sampling.*Member = static_cast<float>(read.value());
    return {};
}

Result<void> to_model(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<std::string> read = read_string(field, value);
    if (!read) return read.take_error();
    out.model = std::move(read).value();
    return {};
}

// Strongest name first: a weaker one is checked, but does not count beside a stronger one.
constexpr std::array<std::string_view, 3> max_tokens_names = {"max_completion_tokens", "max_tokens", "n_predict"};

Result<void> to_max_tokens(GenerationRequest& out, const Value& body, std::string_view field, const Value& value) {
    Result<int64_t> read = read_int(field, value, 1, tokens_max);
    if (!read) return read.take_error();
    for (const std::string_view name : max_tokens_names) {
        if (name == field) break;
        if (present(body, name)) return {};
    }
    out.max_tokens = static_cast<uint32_t>(read.value());
    return {};
}

Result<void> to_min_tokens(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<int64_t> read = read_int(field, value, 0, tokens_max);
    if (!read) return read.take_error();
    out.min_tokens = static_cast<uint32_t>(read.value());
    return {};
}

Result<void> to_choices(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<int64_t> read = read_int(field, value, 1, limits::choices_count);
    if (!read) return read.take_error();
    out.n_choices = static_cast<uint32_t>(read.value());
    return {};
}

// Any integer of 64 bits; a negative one counts as its two's complement.
Result<void> to_seed(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    if (const uint64_t* large = value.as_uint()) {
        out.seed = *large;
        return {};
    }
    const int64_t* seed = value.as_int();
    if (!seed) return must_be(field, "an integer of 64 bits", value);
    out.seed = static_cast<uint64_t>(*seed);
    return {};
}

// 0 and -1 both say "off" in clients of other servers.
Result<void> to_top_k(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<int64_t> read = read_int(field, value, -1, tokens_max);
    if (!read) return read.take_error();
    out.sampling.top_k = static_cast<int32_t>(std::max<int64_t>(read.value(), 0));
    return {};
}

// 0 is taken for "the most probable token only", as OpenAI does; the engine's range is open there.
template <auto Member>
Result<void> to_probability(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<double> read = read_number(field, value, 0, 1);
    if (!read) return read.take_error();
    out.sampling.*Member = std::max(static_cast<float>(read.value()), 1e-6f);
    return {};
}

Result<void> to_min_p(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<double> read = read_number(field, value, 0, 1);
    if (!read) return read.take_error();
    out.sampling.min_p = std::min(static_cast<float>(read.value()), std::nextafter(1.0f, 0.0f));
    return {};
}

Result<void> to_repetition_penalty(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    double number = 0;
    if (!value.number(number) || !(number >= 0.01 && number <= 10))
        return must_be(field, "a number from 0.01 to 10", value);
    out.sampling.repetition_penalty = static_cast<float>(number);
    return {};
}

Result<void> to_repeat_last_n(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    Result<int64_t> read = read_int(field, value, -1, tokens_max);
    if (!read) return read.take_error();
    out.sampling.repetition_last_n = static_cast<int32_t>(read.value());
    return {};
}

Result<void> to_stop(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    json::Array single;
    const json::Array* list = value.as_array();
    if (!list) {
        if (!value.as_string()) return must_be(field, "a string or an array of strings", value);
        single.push_back(value);
        list = &single;
    }
    if (list->size() > limits::stop_strings_count)
        return invalid(std::string(field), std::string(field) + " has " + std::to_string(list->size()) + " strings, at most " +
                                               std::to_string(limits::stop_strings_count) + " are allowed");
    for (size_t i = 0; i < list->size(); ++i) {
        const std::string name = list == &single ? std::string(field) : element_field(field, i);
        Result<std::string> text = read_string(name, (*list)[i]);
        if (!text) return text.take_error();
        if (text.value().empty()) return invalid(name, name + " must not be empty");
        if (text.value().size() > limits::stop_string_bytes)
            return invalid(name, name + " has " + std::to_string(text.value().size()) + " bytes, at most " +
                                     std::to_string(limits::stop_string_bytes) + " are allowed");
        out.stop.push_back(std::move(text).value());
    }
    return {};
}

Result<void> add_bias(GenerationRequest& out, const std::string& field, int64_t id, const Value& value) {
    double bias = -100;
    if (const bool* flag = value.as_bool()) {  // llama.cpp: false bans the token
        if (*flag) return must_be(field, "a number from -100 to 100, or false", value);
    } else {
        Result<double> read = read_number(field, value, -100, 100);
        if (!read) return read.take_error();
        bias = read.value();
    }
    out.sampling.logit_bias.emplace_back(static_cast<engine::TokenId>(id), static_cast<float>(bias));
    return {};
}

// {"1234": -100} as OpenAI has it, or [[1234, -100]] as llama.cpp does.
Result<void> to_logit_bias(GenerationRequest& out, const Value&, std::string_view field, const Value& value) {
    const json::Object* object = value.as_object();
    const json::Array* array = value.as_array();
    if (!object && !array) return must_be(field, "an object from token ids to numbers", value);
    const size_t count = object ? object->size() : array->size();
    if (count > limits::logit_bias_entries)
        return invalid(std::string(field), std::string(field) + " has " + std::to_string(count) + " entries, at most " +
                                               std::to_string(limits::logit_bias_entries) + " are allowed");
    for (size_t i = 0; i < count; ++i) {
        int64_t id = -1;
        if (object) {
            const std::string& key = (*object)[i].first;
            int32_t parsed = -1;
            const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), parsed);
            if (error != std::errc() || end != key.data() + key.size() || parsed < 0) {
                Value quoted;
                quoted.data = key;
                return must_be(field, "an object whose keys are token ids", quoted);
            }
            id = parsed;
            if (Result<void> added = add_bias(out, std::string(field) + "." + key, id, (*object)[i].second); !added) return added;
            continue;
        }
        const std::string name = element_field(field, i);
        const json::Array* pair = (*array)[i].as_array();
        if (!pair || pair->size() != 2) return must_be(name, "a pair of token id and number", (*array)[i]);
        Result<int64_t> read = read_int(name + "[0]", (*pair)[0], 0, INT32_MAX);
        if (!read) return read.take_error();
        if (Result<void> added = add_bias(out, name + "[1]", read.value(), (*pair)[1]); !added) return added;
    }
    return {};
}

Result<void> to_stream_options(GenerationRequest& out, const Value& body, std::string_view field, const Value& value) {
    const json::Object* object = value.as_object();
    if (!object) return must_be(field, "an object", value);
    for (const auto& [name, option] : *object) {
        if (option.is_null()) continue;
        const std::string option_field = std::string(field) + "." + name;
        if (name == "include_usage") {
            if (Result<void> read = to_bool<&GenerationRequest::include_usage>(out, body, option_field, option); !read) return read;
        } else if (name != "include_obfuscation") {  // padding against traffic analysis: never sent here
            out.ignored.push_back(option_field);
        }
    }
    return {};
}

using engine::SamplingParams;

constexpr std::array honoured = {
    Honoured{"model", to_model},
    Honoured{"stream", to_bool<&GenerationRequest::stream>},
    Honoured{"stream_options", to_stream_options},
    Honoured{"max_tokens", to_max_tokens},
    Honoured{"max_completion_tokens", to_max_tokens},
    Honoured{"n_predict", to_max_tokens},
    Honoured{"min_tokens", to_min_tokens},
    Honoured{"ignore_eos", to_bool<&GenerationRequest::ignore_eos>},
    Honoured{"cache_prompt", to_bool<&GenerationRequest::cache_prompt>},
    Honoured{"return_tokens", to_bool<&GenerationRequest::return_tokens>},
    Honoured{"n", to_choices},
    Honoured{"seed", to_seed},
    Honoured{"stop", to_stop},
    Honoured{"temperature", to_number<&SamplingParams::temperature, 0, 100'000>},
    Honoured{"top_k", to_top_k},
    Honoured{"top_p", to_probability<&SamplingParams::top_p>},
    Honoured{"min_p", to_min_p},
    Honoured{"typical_p", to_probability<&SamplingParams::typical_p>},
    Honoured{"repetition_penalty", to_repetition_penalty},
    Honoured{"repeat_penalty", to_repetition_penalty},
    Honoured{"repeat_last_n", to_repeat_last_n},
    Honoured{"presence_penalty", to_number<&SamplingParams::presence_penalty, -2000, 2000>},
    Honoured{"frequency_penalty", to_number<&SamplingParams::frequency_penalty, -2000, 2000>},
    Honoured{"logit_bias", to_logit_bias},
};

// --- fields that are understood and not built ----------------------------------------------------------------------

// Values with which such a field says nothing; with any other it would change the answer and is refused by name.
enum class Neutral { empty, one, not_positive, yes, text_format, text_only };

struct Refused {
    std::string_view name;
    Neutral neutral;
};

constexpr std::array refused = {
    Refused{"response_format", Neutral::text_format},
    Refused{"modalities", Neutral::text_only},
    Refused{"audio", Neutral::empty},
    Refused{"web_search_options", Neutral::empty},
    Refused{"grammar", Neutral::empty},
    Refused{"json_schema", Neutral::empty},
    Refused{"guided_json", Neutral::empty},
    Refused{"guided_regex", Neutral::empty},
    Refused{"guided_choice", Neutral::empty},
    Refused{"guided_grammar", Neutral::empty},
    Refused{"structured_outputs", Neutral::empty},
    Refused{"chat_template", Neutral::empty},
    Refused{"regex", Neutral::empty},
    Refused{"ebnf", Neutral::empty},
    Refused{"structural_tag", Neutral::empty},
    Refused{"no_repeat_ngram_size", Neutral::not_positive},
    Refused{"add_special_tokens", Neutral::yes},
    Refused{"documents", Neutral::empty},
    Refused{"use_beam_search", Neutral::empty},
    Refused{"length_penalty", Neutral::one},
    Refused{"stop_token_ids", Neutral::empty},
    Refused{"include_stop_str_in_output", Neutral::empty},
    Refused{"skip_special_tokens", Neutral::yes},
    Refused{"allowed_token_ids", Neutral::empty},
    Refused{"bad_words", Neutral::empty},
    Refused{"prompt_logprobs", Neutral::empty},
    Refused{"truncate_prompt_tokens", Neutral::empty},
    Refused{"n_probs", Neutral::empty},
    Refused{"samplers", Neutral::empty},
    Refused{"mirostat", Neutral::empty},
    Refused{"dynatemp_range", Neutral::empty},
    Refused{"xtc_probability", Neutral::empty},
    Refused{"dry_multiplier", Neutral::empty},
    Refused{"top_n_sigma", Neutral::not_positive},
    Refused{"t_max_predict_ms", Neutral::not_positive},
    Refused{"banned_strings", Neutral::empty},
    Refused{"lora", Neutral::empty},
};

bool says_nothing(Neutral neutral, const Value& value) {
    double number = 0;
    const bool is_number = value.number(number);
    switch (neutral) {
        case Neutral::one: return is_number && number == 1;
        case Neutral::not_positive: return is_number && number <= 0;
        case Neutral::yes: return value.as_bool() && *value.as_bool();
        case Neutral::text_format: {
            const Value* type = value.find("type");
            return type && type->as_string() && *type->as_string() == "text";
        }
        case Neutral::text_only: {
            const json::Array* list = value.as_array();
            return list && list->size() == 1 && (*list)[0].as_string() && *(*list)[0].as_string() == "text";
        }
        case Neutral::empty: break;
    }
    if (const json::Array* array = value.as_array()) return array->empty();
    if (const json::Object* object = value.as_object()) return object->empty();
    if (const std::string* text = value.as_string()) return text->empty();
    if (const bool* flag = value.as_bool()) return !*flag;
    return is_number && number == 0;
}

// --- fields that change nothing here ---------------------------------------------------------------------------------

constexpr std::array<std::string_view, 12> harmless = {
    "user",
    "store",
    "metadata",
    "service_tier",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "reasoning_effort",
    "verbosity",
    "prediction",
    "spaces_between_special_tokens",
};

}  // namespace

bool present(const Value& body, std::string_view field) {
    const Value* value = body.find(field);
    return value && !value->is_null();
}

bool says_nothing(const Value& value) { return says_nothing(Neutral::empty, value); }

Result<void> read_shared_fields(GenerationRequest& out, const Value& body, std::initializer_list<std::string_view> own) {
    out.sampling.temperature = SamplingDefaults::temperature;
    out.sampling.top_k = SamplingDefaults::top_k;
    out.sampling.top_p = SamplingDefaults::top_p;
    out.sampling.min_p = SamplingDefaults::min_p;
    for (const auto& [name, value] : *body.as_object()) {
        const std::string_view field = name;
        if (std::find(own.begin(), own.end(), field) != own.end()) continue;
        const auto row = std::find_if(honoured.begin(), honoured.end(), [&](const Honoured& r) { return r.name == field; });
        const auto bar = std::find_if(refused.begin(), refused.end(), [&](const Refused& r) { return r.name == field; });
        if (row != honoured.end()) {
            if (value.is_null()) continue;
            if (Result<void> read = row->read(out, body, field, value); !read) return read;
        } else if (bar != refused.end()) {
            if (!value.is_null() && !says_nothing(bar->neutral, value)) return unsupported(name, name + " is not supported by this server");
        } else if (std::find(harmless.begin(), harmless.end(), field) == harmless.end()) {
            out.ignored.push_back(name);
        }
    }
    return {};
}

}  // namespace server
