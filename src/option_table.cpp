// What each option's value may be, and the tables.
#include "option_table.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/limits.h"
#include "base/utf8.h"
#include "kernels/cpu/cpu.h"
#include "server/host_check.h"

namespace options {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using commands::InspectOptions;
using commands::InspectOptions;
using commands::QuantizeOptions;
using commands::RunOptions;
using commands::ServeOptions;

constexpr unsigned on_serve = 1, on_run = 2, on_inspect = 4, on_version = 8, on_help = 16, on_quantize = 32;
constexpr unsigned on_load = on_serve | on_run;

Error bad(std::string allowed) { return Error{ErrorCode::invalid_argument, std::move(allowed), {}}; }

// --- what a value may be ---------------------------------------------------------------------------

template <typename T>
Result<T> number(std::string_view text, T min, T max) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool right = error == std::errc() && end == text.data() + text.size() && value >= min && value <= max;
    if constexpr (std::is_floating_point_v<T>) right = right && std::isfinite(value);
    if (!right) {
        std::string low = std::to_string(min), high = std::to_string(max);
        for (std::string* s : {&low, &high})
            if (s->find('.') != std::string::npos) s->erase(std::max(s->find_last_not_of('0') + 1, s->find('.') + 2));
        return bad("a number from " + low + " to " + high);
    }
    return value;
}

template <typename T>
struct member_type;
template <typename Owner, typename T>
struct member_type<T Owner::*> {
    using owner = Owner;
    using type = T;
};

template <typename Owner>
Owner& part(Parsed& parsed) {
    if constexpr (std::is_same_v<Owner, ServeOptions>) return parsed.serve;
    else if constexpr (std::is_same_v<Owner, RunOptions>) return parsed.run;
    else if constexpr (std::is_same_v<Owner, QuantizeOptions>) return parsed.quantize;
    else return parsed.inspect;
}

template <auto Member, auto Min, auto Max>
Result<void> to_number(Parsed& parsed, std::string_view text) {
    using T = typename member_type<decltype(Member)>::type;
    auto value = number<T>(text, static_cast<T>(Min), static_cast<T>(Max));
    if (!value) return value.take_error();
    part<typename member_type<decltype(Member)>::owner>(parsed).*Member = value.value();
    return {};
}

// Thousandths, because GCC 12 takes no floating-point template arguments of auto members.
template <auto Member, int MinThousandths, int MaxThousandths>
Result<void> to_float(Parsed& parsed, std::string_view text) {
    auto value = number<float>(text, MinThousandths / 1000.0f, MaxThousandths / 1000.0f);
    if (!value) return value.take_error();
    part<typename member_type<decltype(Member)>::owner>(parsed).*Member = value.value();
    return {};
}

template <auto Member>
Result<void> to_text(Parsed& parsed, std::string_view text) {
    part<typename member_type<decltype(Member)>::owner>(parsed).*Member = std::string(text);
    return {};
}

template <auto Member>
Result<void> to_list(Parsed& parsed, std::string_view text) {  // comma-separated; given again, it adds
    auto& list = part<typename member_type<decltype(Member)>::owner>(parsed).*Member;
    while (!text.empty()) {
        const size_t comma = std::min(text.find(','), text.size());
        if (comma > 0) list.emplace_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return {};
}

bool is_ip(std::string_view text) {
    unsigned char bytes[16];
    const std::string terminated(text);
    return ::inet_pton(AF_INET, terminated.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, terminated.c_str(), bytes) == 1;
}

// A name that nothing can match would be a hole in a wall that one believes to have closed, or a door that never opens.
Result<void> to_hosts(Parsed& parsed, std::string_view text) {
    const size_t before = parsed.serve.hosts.size();
    if (auto result = to_list<&ServeOptions::hosts>(parsed, text); !result) return result;
    for (size_t i = before; i < parsed.serve.hosts.size(); ++i)
        if (const std::string& host = parsed.serve.hosts[i]; host != "*" && !is_ip(host) && !server::parse_authority(host))
            return bad("host names or addresses as in a Host header (chat.example, box.local:8080, [::1]), or *");
    return {};
}

Result<void> to_origins(Parsed& parsed, std::string_view text) {
    const size_t before = parsed.serve.cors_origins.size();
    if (auto result = to_list<&ServeOptions::cors_origins>(parsed, text); !result) return result;
    for (size_t i = before; i < parsed.serve.cors_origins.size(); ++i) {
        std::string_view origin = parsed.serve.cors_origins[i];
        if (origin == "*") continue;
        if (origin.ends_with('/')) origin.remove_suffix(1);
        const size_t colon = origin.find("://");
        const bool scheme = colon != std::string_view::npos && colon > 0 && origin.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") == colon;
        if (!scheme || !server::parse_authority(origin.substr(colon + 3)))
            return bad("origins as browsers send them (https://app.example, http://localhost:3000), or *");
    }
    return {};
}

Result<void> to_address(Parsed& parsed, std::string_view text) {
    if (text != "localhost" && !is_ip(text)) return bad("an IPv4 or IPv6 address of this machine, or localhost");
    parsed.serve.host = std::string(text);
    return {};
}

Result<void> to_alias(Parsed& parsed, std::string_view text) {
    const bool control = std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (text.empty() || text.size() > limits::alias_bytes || control || !base::utf8::is_valid(text))
        return bad("a name of 1 to " + std::to_string(limits::alias_bytes) + " bytes of UTF-8 without control characters");
    parsed.serve.alias = std::string(text);
    return {};
}

template <auto Member, bool Meaning>
Result<void> to_switch(Parsed& parsed, std::string_view text) {
    bool on;
    if (text == "1" || text == "true" || text == "yes" || text == "on") on = true;
    else if (text == "0" || text == "false" || text == "no" || text == "off") on = false;
    else return bad("1 or 0 (true, false, yes, no, on, off)");
    part<typename member_type<decltype(Member)>::owner>(parsed).*Member = on == Meaning;
    return {};
}

template <auto Member>
Result<void> to_bytes(Parsed& parsed, std::string_view text) {  // 1048576, 512K, 4M, 2G
    std::string_view digits = text;
    unsigned shift = 0;
    if (!digits.empty())
        switch (digits.back()) {
            case 'k': case 'K': shift = 10; break;
            case 'm': case 'M': shift = 20; break;
            case 'g': case 'G': shift = 30; break;
            default: break;
        }
    if (shift) digits.remove_suffix(1);
    auto value = number<uint64_t>(digits, 1, uint64_t{1} << 42);
    if (!value || value.value() > (uint64_t{1} << 42) >> shift) return bad("bytes, with K, M or G for powers of 1024, up to 4096G");
    using T = typename member_type<decltype(Member)>::type;
    if constexpr (std::is_same_v<T, std::string>)
        part<typename member_type<decltype(Member)>::owner>(parsed).*Member = std::string(text);
    else
        part<typename member_type<decltype(Member)>::owner>(parsed).*Member = value.value() << shift;
    return {};
}

Result<void> to_kv_budget(Parsed& parsed, std::string_view text) {
    if (text == "auto") {
        parsed.serve.kv_budget = "auto";
        return {};
    }
    auto result = to_bytes<&ServeOptions::kv_budget>(parsed, text);
    if (!result) return bad("auto, or " + result.error().message);
    return {};
}

Result<void> to_kv_type(Parsed& parsed, std::string_view text) {
    if (text != "f16" && text != "f32") return bad("f16 or f32");
    parsed.serve.kv_type = parsed.inspect.kv_type = std::string(text);
    return {};
}

Result<void> to_isa(Parsed& parsed, std::string_view text) {
    if (text != "scalar" && text != "avx2" && text != "avx512" && !text.empty()) return bad("scalar, avx2 or avx512");
    parsed.serve.isa = std::string(text);
    return {};
}

Result<void> to_threads(Parsed& parsed, std::string_view text) {
    auto value = number<uint32_t>(text, 0, kernels::cpu::threads_max);
    if (!value) return value.take_error();
    parsed.serve.threads = parsed.quantize.threads = value.value();
    return {};
}

Result<void> to_activations(Parsed& parsed, std::string_view text) {
    if (text != "16" && text != "8") return bad("16 or 8");
    parsed.serve.activation_bits = text == "16" ? 16 : 8;
    return {};
}

Result<void> to_context(Parsed& parsed, std::string_view text) {
    auto value = number<uint32_t>(text, 0, limits::model_context_tokens);
    if (!value) return value.take_error();
    parsed.serve.context = parsed.inspect.context = value.value();
    return {};
}

Result<void> to_sequences(Parsed& parsed, std::string_view text) {
    auto value = number<uint32_t>(text, 1, limits::sequences_running);
    if (!value) return value.take_error();
    parsed.serve.max_sequences = parsed.inspect.sequences = value.value();
    return {};
}

Result<void> to_metrics(Parsed& parsed, std::string_view text) {
    if (text != "vllm" && text != "none") return bad("vllm or none");
    parsed.serve.vllm_metrics = text == "vllm";
    return {};
}

Result<void> to_seed(Parsed& parsed, std::string_view text) {
    auto value = number<uint64_t>(text, 0, std::numeric_limits<uint64_t>::max());
    if (!value) return value.take_error();
    parsed.run.seed = value.value();
    return {};
}

Result<void> to_json(Parsed& parsed, std::string_view text) {
    auto result = to_switch<&RunOptions::json, true>(parsed, text);
    parsed.inspect.json = parsed.version_json = parsed.run.json;
    return result;
}

Result<void> to_format(Parsed& parsed, std::string_view text) {
    if (text == "text") parsed.help_format = HelpFormat::text;
    else if (text == "markdown") parsed.help_format = HelpFormat::markdown;
    else if (text == "man") parsed.help_format = HelpFormat::man;
    else if (text == "formats") parsed.help_format = HelpFormat::formats;
    else return bad("text, markdown, man or formats");
    return {};
}

// --- the tables ------------------------------------------------------------------------------------

constexpr Option options_rows[] = {
    // the model and the engine
    {"context", 'c', "N", "the model's", on_load | on_inspect, to_context, "tokens one sequence may hold; the start is refused when not one fits"},
    {"kv-budget", 0, "BYTES", "auto", on_load, to_kv_budget, "memory for keys and values, once and for all; auto takes a share of what is free"},
    {"kv-type", 0, "TYPE", "f16", on_load | on_inspect, to_kv_type, "keys and values as f16 or f32"},
    {"threads", 't', "N", "all allowed", on_load | on_quantize, to_threads, "compute threads; the default follows affinity and cgroup limits"},
    {"isa", 0, "NAME", "best present", on_load, to_isa, "force scalar, avx2 or avx512 kernels"},
    {"activation-bits", 0, "N", "16", on_load, to_activations, "16: products as exact as the file's weights; 8: faster prompts with the rounding error that other programs have"},
    {"max-sequences", 0, "N", "64", on_serve | on_inspect, to_sequences, "sequences that may run at once"},
    {"default-max-tokens", 0, "N", "2048", on_load, to_number<&ServeOptions::default_max_tokens, 1, limits::model_context_tokens>, "length of an answer whose request names none"},
    {"no-prefix-cache", 0, "", "off", on_load, to_switch<&ServeOptions::prefix_cache, false>, "compute every prompt anew"},
    {"chat-template", 0, "FILE", "the file's", on_load, to_text<&ServeOptions::chat_template>, "a Jinja chat template instead of the file's own; chatml, gemma and llama3 name built-in ones"},
    // the server
    {"host", 0, "ADDRESS", "127.0.0.1", on_serve, to_address, "address to bind (numeric, or localhost); beyond loopback a key file is required"},
    {"port", 'p', "N", "8080", on_serve, to_number<&ServeOptions::port, 0, 65535>, "port to bind; 0 takes any free one"},
    {"port-file", 0, "PATH", "none", on_serve, to_text<&ServeOptions::port_file>, "write the bound port there"},
    {"alias", 'a', "NAME", "from the file", on_serve, to_alias, "model id shown to clients"},
    {"max-queue", 0, "N", "64", on_serve, to_number<&ServeOptions::max_queue, 0, limits::queue_requests_max>, "requests that may wait; beyond it clients get 429 with Retry-After"},
    {"api-key-file", 0, "PATH", "none", on_serve, to_text<&ServeOptions::api_key_file>, "keys that clients must send, one a line (`name:key` or `key`, 16 bytes at least)"},
    {"insecure", 0, "", "off", on_serve, to_switch<&ServeOptions::insecure, true>, "bind beyond loopback without a key"},
    {"allow-host", 0, "NAMES", "none", on_serve, to_hosts, "further names accepted in the Host header, comma-separated"},
    {"cors-origin", 0, "ORIGINS", "none", on_serve, to_origins, "web origins that may call from a browser, comma-separated; * for any"},
    {"max-body", 0, "BYTES", "4M", on_serve, to_bytes<&ServeOptions::max_body>, "largest request body"},
    {"drain", 0, "SECONDS", "30", on_serve, to_number<&ServeOptions::drain_s, 0, 86'400>, "after SIGTERM, how long answers in progress may take"},
    {"metrics-compat", 0, "NAME", "vllm", on_serve, to_metrics, "also export metrics under another server's names: vllm or none"},
    {"quiet", 'q', "", "off", on_serve, to_switch<&ServeOptions::quiet, true>, "no start-up lines and no access log"},
    // the terminal chat
    {"prompt", 0, "TEXT", "none", on_run, to_text<&RunOptions::prompt>, "answer this and exit; words after the model mean the same"},
    {"system", 's', "TEXT", "none", on_run, to_text<&RunOptions::system>, "system message"},
    {"temperature", 0, "X", "0.8", on_run, to_float<&RunOptions::temperature, 0, 100'000>, "0 always takes the likeliest token"},
    {"top-k", 0, "N", "40", on_run, to_number<&RunOptions::top_k, 0, 1 << 20>, "draw among the N likeliest tokens; 0 is off"},
    {"top-p", 0, "X", "0.95", on_run, to_float<&RunOptions::top_p, 1, 1'000>, "draw among the likeliest tokens that hold this probability"},
    {"min-p", 0, "X", "0.05", on_run, to_float<&RunOptions::min_p, 0, 999>, "drop tokens below this share of the likeliest one's probability"},
    {"seed", 0, "N", "random", on_run, to_seed, "the same seed gives the same answer"},
    {"max-tokens", 'n', "N", "as default-max-tokens", on_run, to_number<&RunOptions::max_tokens, 1, limits::model_context_tokens>, "longest answer"},
    {"raw", 0, "", "off", on_run, to_switch<&RunOptions::raw, true>, "give the prompt to the model as it is, without the chat template"},
    {"no-stats", 0, "", "off", on_run, to_switch<&RunOptions::no_stats, true>, "no line of token counts and times"},
    // the quantizer
    {"imatrix", 0, "FILE", "none", on_quantize, to_text<&QuantizeOptions::importance>, "importance matrix (GGUF or .dat): what an error in each column costs"},
    {"allow-requantize", 0, "", "off", on_quantize, to_switch<&QuantizeOptions::allow_requantize, true>, "take tensors that are quantized already"},
    // inspecting
    {"check", 0, "", "off", on_inspect, to_switch<&InspectOptions::check, true>, "read every tensor and name what is odd, a line each; exit code 1 when something is wrong"},
    // shared
    {"json", 0, "", "off", on_run | on_inspect | on_version, to_json, "print JSON"},
    {"format", 0, "NAME", "text", on_help, to_format, "help as text, markdown (the README's options), man (the manual page) or formats (tensor formats)"},
};

constexpr CommandRow command_rows[] = {
    {Command::serve, "serve", on_serve, "MODEL.gguf", "serve a model: chat page, OpenAI-compatible API, metrics"},
    {Command::run, "run", on_run, "MODEL.gguf [PROMPT...]", "chat in the terminal; with a prompt or a pipe, answer once and exit"},
    {Command::inspect, "inspect", on_inspect, "MODEL.gguf", "show a model file: metadata, tensors, what a context would take"},
    {Command::quantize, "quantize", on_quantize, "IN.gguf OUT.gguf TYPE", "write a model in a smaller format, such as Q4_K_M"},
    {Command::version, "version", on_version, "", "version, compiler and the CPU paths of this machine"},
    {Command::help, "help", on_help, "[COMMAND]", "help, for one command or for all"},
};

constexpr ExitCode exit_rows[] = {
    {0, "done; after SIGTERM or SIGHUP: answers in progress were finished, or cut when --drain was over (the log says so)"},
    {1, "could not start or go on (address in use, unreadable key file, engine failure); inspect --check: something is wrong with the model"},
    {2, "bad option, bad value or bad model file; one line says which"},
    {70, "the engine made no progress; a supervisor should restart the program"},
    {130, "interrupted: a one-shot run, or serving ended at once by a second Ctrl-C"},
    {143, "serving ended at once by a second SIGTERM"},
};

}  // namespace

std::span<const Option> option_table() { return options_rows; }
std::span<const CommandRow> command_table() { return command_rows; }
std::span<const ExitCode> exit_codes() { return exit_rows; }

std::string environment_name(const Option& option) {
    std::string name = "HEARTH_";
    for (char c : option.flag) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    return name;
}

}  // namespace options
