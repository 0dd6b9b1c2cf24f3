#include "options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/limits.h"
#include "base/utf8.h"
#include "base/version.h"
#include "kernels/cpu/cpu.h"
#include "quant/types.h"
#include "server/host_check.h"

namespace options {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using commands::InspectOptions;
using commands::QuantizeOptions;
using commands::RunOptions;
using commands::ServeOptions;

constexpr unsigned on_serve = 1, on_run = 2, on_inspect = 4, on_version = 8, on_help = 16, on_quantize = 32;
constexpr unsigned on_load = on_serve | on_run;

using Set = Result<void> (*)(Parsed&, std::string_view);

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

// --- the table -------------------------------------------------------------------------------------

struct Option {
    std::string_view flag;      // without the dashes; the environment name follows from it
    char letter;                // 0: none
    std::string_view value;     // placeholder; empty: a switch
    std::string_view fallback;  // shown as the default
    unsigned commands;
    Set set;
    std::string_view help;
};

constexpr Option table[] = {
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
    // the server
    {"host", 0, "ADDRESS", "127.0.0.1", on_serve, to_address, "numeric address to bind; beyond loopback a key file is required"},
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
    {"max-tokens", 'n', "N", "as default-max-tokens", on_run, to_number<&RunOptions::max_tokens, 0, limits::model_context_tokens>, "longest answer"},
    {"raw", 0, "", "off", on_run, to_switch<&RunOptions::raw, true>, "give the prompt to the model as it is, without the chat template"},
    {"no-stats", 0, "", "off", on_run, to_switch<&RunOptions::no_stats, true>, "no line of token counts and times"},
    // the quantizer
    {"imatrix", 0, "FILE", "none", on_quantize, to_text<&QuantizeOptions::importance>, "importance matrix (GGUF or .dat): what an error in each column costs"},
    {"allow-requantize", 0, "", "off", on_quantize, to_switch<&QuantizeOptions::allow_requantize, true>, "take tensors that are quantized already"},
    // shared
    {"json", 0, "", "off", on_run | on_inspect | on_version, to_json, "print JSON"},
    {"format", 0, "NAME", "text", on_help, to_format, "help as text, markdown (the README's options), man (the manual page) or formats (tensor formats)"},
};

struct CommandRow {
    Command command;
    std::string_view name;
    unsigned bit;
    std::string_view operands;
    std::string_view help;
};

constexpr CommandRow commands_table[] = {
    {Command::serve, "serve", on_serve, "MODEL.gguf", "serve a model: chat page, OpenAI-compatible API, metrics"},
    {Command::run, "run", on_run, "MODEL.gguf [PROMPT...]", "chat in the terminal; with a prompt or a pipe, answer once and exit"},
    {Command::inspect, "inspect", on_inspect, "MODEL.gguf", "show a model file: metadata, tensors, what a context would take"},
    {Command::quantize, "quantize", on_quantize, "IN.gguf OUT.gguf TYPE", "write a model in a smaller format, such as Q4_K_M"},
    {Command::version, "version", on_version, "", "version, compiler and the CPU paths of this machine"},
    {Command::help, "help", on_help, "[COMMAND]", "help, for one command or for all"},
};

struct ExitCode {
    int code;
    std::string_view meaning;
};

constexpr ExitCode exit_codes[] = {
    {0, "done; after SIGTERM: answers in progress were finished"},
    {1, "could not start or go on (address in use, unreadable key file, engine failure)"},
    {2, "bad option, bad value or bad model file; one line says which"},
    {70, "the engine made no progress; a supervisor should restart the program"},
    {130, "interrupted: a one-shot run, or serving ended at once by a second Ctrl-C"},
    {143, "serving ended at once by a second SIGTERM"},
};

const CommandRow* row_of(Command command) {
    for (const CommandRow& row : commands_table)
        if (row.command == command) return &row;
    return nullptr;
}

std::string environment_name(const Option& option) {
    std::string name = "HEARTH_";
    for (char c : option.flag) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    return name;
}

const Option* find_flag(std::string_view name) {
    for (const Option& option : table)
        if (option.flag == name) return &option;
    return nullptr;
}

const Option* find_letter(char letter) {
    for (const Option& option : table)
        if (option.letter == letter && letter != 0) return &option;
    return nullptr;
}

std::string quoted(std::string_view text) {
    constexpr size_t shown = 60;
    std::string out = "\"";
    for (char c : text.substr(0, shown)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return out + (text.size() > shown ? "...\"" : "\"");
}

Result<void> apply(const Option& option, std::string_view called, Parsed& parsed, std::string_view value) {
    auto result = option.set(parsed, value);
    if (result) return {};
    return Error{ErrorCode::invalid_argument, std::string(called) + ": " + quoted(value) + " is not allowed; expected " + result.error().message,
                 std::string(option.flag)};
}

}  // namespace

Result<Parsed> parse(std::span<const char* const> arguments, const char* (*environment)(const char*)) {
    Parsed parsed;
    if (arguments.empty()) return parsed;
    const std::string_view verb = arguments[0];
    if (verb == "--help" || verb == "-h") {
        parsed.command = Command::help;
        return parsed;
    }
    if (verb == "--version" || verb == "-V") {
        parsed.command = Command::version;
        return parsed;
    }
    const CommandRow* row = nullptr;
    for (const CommandRow& candidate : commands_table)
        if (candidate.name == verb) row = &candidate;
    if (!row) {
        std::string known;
        for (const CommandRow& candidate : commands_table) known += (known.empty() ? "" : ", ") + std::string(candidate.name);
        return Error{ErrorCode::invalid_argument, quoted(verb) + " is not a command; expected one of " + known, {}};
    }
    parsed.command = row->command;

    for (const Option& option : table) {
        if (!(option.commands & row->bit)) continue;
        const std::string name = environment_name(option);
        if (const char* value = environment(name.c_str()); value && *value)
            if (auto result = apply(option, name, parsed, value); !result) return result.take_error();
    }

    std::vector<std::string_view> operands;
    std::vector<const Option*> seen;
    bool flags_end = false;
    for (size_t i = 1; i < arguments.size(); ++i) {
        std::string_view argument = arguments[i];
        if (flags_end || argument.size() < 2 || argument[0] != '-') {
            operands.push_back(argument);
            continue;
        }
        if (argument == "--") {
            flags_end = true;
            continue;
        }
        if (argument == "--help" || argument == "-h") {
            parsed.help_of = parsed.command;
            parsed.command = Command::help;
            return parsed;
        }
        const Option* option = nullptr;
        std::string_view called = argument, value;
        bool has_value = false;
        if (argument[1] == '-') {
            const size_t equals = argument.find('=');
            called = argument.substr(0, equals);
            option = find_flag(called.substr(2));
            if (equals != std::string_view::npos) value = argument.substr(equals + 1), has_value = true;
        } else {
            option = find_letter(argument[1]);
            called = argument.substr(0, 2);
            if (argument.size() > 2) value = argument.substr(2), has_value = true;
        }
        if (!option || !(option->commands & row->bit))
            return Error{ErrorCode::invalid_argument,
                         std::string(called) + " is not an option of hearth " + std::string(row->name) + "; see hearth " + std::string(row->name) + " --help", {}};
        if (option->value.empty()) {
            if (!has_value) value = "1";
        } else if (!has_value) {
            if (i + 1 >= arguments.size())
                return Error{ErrorCode::invalid_argument, std::string(called) + " needs a value (" + std::string(option->value) + ")", {}};
            value = arguments[++i];
        }
        // The first flag of a list stands above the environment's list, further ones add to it.
        for (auto [name, list] : {std::pair{std::string_view("allow-host"), &parsed.serve.hosts}, {"cors-origin", &parsed.serve.cors_origins}})
            if (option->flag == name && std::find(seen.begin(), seen.end(), option) == seen.end()) list->clear();
        seen.push_back(option);
        if (auto result = apply(*option, called, parsed, value); !result) return result.take_error();
    }

    switch (parsed.command) {
        case Command::serve:
        case Command::run:
        case Command::inspect: {
            if (operands.empty())
                return Error{ErrorCode::invalid_argument, "hearth " + std::string(row->name) + " needs a model file: hearth " + std::string(row->name) + " " + std::string(row->operands), {}};
            parsed.serve.model_path = parsed.inspect.path = std::string(operands[0]);
            if (parsed.command == Command::run) {
                if (operands.size() > 1 && environment("HEARTH_PROMPT")) parsed.run.prompt.clear();
                for (size_t i = 1; i < operands.size(); ++i) parsed.run.prompt += (parsed.run.prompt.empty() ? "" : " ") + std::string(operands[i]);
            } else if (operands.size() > 1) {
                return Error{ErrorCode::invalid_argument, quoted(operands[1]) + " is one operand too many", {}};
            }
            break;
        }
        case Command::quantize:
            if (operands.size() != 3)
                return Error{ErrorCode::invalid_argument, "hearth quantize needs three operands: hearth quantize " + std::string(row->operands), {}};
            parsed.quantize.in = std::string(operands[0]);
            parsed.quantize.out = std::string(operands[1]);
            parsed.quantize.type = std::string(operands[2]);
            break;
        case Command::help:
            if (!operands.empty()) {
                for (const CommandRow& candidate : commands_table)
                    if (candidate.name == operands[0]) parsed.help_of = candidate.command;
                if (parsed.help_of == Command::none) return Error{ErrorCode::invalid_argument, quoted(operands[0]) + " is not a command", {}};
            }
            break;
        default:
            if (!operands.empty()) return Error{ErrorCode::invalid_argument, quoted(operands[0]) + " is one operand too many", {}};
    }
    return parsed;
}

// --- the same table as text ------------------------------------------------------------------------

namespace {

std::string spelled(const Option& option) {
    std::string out = option.letter ? std::string("-") + option.letter + ", " : "    ";
    out += "--" + std::string(option.flag);
    if (!option.value.empty()) out += " " + std::string(option.value);
    return out;
}

std::string text_help(Command command) {
    std::string out;
    if (const CommandRow* row = row_of(command)) {
        out = "usage: hearth " + std::string(row->name) + " " + std::string(row->operands) + " [options]\n\n" + std::string(row->help) + "\n\n";
        for (const Option& option : table) {
            if (!(option.commands & row->bit)) continue;
            std::string left = "  " + spelled(option);
            left.resize(std::max<size_t>(left.size() + 1, 30), ' ');
            out += left + std::string(option.help) + " [" + std::string(option.fallback) + "]\n";
        }
        return out + "\nEach option is also an environment variable: --kv-budget is HEARTH_KV_BUDGET. Flags stand above it.\n";
    }
    out = "hearth " + std::string(version) + ": serves quantized language models from one program\n\n";
    for (const CommandRow& row : commands_table) {
        std::string left = "  hearth " + std::string(row.name) + " " + std::string(row.operands);
        left.resize(std::max<size_t>(left.size() + 1, 40), ' ');
        out += left + std::string(row.help) + "\n";
    }
    out += "\n`hearth COMMAND --help` lists a command's options.\n\nExit codes:\n";
    for (const ExitCode& code : exit_codes) out += "  " + std::to_string(code.code) + (code.code < 10 ? "    " : code.code < 100 ? "   " : "  ") + std::string(code.meaning) + "\n";
    return out;
}

std::string commands_of(const Option& option) {
    std::string out;
    for (const CommandRow& row : commands_table)
        if (option.commands & row.bit) out += (out.empty() ? "" : ", ") + std::string(row.name);
    return out;
}

std::string markdown_help() {
    std::string out = "| option | environment | default | commands | what it does |\n|---|---|---|---|---|\n";
    for (const Option& option : table) {
        std::string flag = option.letter ? std::string("`-") + option.letter + "` " : "";
        flag += "`--" + std::string(option.flag) + (option.value.empty() ? "" : " " + std::string(option.value)) + "`";
        out += "| " + flag + " | `" + environment_name(option) + "` | " + std::string(option.fallback) + " | " + commands_of(option) + " | " +
               std::string(option.help) + " |\n";
    }
    out += "\n| exit code | meaning |\n|---|---|\n";
    for (const ExitCode& code : exit_codes) out += "| " + std::to_string(code.code) + " | " + std::string(code.meaning) + " |\n";
    return out;
}

std::string roff(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '-' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string man_help() {
    std::string out = ".TH HEARTH 1 \"\" \"hearth " + std::string(version) + "\" \"User Commands\"\n.SH NAME\nhearth \\- serve quantized language models\n.SH SYNOPSIS\n";
    for (const CommandRow& row : commands_table)
        out += ".B hearth " + std::string(row.name) + "\n" + roff(row.operands) + (row.bit == on_version ? "" : " [options]") + "\n.br\n";
    out += ".SH COMMANDS\n";
    for (const CommandRow& row : commands_table) out += ".TP\n.B " + std::string(row.name) + "\n" + roff(row.help) + "\n";
    out += ".SH OPTIONS\n";
    for (const Option& option : table) {
        out += ".TP\n.B ";
        if (option.letter) out += std::string("\\-") + option.letter + ", ";
        out += roff("--" + std::string(option.flag)) + (option.value.empty() ? "" : " \\fI" + std::string(option.value) + "\\fR") + "\n" + roff(option.help) +
               ". Default: " + roff(option.fallback) + ". Commands: " + commands_of(option) + ". Environment: " + environment_name(option) + ".\n";
    }
    out += ".SH EXIT STATUS\n";
    for (const ExitCode& code : exit_codes) out += ".TP\n.B " + std::to_string(code.code) + "\n" + roff(code.meaning) + "\n";
    return out + ".SH ENVIRONMENT\nNO_COLOR turns colours off.\n";
}

std::string formats_help() {
    std::string out = "| type | bits per weight | weights of a block |\n|---|---|---|\n";
    for (const quant::TypeInfo& row : quant::type_infos) {
        char bits[16];
        std::snprintf(bits, sizeof bits, "%.4g", row.block_bytes * 8.0 / row.block_elements);
        out += "| " + std::string(row.name) + " | " + bits + " | " + std::to_string(row.block_elements) + " |\n";
    }
    return out;
}

}  // namespace

std::string help(Command command, HelpFormat format) {
    switch (format) {
        case HelpFormat::markdown: return markdown_help();
        case HelpFormat::man: return man_help();
        case HelpFormat::formats: return formats_help();
        case HelpFormat::text: break;
    }
    return text_help(command);
}

}  // namespace options
