#include "commands/loaded_model.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/mapped_file.h"
#include "base/message.h"
#include "base/version.h"
#include "commands/available_memory.h"
#include "commands/words.h"
#include "gguf/file.h"
#include "gguf/model_files.h"
#include "kernels/cpu/cpu.h"
#include "text/builtin_templates.h"

namespace commands {
namespace {

using base::Result;

// What "auto" takes for the KV at most: enough for some forty chat answers at once of a small model, and small enough
// that starting a server doesn't take a workstation's memory. A long context may need more (four of them).
constexpr uint64_t auto_kv_bytes = 2048 * limits::mib;
constexpr uint64_t auto_contexts = 4;

base::Error bad_option(std::string field, std::string message) {
    return {base::ErrorCode::invalid_argument, std::move(message), std::move(field)};
}

uint64_t blocks_for(uint64_t tokens) { return (tokens + limits::kv_block_tokens - 1) / limits::kv_block_tokens; }

// Bytes with an optional K, M or G.
Result<uint64_t> parse_bytes(const std::string& text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    uint32_t shift = 0;
    bool fits = error == std::errc() && stop != text.data();
    if (fits && stop != end) {
        const std::string_view suffix(stop, static_cast<size_t>(end - stop));
        if (suffix == "K" || suffix == "k")
            shift = 10;
        else if (suffix == "M" || suffix == "m")
            shift = 20;
        else if (suffix == "G" || suffix == "g")
            shift = 30;
        else
            fits = false;
    }
    if (!fits || value > (uint64_t{1} << 42) >> shift)
        return bad_option("kv-budget", "kv-budget must be auto or bytes, with K, M or G, up to 4096G; got " + base::printable(text));
    return value << shift;
}

// The name that the processor gives itself.
std::string cpu_name() {
#if defined(__x86_64__)
    unsigned regs[12] = {};
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid(0x80000000, &eax, &ebx, &ecx, &edx) && eax >= 0x80000004) {
        for (unsigned i = 0; i < 3; ++i) __get_cpuid(0x80000002 + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2], &regs[4 * i + 3]);
        char text[sizeof regs + 1] = {};
        std::memcpy(text, regs, sizeof regs);
        std::string name(text);
        name.erase(0, name.find_first_not_of(' '));
        while (!name.empty() && name.back() == ' ') name.pop_back();
        if (!name.empty()) return base::printable(name);
    }
#endif
    return "CPU";
}

// "llama-3-8b.Q4_K_M" of "/models/llama-3-8b.Q4_K_M.gguf" and of "/models/llama-3-8b.Q4_K_M-00001-of-00003.gguf"
std::string file_stem(const std::string& path) {
    if (const auto stem = gguf::split_stem(path)) return std::string(stem->substr(stem->find_last_of('/') + 1));
    std::string name = path.substr(path.find_last_of('/') + 1);
    if (name.size() > 5 && name.ends_with(".gguf")) name.resize(name.size() - 5);
    return name;
}

// FNV-1a: short, and the same on every machine.
std::string fingerprint_of(std::initializer_list<std::string> parts) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const std::string& part : parts)
        for (const char c : part + '\n') hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    char text[24];
    std::snprintf(text, sizeof text, "fp_%012llx", static_cast<unsigned long long>(hash >> 16));
    return text;
}

std::string token_text(const text::Tokenizer& tokenizer, text::TokenId id) {
    return id < 0 ? std::string() : std::string(tokenizer.token_bytes(id));
}

// The model file's own template may be broken (then there is no chat, and template_problem says why); one that was asked for
// may not.
Result<void> load_template(const gguf::File& file, const ServeOptions& options, const base::FileSystem& files, LoadedModel& out) {
    if (!options.chat_template.empty()) {
        std::string source;
        if (const auto builtin = text::builtin_template(options.chat_template)) {
            source = *builtin;
        } else {
            Result<std::unique_ptr<base::FileView>> view = files.open_mapped(options.chat_template);
            if (!view) return bad_option("chat-template", base::cat(view.error().message, " (built-in ones: ", text::builtin_template_names(), ")"));
            const std::span<const std::byte> bytes = view.value()->bytes();
            source.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        Result<std::unique_ptr<text::ChatTemplate>> parsed = text::ChatTemplate::parse(std::move(source));
        if (!parsed) return bad_option("chat-template", base::cat(base::printable(options.chat_template, 200), ": ", parsed.error().message));
        out.chat_template = std::move(parsed).value();
        return {};
    }
    const std::string hint = base::cat("; --chat-template takes a file or one of ", text::builtin_template_names());
    if (!file.find("tokenizer.chat_template")) {
        out.template_problem = "the file has no chat template" + hint;
        return {};
    }
    Result<std::string_view> source = file.get_string("tokenizer.chat_template");
    if (!source) {
        out.template_problem = source.error().message + hint;
        return {};
    }
    Result<std::unique_ptr<text::ChatTemplate>> parsed = text::ChatTemplate::parse(std::string(source.value()));
    if (parsed)
        out.chat_template = std::move(parsed).value();
    else
        out.template_problem = parsed.error().message + hint;
    return {};
}

}  // namespace

uint32_t Fit::full_contexts() const { return context_length ? static_cast<uint32_t>(kv_blocks / blocks_for(context_length)) : 0; }

Result<uint32_t> choose_kv_blocks(const std::string& kv_budget, const model::MemoryPlan& plan, uint64_t available_bytes,
                                  uint32_t context_length, uint32_t sequences) {
    const uint64_t one_context = blocks_for(context_length) * plan.kv_block_bytes;
    const uint64_t taken = plan.fixed_bytes() + limits::spare_bytes;
    const uint64_t left = available_bytes > taken ? available_bytes - taken : 0;
    const auto too_small = [&](std::string_view what, uint64_t bytes) {
        // The longest context that would fit; below one block none would.
        const uint64_t tokens = bytes / plan.kv_block_bytes * limits::kv_block_tokens;
        std::string message = base::cat("the KV of one context of ", context_length, " tokens takes ", bytes_text(one_context), " (",
                                        one_context, " bytes), ", what, " ", bytes_text(bytes), " (", bytes, " bytes)");
        message += tokens > 0 ? base::cat("; --context ", tokens, " would fit") : "; not even one block of 64 tokens fits";
        return bad_option("context", std::move(message));
    };
    uint64_t bytes = 0;
    if (kv_budget == "auto") {
        if (one_context > left)
            return too_small(base::cat("and beside weights and working memory of ", bytes_text(plan.fixed_bytes()), " there is"), left);
        bytes = std::min(left / 2, std::max(auto_kv_bytes, auto_contexts * one_context));
        bytes = std::max(bytes, one_context);
        bytes = std::min(bytes, sequences * one_context);  // more could never be used
    } else {
        Result<uint64_t> given = parse_bytes(kv_budget);
        if (!given) return given.take_error();
        bytes = given.value();
        if (bytes < one_context) return too_small("the KV budget is", bytes);
        if (bytes > left)
            return bad_option("kv-budget",
                              base::cat("a KV budget of ", bytes_text(bytes), " does not fit: beside weights and working memory of ",
                                        bytes_text(plan.fixed_bytes()), " there is ", bytes_text(left)));
    }
    return static_cast<uint32_t>(std::min<uint64_t>(bytes / plan.kv_block_bytes, UINT32_MAX));
}

Result<std::unique_ptr<LoadedModel>> load_model(const ServeOptions& options, const base::Clock& clock, std::function<void()> wake,
                                                const LoadHooks& hooks, const base::FileSystem& files) {
    auto out = std::make_unique<LoadedModel>();
    model::ModelOptions model_options;
    if (options.kv_type == "f16")
        model_options.kv_type = kernels::KvType::f16;
    else if (options.kv_type == "f32")
        model_options.kv_type = kernels::KvType::f32;
    else
        return bad_option("kv-type", "kv-type must be f16 or f32, got " + base::printable(options.kv_type));

    Result<gguf::ModelFiles> opened = gguf::ModelFiles::open(options.model_path, files);
    if (!opened) return opened.take_error();
    const gguf::File& file = opened.value().file();

    Result<model::Config> config = model::read_config(file);
    if (!config) return in_file(config.take_error(), options.model_path);
    const uint32_t context = options.context ? options.context : config.value().context_length;
    if (context > config.value().context_length)
        return bad_option("context",
                          base::cat("context ", context, " is longer than the model's ", config.value().context_length, " tokens"));
    model_options.context_length = context;

    Result<std::unique_ptr<text::Tokenizer>> tokenizer = text::Tokenizer::from_gguf(file);
    if (!tokenizer) return in_file(tokenizer.take_error(), options.model_path);
    out->tokenizer = std::move(tokenizer).value();
    if (out->tokenizer->n_vocab() > config.value().n_vocab)
        return base::Error{base::ErrorCode::bad_file,
                           base::cat(base::printable(options.model_path, limits::file_name_bytes_shown), ": the vocabulary has ", out->tokenizer->n_vocab(),
                                     " tokens, the embeddings only ", config.value().n_vocab),
                           ""};
    if (Result<void> chat = load_template(file, options, files, *out); !chat) return chat.take_error();

    Result<std::unique_ptr<kernels::Backend>> backend = kernels::cpu::create({options.threads, options.isa, options.activation_bits});
    if (!backend) return backend.take_error();
    out->hardware = base::cat(cpu_name(), ", ", backend.value()->name(), ", ", backend.value()->threads_count(),
                              backend.value()->threads_count() == 1 ? " thread" : " threads");

    const uint32_t sequences = std::clamp<uint32_t>(options.max_sequences, 1, limits::sequences_running);
    model_options.logit_rows_max = sequences;
    Result<model::MemoryPlan> plan = model::plan(file, *backend.value(), model_options);
    if (!plan) return in_file(plan.take_error(), options.model_path);
    const AvailableMemory available = available_memory();
    Result<uint32_t> blocks = choose_kv_blocks(options.kv_budget, plan.value(), available.bytes, context, sequences);
    if (!blocks) return blocks.take_error();
    model_options.kv_blocks_count = blocks.value();
    out->fit = {plan.value().weights_bytes,
                plan.value().activations_bytes + plan.value().scratch_bytes,
                uint64_t{blocks.value()} * plan.value().kv_block_bytes,
                plan.value().kv_block_bytes / limits::kv_block_tokens,
                available.bytes,
                blocks.value(),
                context};
    if (hooks.planned) hooks.planned(out->fit, out->hardware);

    const std::string backend_name(backend.value()->name());
    Result<std::unique_ptr<model::Model>> model = model::Model::load(file, std::move(backend).value(), model_options, hooks.progress);
    if (!model) return in_file(model.take_error(), options.model_path);
    // What was read may be a mixture when somebody wrote to the file meanwhile.
    if (Result<void> unchanged = opened.value().check_unchanged(); !unchanged) return unchanged.take_error();
    out->model = std::move(model).value();

    server::ServedModel& served = out->served;
    served.id = options.alias.empty() ? file_stem(options.model_path) : options.alias;
    for (const gguf::TensorInfo& tensor : file.tensors()) served.n_params += tensor.n_elements();
    if (Result<std::string_view> architecture = file.get_string("general.architecture"); architecture)
        served.architecture = architecture.value();
    served.size_bytes = file.size_bytes();
    served.fingerprint = fingerprint_of(
        {std::string(::version), std::to_string(served.size_bytes), std::to_string(served.n_params), backend_name, options.kv_type});
    served.created_unix_s = clock.wall_unix_s();
    served.n_vocab = out->tokenizer->n_vocab();
    served.context_trained = config.value().context_length;
    served.context_length = context;
    served.default_max_tokens = std::max<uint32_t>(options.default_max_tokens, 1);
    served.queue_requests_max = options.max_queue;
    served.sequences_max = sequences;
    served.prefix_cache = options.prefix_cache;
    served.kv_type = options.kv_type;
    served.tokenizer = out->tokenizer.get();
    served.chat_template = out->chat_template.get();
    served.bos_token = token_text(*out->tokenizer, out->tokenizer->bos_id());
    served.eos_token = token_text(*out->tokenizer, out->tokenizer->eos_id());

    engine::EngineConfig engine_config;
    engine_config.context_length = context;
    engine_config.sequences_max = sequences;
    engine_config.queue_requests_max = options.max_queue;
    engine_config.prefix_cache = options.prefix_cache;
    out->engine = engine::Engine::create(engine_config, *out->model, *out->tokenizer, clock, std::move(wake));
    served.engine = out->engine.get();
    return out;
}

}  // namespace commands
