#include "commands/run.h"

#include <csignal>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/message.h"
#include "commands/chat.h"
#include "commands/line_editor.h"
#include "commands/loaded_model.h"
#include "commands/terminal.h"
#include "json/writer.h"

namespace commands {
namespace {

constexpr size_t piped_bytes_max = 16 * limits::mib;  // of a prompt from a pipe; no context holds more

// Set by Ctrl-C; the only thing the handler may touch.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void catch_interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: waiting for a line ends
    sigaction(SIGINT, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

int refuse(const base::Error& error) {
    std::fprintf(stderr, "hearth: %s\n", error.message.c_str());
    return error.code == base::ErrorCode::internal || error.code == base::ErrorCode::unavailable ? 1 : 2;
}

const char* finish_name(engine::FinishReason reason) {
    switch (reason) {
        case engine::FinishReason::stop: return "stop";
        case engine::FinishReason::length: return "length";
        case engine::FinishReason::cancelled: return "cancelled";
        default: return "error";
    }
}

std::string stats_line(const Answer& answer) {
    char line[160];
    std::snprintf(line, sizeof line, "%u tokens, %.1f tokens/s, first after %.0f ms; prompt %u tokens, %u of them cached%s", answer.usage.completion_tokens,
                  answer.tokens_per_second(), static_cast<double>(answer.first_token_ns) / 1e6, answer.usage.prompt_tokens, answer.usage.cached_tokens,
                  answer.finish_reason == engine::FinishReason::cancelled ? "; stopped"
                  : answer.context_full                                   ? "; cut where the context ends: /clear starts anew"
                  : answer.finish_reason == engine::FinishReason::length  ? "; cut at the token limit (--max-tokens)"
                                                                          : "");
    return line;
}

void print_json(const Answer& answer) {
    std::string text;
    json::Writer out(text);
    out.begin_object();
    out.member("text", answer.text);
    out.member("finish_reason", finish_name(answer.finish_reason));
    out.member("prompt_tokens", answer.usage.prompt_tokens);
    out.member("cached_tokens", answer.usage.cached_tokens);
    out.member("completion_tokens", answer.usage.completion_tokens);
    out.member("first_token_ms", static_cast<double>(answer.first_token_ns) / 1e6);
    out.member("tokens_per_second", answer.tokens_per_second());
    out.end_object();
    std::cout << text << std::endl;
}

// Model text for a terminal: control characters other than newline and tab are dropped (C0, DEL, C1, those that reorder
// text), so that an answer cannot move the cursor, set the title or show itself as something else.
void print_text(std::string_view text, bool terminal) {
    const std::string safe = terminal ? base::without_controls(text) : std::string();
    const std::string_view shown = terminal ? std::string_view(safe) : text;
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
}

int one_shot(Chat& chat, const std::string& prompt, const RunOptions& options) {
    const bool terminal = is_terminal(STDOUT_FILENO);
    auto answer = chat.turn(prompt, [&](std::string_view text) { if (!options.json) print_text(text, terminal); }, interrupted);
    if (!answer) return refuse(answer.error());
    if (options.json) {
        print_json(answer.value());
    } else {
        if (answer.value().text.empty() || answer.value().text.back() != '\n') print_text("\n", false);
        if (terminal && !options.no_stats) std::fprintf(stderr, "%s\n", dim(STDERR_FILENO, stats_line(answer.value())).c_str());
    }
    return answer.value().finish_reason == engine::FinishReason::cancelled ? 130 : 0;
}

constexpr const char* chat_help =
    "/clear          forget the conversation\n"
    "/system TEXT    set the system message and forget the conversation\n"
    "/help           this list\n"
    "/bye            leave (also /quit and Ctrl-D)\n"
    "\"\"\"             begins and ends a message of several lines\n"
    "Ctrl-C stops an answer; arrows and Ctrl-R go through earlier lines\n";

// Reads one message, which may span lines between """ marks.
LineResult read_message(LineEditor& editor, std::string& message) {
    constexpr std::string_view mark = "\"\"\"";
    std::string line;
    LineResult result = editor.read(">>> ", line);
    if (result != LineResult::line || line.compare(0, mark.size(), mark) != 0) {
        message = std::move(line);
        return result;
    }
    message = line.substr(mark.size());
    while (true) {
        if (message.size() >= mark.size() && message.compare(message.size() - mark.size(), mark.size(), mark) == 0) {
            message.resize(message.size() - mark.size());
            return LineResult::line;
        }
        result = editor.read("... ", line);
        if (result != LineResult::line) return result;
        message += (message.empty() ? "" : "\n") + line;
    }
}

int converse(Chat& chat, const RunOptions& options, const std::string& greeting) {
    std::printf("%s\n", dim(STDOUT_FILENO, greeting + "\n/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves").c_str());
    LineEditor editor;
    std::string message;
    while (true) {
        interrupted = false;
        const LineResult result = read_message(editor, message);
        if (result == LineResult::end) {
            std::printf("\n");
            return 0;
        }
        if (result == LineResult::interrupted) {
            std::printf("\n");
            continue;
        }
        if (message.find_first_not_of(" \t\n") == std::string::npos) continue;
        if (message == "/bye" || message == "/exit" || message == "/quit") return 0;
        if (message == "/clear") {
            chat.clear();
            continue;
        }
        if (message.rfind("/system", 0) == 0 && (message.size() == 7 || message[7] == ' ')) {
            chat.set_system(message.size() > 8 ? message.substr(8) : std::string());
            continue;
        }
        if (message[0] == '/') {
            if (message != "/help") print_text("not a command; there are:\n", true);
            std::printf("%s", chat_help);
            continue;
        }
        interrupted = false;
        auto answer = chat.turn(message, [](std::string_view text) { print_text(text, true); }, interrupted);
        std::printf("\n");
        if (!answer) {
            const bool full = answer.error().code == base::ErrorCode::context_length_exceeded;
            std::printf("%s%s\n", answer.error().message.c_str(), full ? " (/clear starts anew)" : "");
        }
        else if (!options.no_stats) std::printf("%s\n", dim(STDOUT_FILENO, stats_line(answer.value())).c_str());
    }
}

}  // namespace

int run_command(const ServeOptions& load, const RunOptions& options) {
    // A chat shows its prompt and its answers: it needs a terminal on both sides.
    const bool chats = options.prompt.empty() && is_terminal(STDIN_FILENO) && is_terminal(STDOUT_FILENO);
    std::string prompt = options.prompt;
    if (!chats && !is_terminal(STDIN_FILENO)) {
        std::string piped;
        char buffer[65536];
        for (size_t n; piped.size() <= piped_bytes_max && (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) piped.append(buffer, n);
        if (piped.size() > piped_bytes_max)
            return refuse({base::ErrorCode::too_large, "the piped prompt is over " + std::to_string(piped_bytes_max) + " bytes", {}});
        while (!options.raw && !piped.empty() && piped.back() == '\n') piped.pop_back();
        if (!piped.empty()) prompt += (prompt.empty() ? "" : "\n\n") + piped;
    }
    if (!chats && prompt.empty()) {
        // A forgotten model makes the prompt the model's name.
        if (auto file = base::system_files().open_mapped(load.model_path); !file) return refuse(file.error());
        return refuse({base::ErrorCode::invalid_argument, "no prompt: give it after the model or through a pipe; a chat needs a terminal for its output too", {}});
    }

    const base::Clock& clock = base::system_clock();
    ServeOptions one = load;
    one.max_sequences = 1;  // one conversation: KV for one full context
    ProgressBar bar("loading", clock);
    LoadHooks hooks;
    hooks.progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
    auto loaded = load_model(one, clock, [] {}, hooks);
    bar.finish();
    if (!loaded) return refuse(loaded.error());
    LoadedModel& model = *loaded.value();
    if (!options.raw && !model.chat_template) {
        const std::string problem = model.template_problem.empty() ? "the model file has no chat template" : model.template_problem;
        return refuse({base::ErrorCode::unsupported, problem + "; --raw gives the prompt as it is", {}});
    }

    catch_interrupts();
    Chat chat(*model.engine, *model.tokenizer, model.chat_template.get(), clock, options, model.fit.context_length, load.default_max_tokens);
    if (!chats) return one_shot(chat, prompt, options);
    return converse(chat, options, model.served.id + ", " + model.hardware + ", context " + std::to_string(model.fit.context_length) + " tokens");
}

}  // namespace commands
