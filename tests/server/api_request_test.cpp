// Bodies of the OpenAI endpoints: what is honoured, what is refused by name, and the exact words of ranges.
#include <gtest/gtest.h>

#include "base/limits.h"
#include "server/openai.h"
#include "server/openai_request.h"

namespace {

using server::ChatRequest;
using server::CompletionRequest;

ChatRequest chat(const std::string& fields) {
    base::Result<ChatRequest> parsed = server::parse_chat_request(R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}");
    EXPECT_TRUE(parsed.ok()) << fields << ": " << (parsed ? "" : parsed.error().message);
    return parsed ? std::move(parsed).value() : ChatRequest{};
}

base::Error refused_body(const std::string& body) {
    base::Result<ChatRequest> parsed = server::parse_chat_request(body);
    EXPECT_FALSE(parsed.ok()) << body;
    return parsed ? base::Error{} : parsed.take_error();
}

// The error of a chat body with these further fields.
base::Error refused(const std::string& fields) { return refused_body(R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}"); }

CompletionRequest completion(const std::string& fields) {
    base::Result<CompletionRequest> parsed = server::parse_completion_request("{" + fields + "}");
    EXPECT_TRUE(parsed.ok()) << fields << ": " << (parsed ? "" : parsed.error().message);
    return parsed ? std::move(parsed).value() : CompletionRequest{};
}

base::Error refused_completion(const std::string& fields) {
    base::Result<CompletionRequest> parsed = server::parse_completion_request("{" + fields + "}");
    EXPECT_FALSE(parsed.ok()) << fields;
    return parsed ? base::Error{} : parsed.take_error();
}

std::string content(const ChatRequest& request, size_t i) {
    return std::get<std::string>(std::get<text::ValueObject>(request.messages[i].data)[1].second.data);
}
std::string role(const ChatRequest& request, size_t i) {
    return std::get<std::string>(std::get<text::ValueObject>(request.messages[i].data)[0].second.data);
}

TEST(ChatRequest, Defaults) {
    const ChatRequest r = chat("");
    EXPECT_EQ(r.sampling.temperature, 0.8f);
    EXPECT_EQ(r.sampling.top_k, 40);
    EXPECT_EQ(r.sampling.top_p, 0.95f);
    EXPECT_EQ(r.sampling.min_p, 0.05f);
    EXPECT_EQ(r.sampling.repetition_penalty, 1.0f);
    EXPECT_FALSE(r.seed || r.max_tokens || r.stream || r.logprobs || r.ignore_eos || r.include_usage);
    EXPECT_TRUE(r.cache_prompt && r.add_generation_prompt);
    EXPECT_EQ(r.n_choices, 1u);
    EXPECT_TRUE(r.ignored.empty());
}

TEST(ChatRequest, EveryHonouredFieldArrives) {
    const ChatRequest r =
        chat(R"(,"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"min_tokens":2,"ignore_eos":true,
        "cache_prompt":false,"return_tokens":true,"n":3,"seed":-1,"stop":["a","b"],"temperature":0,"top_k":7,"top_p":0.5,"min_p":0.1,
        "typical_p":0.9,
        "repeat_penalty":1.1,"repeat_last_n":64,"presence_penalty":-2,"frequency_penalty":2,"logit_bias":{"7":-100,"8":1.5},
        "logprobs":true,"top_logprobs":20)");
    EXPECT_EQ(r.model, "m");
    EXPECT_TRUE(r.stream && r.include_usage && r.ignore_eos && r.return_tokens && r.logprobs);
    EXPECT_FALSE(r.cache_prompt);
    EXPECT_EQ(r.max_tokens, 5u);
    EXPECT_EQ(r.min_tokens, 2u);
    EXPECT_EQ(r.n_choices, 3u);
    EXPECT_EQ(r.seed, UINT64_MAX);
    EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(r.sampling.temperature, 0.0f);
    EXPECT_EQ(r.sampling.top_k, 7);
    EXPECT_EQ(r.sampling.top_p, 0.5f);
    EXPECT_EQ(r.sampling.min_p, 0.1f);
    EXPECT_EQ(r.sampling.typical_p, 0.9f);
    EXPECT_EQ(r.sampling.repetition_penalty, 1.1f);
    EXPECT_EQ(r.sampling.repetition_last_n, 64);
    EXPECT_EQ(r.sampling.presence_penalty, -2.0f);
    EXPECT_EQ(r.sampling.frequency_penalty, 2.0f);
    ASSERT_EQ(r.sampling.logit_bias.size(), 2u);
    EXPECT_EQ(r.sampling.logit_bias[0], (std::pair<engine::TokenId, float>(7, -100.0f)));
    EXPECT_EQ(r.sampling.logit_bias[1], (std::pair<engine::TokenId, float>(8, 1.5f)));
    EXPECT_EQ(r.top_logprobs, 20u);
    EXPECT_TRUE(r.ignored.empty());
}

TEST(ChatRequest, NullEqualsAbsent) {
    const ChatRequest r =
        chat(R"(,"model":null,"stream":null,"stream_options":null,"max_tokens":null,"n":null,"seed":null,"stop":null,"temperature":null,
        "top_p":null,"logit_bias":null,"logprobs":null,"top_logprobs":null,"tools":null,"tool_choice":null,"response_format":null,"user":null,
        "chat_template_kwargs":null,"continue_final_message":null,"grammar":null)");
    EXPECT_EQ(r.sampling.temperature, 0.8f);
    EXPECT_FALSE(r.max_tokens || r.seed);
    EXPECT_TRUE(r.ignored.empty());
}

TEST(ChatRequest, MaxCompletionTokensIsStronger) {
    EXPECT_EQ(chat(R"(,"max_tokens":5,"max_completion_tokens":7)").max_tokens, 7u);
    EXPECT_EQ(chat(R"(,"max_completion_tokens":7,"max_tokens":5)").max_tokens, 7u);
    EXPECT_EQ(chat(R"(,"n_predict":3,"max_tokens":5)").max_tokens, 5u);
    EXPECT_EQ(chat(R"(,"max_completion_tokens":null,"max_tokens":5)").max_tokens, 5u);
}

TEST(ChatRequest, NamesValueAndRange) {
    const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
        {R"("temperature":-1)", "temperature", "temperature must be a number from 0 to 100, got -1"},
        {R"("temperature":1e9)", "temperature", "temperature must be a number from 0 to 100, got 1e+09"},
        {R"("temperature":"hot")", "temperature", "temperature must be a number from 0 to 100, got \"hot\""},
        {R"("temperature":"0.5")", "temperature", "temperature must be a number from 0 to 100, got \"0.5\""},
        {R"("top_p":2)", "top_p", "top_p must be a number from 0 to 1, got 2"},
        {R"("top_k":-2)", "top_k", "top_k must be an integer from -1 to 2147483647, got -2"},
        {R"("top_k":1.5)", "top_k", "top_k must be an integer from -1 to 2147483647, got 1.5"},
        {R"("n":2147483648)", "n", "n must be an integer from 1 to 8, got 2147483648"},
        {R"("n":0)", "n", "n must be an integer from 1 to 8, got 0"},
        {R"("max_tokens":0)", "max_tokens", "max_tokens must be an integer from 1 to 2147483647, got 0"},
        {R"("max_tokens":-1)", "max_tokens", "max_tokens must be an integer from 1 to 2147483647, got -1"},
        {R"("max_tokens":1000000000000)", "max_tokens", "max_tokens must be an integer from 1 to 2147483647, got 1000000000000"},
        {R"("max_tokens":"10")", "max_tokens", "max_tokens must be an integer from 1 to 2147483647, got \"10\""},
        {R"("max_tokens":[10])", "max_tokens", "max_tokens must be an integer from 1 to 2147483647, got an array"},
        {R"("seed":1.5)", "seed", "seed must be an integer of 64 bits, got 1.5"},
        {R"("stream":1)", "stream", "stream must be true or false, got 1"},
        {R"("stream_options":true)", "stream_options", "stream_options must be an object, got true"},
        {R"("stop":5)", "stop", "stop must be a string or an array of strings, got 5"},
        {R"("stop":[""])", "stop[0]", "stop[0] must not be empty"},
        {R"("stop":["a",null])", "stop[1]", "stop[1] must be a string, got null"},
        {R"("repetition_penalty":0)", "repetition_penalty", "repetition_penalty must be a number from 0.01 to 10, got 0"},
        {R"("presence_penalty":2.5)", "presence_penalty", "presence_penalty must be a number from -2 to 2, got 2.5"},
        {R"("logit_bias":"AI")", "logit_bias", "logit_bias must be an object from token ids to numbers, got \"AI\""},
        {R"("logit_bias":{"AI":1})", "logit_bias", "logit_bias must be an object whose keys are token ids, got \"AI\""},
        {R"("logit_bias":{"5":101})", "logit_bias.5", "logit_bias.5 must be a number from -100 to 100, got 101"},
        {R"("logit_bias":{"-5":1})", "logit_bias", "logit_bias must be an object whose keys are token ids, got \"-5\""},
        {R"("logit_bias":[["x",1]])", "logit_bias[0][0]", "logit_bias[0][0] must be an integer from 0 to 2147483647, got \"x\""},
        {R"("top_logprobs":1000000,"logprobs":true)", "top_logprobs", "top_logprobs must be an integer from 0 to 20, got 1000000"},
        {R"("top_logprobs":2)", "top_logprobs", "top_logprobs needs logprobs: true"},
        {R"("logprobs":5)", "logprobs", "logprobs must be true or false, got 5"},
        {R"("model":5)", "model", "model must be a string, got 5"},
        {R"("chat_template_kwargs":[])", "chat_template_kwargs", "chat_template_kwargs must be an object, got an array"},
        {R"("continue_final_message":true)", "continue_final_message", "continue_final_message needs an assistant message at the end"},
    };
    for (const auto& [fields, field, message] : cases) {
        const base::Error error = refused(fields);
        EXPECT_EQ(error.code, base::ErrorCode::invalid_argument) << fields;
        EXPECT_EQ(error.field, field) << fields;
        EXPECT_EQ(error.message, message);
    }
}

TEST(ChatRequest, NumbersThatJsonCannotHoldAreRefusedByPlace) {
    EXPECT_NE(refused(R"("temperature":1e400)").message.find("the number 1e400 is too large"), std::string::npos);
    EXPECT_NE(refused(R"("temperature":NaN)").message.find("expected a value, found 'N'"), std::string::npos);
    EXPECT_NE(refused(R"("seed":18446744073709551616)").message.find("does not fit 64 bits"), std::string::npos);
    EXPECT_NE(refused(R"("seed":01)").message.find("must not begin with a zero"), std::string::npos);
    EXPECT_EQ(chat(R"(,"seed":18446744073709551615)").seed, UINT64_MAX);
    EXPECT_EQ(chat(R"(,"temperature":-0)").sampling.temperature, 0.0f);
    EXPECT_EQ(chat(R"(,"max_tokens":3.0)").max_tokens, 3u);
}

TEST(ChatRequest, EdgesOfRangesAreTaken) {
    EXPECT_EQ(chat(R"(,"top_k":-1)").sampling.top_k, 0);
    EXPECT_EQ(chat(R"(,"top_k":0)").sampling.top_k, 0);
    EXPECT_GT(chat(R"(,"top_p":0)").sampling.top_p, 0.0f);  // the engine's range is open at 0
    EXPECT_EQ(chat(R"(,"top_p":1)").sampling.top_p, 1.0f);
    EXPECT_LT(chat(R"(,"min_p":1)").sampling.min_p, 1.0f);
    EXPECT_EQ(chat(R"(,"temperature":100)").sampling.temperature, 100.0f);
    EXPECT_EQ(chat(R"(,"stop":"x")").stop, std::vector<std::string>{"x"});
    EXPECT_TRUE(chat(R"(,"stop":[])").stop.empty());
    EXPECT_EQ(chat(R"(,"logit_bias":[[5,false],[6,2]])").sampling.logit_bias[0], (std::pair<engine::TokenId, float>(5, -100.0f)));
}

TEST(ChatRequest, LimitsOnCounts) {
    std::string stops = "\"stop\":[", biases = "\"logit_bias\":{";
    for (int i = 0; i < 10'000; ++i) stops += std::string(i ? "," : "") + "\"s\"";
    for (int i = 0; i < 100'000; ++i) biases += std::string(i ? "," : "") + "\"" + std::to_string(i) + "\":1";
    EXPECT_EQ(refused(stops + "]").message, "stop has 10000 strings, at most 16 are allowed");
    EXPECT_EQ(refused(biases + "}").message, "logit_bias has 100000 entries, at most 1024 are allowed");
    EXPECT_EQ(refused("\"stop\":\"" + std::string(1 << 20, 'x') + "\"").message, "stop has 1048576 bytes, at most 256 are allowed");
    std::string messages = R"({"messages":[)";
    for (size_t i = 0; i <= limits::messages_count; ++i) messages += std::string(i ? "," : "") + R"({"role":"user","content":"x"})";
    EXPECT_EQ(refused_body(messages + "]}").message, "messages has 4097 messages, at most 4096 are allowed");
}

TEST(ChatRequest, FieldsThatWouldChangeTheAnswerAreRefusedByName) {
    for (const char* fields :
         {R"("tools":[{"type":"function","function":{"name":"f"}}])", R"("tools":[{}],"tool_choice":"auto")",
          R"("functions":[{"name":"f"}])", R"("response_format":{"type":"json_object"})",
          R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}})", R"("grammar":"root ::= \"a\"")",
          R"("json_schema":{"type":"object"})", R"("guided_json":{"a":1})", R"("chat_template":"{{ x }}")", R"("mirostat":2)",
          R"("dry_multiplier":0.8)", R"("xtc_probability":0.5)", R"("top_n_sigma":1)", R"("modalities":["text","audio"])",
          R"("length_penalty":2)", R"("use_beam_search":true)", R"("stop_token_ids":[1])", R"("skip_special_tokens":false)"}) {
        const base::Error error = refused(fields);
        EXPECT_EQ(error.code, base::ErrorCode::unsupported) << fields;
        EXPECT_EQ(std::string_view(fields).substr(1, error.field.size()), error.field);
        EXPECT_NE(error.message.find(error.field), std::string::npos);
        EXPECT_EQ(server::error_row(error.code).status, 400u);
    }
    // A choice without tools, other than the two words that mean nothing without them.
    EXPECT_EQ(refused(R"("tool_choice":"required")").field, "tool_choice");
}

TEST(ChatRequest, FieldsThatSayNothingArePassedOver) {
    const ChatRequest r = chat(
        R"(,"tools":[],"tool_choice":"none","functions":[],"response_format":{"type":"text"},"grammar":"","mirostat":0,"dry_multiplier":0,
        "top_n_sigma":-1,"modalities":["text"],"length_penalty":1.0,"use_beam_search":false,"stop_token_ids":[],"skip_special_tokens":true,
        "user":"u","store":true,"metadata":{"a":"b"},"service_tier":"auto","parallel_tool_calls":false,"prompt_cache_key":"k","reasoning_effort":"low",
        "safety_identifier":"x","verbosity":"low")");
    EXPECT_TRUE(r.ignored.empty());
    chat(R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none")");
}

TEST(ChatRequest, UnknownFieldsAreListed) {
    const ChatRequest r = chat(R"(,"frobnicate":1,"n_discard":-1,"stream_options":{"include_usage":false,"other":1})");
    EXPECT_EQ(r.ignored, (std::vector<std::string>{"frobnicate", "n_discard", "stream_options.other"}));
}

TEST(ChatMessages, RolesAndForms) {
    base::Result<ChatRequest> parsed = server::parse_chat_request(R"({"messages":[
        {"role":"developer","content":"be brief"},
        {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"ann"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","content":"42","tool_call_id":"1"},
        {"role":"assistant"},
        {"role":"user","content":["plain ",{"type":"text","text":"parts"}]}]})");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const ChatRequest& r = parsed.value();
    ASSERT_EQ(r.messages.size(), 6u);
    EXPECT_EQ(role(r, 0), "system");
    EXPECT_EQ(content(r, 1), "a\nb");
    EXPECT_EQ(std::get<text::ValueObject>(r.messages[1].data)[2].first, "name");
    EXPECT_EQ(content(r, 2), "");
    EXPECT_EQ(std::get<text::ValueObject>(r.messages[2].data)[2].first, "tool_calls");
    EXPECT_EQ(content(r, 3), "42");
    EXPECT_EQ(content(r, 4), "");
    EXPECT_EQ(content(r, 5), "plain \nparts");
    EXPECT_FALSE(r.continue_final_message);
}

TEST(ChatMessages, RefusedByPath) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"({})", "messages"},
        {R"({"messages":null})", "messages"},
        {R"({"messages":"hi"})", "messages"},
        {R"({"messages":{}})", "messages"},
        {R"({"messages":[]})", "messages"},
        {R"({"messages":["hi"]})", "messages[0]"},
        {R"({"messages":[{"content":"hi"}]})", "messages[0].role"},
        {R"({"messages":[{"role":"robot","content":"hi"}]})", "messages[0].role"},
        {R"({"messages":[{"role":5,"content":"hi"}]})", "messages[0].role"},
        {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
        {R"({"messages":[{"role":"user","content":null}]})", "messages[0].content"},
        {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content"},
        {R"({"messages":[{"role":"user","content":{"text":"x"}}]})", "messages[0].content"},
        {R"({"messages":[{"role":"user","content":[5]}]})", "messages[0].content[0]"},
        {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})", "messages[0].content[0].type"},
        {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text"},
        {R"({"messages":[{"role":"user","content":[{"type":"text","text":5}]}]})", "messages[0].content[0].text"},
        {R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]})",
         "messages[1].content[0].type"},
        {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://169.254.169.254"}}]}]})",
         "messages[0].content[0].type"},
        {R"({"messages":[{"role":"user","content":"a","name":5}]})", "messages[0].name"},
        {R"({"messages":[{"role":"assistant","tool_calls":"x"}]})", "messages[0].tool_calls"},
    };
    for (const auto& [body, field] : cases) {
        const base::Error error = refused_body(body);
        EXPECT_EQ(error.field, field) << body;
        EXPECT_NE(error.message.find(field), std::string::npos) << error.message;
    }
    EXPECT_EQ(refused_body("[]").message, "the body must be a JSON object, got an array");
    EXPECT_EQ(refused_body("\"x\"").message, "the body must be a JSON object, got a string");
}

TEST(ChatMessages, AnOpenAnswerIsGoneOnWith) {
    const auto rendering = [](const std::string& fields) {
        base::Result<ChatRequest> parsed = server::parse_chat_request(
            R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"I th"}])" + fields + "}");
        EXPECT_TRUE(parsed.ok());
        return std::pair(parsed.value().continue_final_message, parsed.value().add_generation_prompt);
    };
    EXPECT_EQ(rendering(""), std::pair(true, true));
    EXPECT_EQ(rendering(R"(,"continue_final_message":true)"), std::pair(true, true));
    EXPECT_EQ(rendering(R"(,"continue_final_message":false)"), std::pair(false, true));
    EXPECT_EQ(rendering(R"(,"add_generation_prompt":true)"), std::pair(false, true));
    EXPECT_EQ(rendering(R"(,"add_generation_prompt":false)"), std::pair(false, false));
}

TEST(CompletionRequest, Prompts) {
    EXPECT_EQ(completion(R"("prompt":"hi")").prompts[0].text, "hi");
    EXPECT_EQ(completion(R"("prompt":["a","b"])").prompts[1].text, "b");
    const CompletionRequest ids = completion(R"("prompt":[1,2,3])");
    ASSERT_EQ(ids.prompts.size(), 1u);
    EXPECT_TRUE(ids.prompts[0].is_tokens);
    EXPECT_EQ(ids.prompts[0].tokens, (std::vector<engine::TokenId>{1, 2, 3}));
    EXPECT_EQ(completion(R"("prompt":[[1],[2,3]])").prompts[1].tokens, (std::vector<engine::TokenId>{2, 3}));
    EXPECT_TRUE(completion(R"("prompt":"x","echo":true)").echo);

    EXPECT_EQ(refused_completion("").field, "prompt");
    EXPECT_EQ(refused_completion(R"("prompt":5)").field, "prompt");
    EXPECT_EQ(refused_completion(R"("prompt":[])").field, "prompt");
    EXPECT_EQ(refused_completion(R"("prompt":[1.5])").field, "prompt[0]");
    EXPECT_EQ(refused_completion(R"("prompt":[1,"a"])").field, "prompt[1]");
    EXPECT_EQ(refused_completion(R"("prompt":[1,-1])").field, "prompt[1]");
    EXPECT_EQ(refused_completion(R"("prompt":["a",1])").field, "prompt[1]");
    EXPECT_EQ(refused_completion(R"("prompt":[[[1]]])").field, "prompt[0][0]");
    EXPECT_EQ(refused_completion(R"("prompt":[[]])").field, "prompt[0]");
    EXPECT_EQ(refused_completion(R"("prompt":["a","b","c"],"n":8)").field, "n");
}

TEST(CompletionRequest, OwnFields) {
    const CompletionRequest r = completion(R"("prompt":"x","logprobs":0,"best_of":1,"suffix":"")");
    EXPECT_TRUE(r.logprobs);
    EXPECT_EQ(r.top_logprobs, 0u);
    EXPECT_EQ(completion(R"("prompt":"x","logprobs":5)").top_logprobs, 5u);
    EXPECT_EQ(refused_completion(R"("prompt":"x","logprobs":true)").field, "logprobs");
    EXPECT_EQ(refused_completion(R"("prompt":"x","logprobs":21)").field, "logprobs");
    EXPECT_EQ(refused_completion(R"("prompt":"x","best_of":2)").field, "best_of");
    EXPECT_EQ(refused_completion(R"("prompt":"x","suffix":"end")").field, "suffix");
    EXPECT_EQ(refused_completion(R"("prompt":"x","echo":true,"logprobs":1)").field, "echo");
    completion(R"("prompt":"x","n":2,"best_of":2)");
}

TEST(Errors, OneRowForEachCode) {
    for (int i = 0; i <= static_cast<int>(base::ErrorCode::internal); ++i) {
        size_t rows = 0;
        for (const server::ErrorRow& row : server::error_rows()) rows += row.code == static_cast<base::ErrorCode>(i);
        EXPECT_EQ(rows, 1u) << i;
    }
    EXPECT_EQ(server::error_body({base::ErrorCode::invalid_argument, "say \"what\"", "messages[0]"}),
              R"({"error":{"message":"say \"what\"","type":"invalid_request_error","param":"messages[0]","code":"invalid_value"}})");
    const server::HttpResponse busy = server::to_response({base::ErrorCode::queue_full, "full", ""}, 9);
    EXPECT_EQ(busy.status, 429u);
    EXPECT_EQ(busy.headers[0], (std::pair<std::string, std::string>("Retry-After", "9")));
    EXPECT_EQ(server::to_response({base::ErrorCode::internal, "x", ""}).headers[0].first, "x-should-retry");
}

}  // namespace
