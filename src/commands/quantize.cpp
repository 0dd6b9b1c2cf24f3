#include "commands/quantize.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <ostream>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/message.h"
#include "commands/quantize_tensor.h"
#include "commands/terminal.h"
#include "commands/words.h"
#include "gguf/file.h"
#include "gguf/importance.h"
#include "gguf/model_files.h"
#include "gguf/writer.h"
#include "kernels/cpu/threads.h"
#include "quant/recipe.h"

namespace commands {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;
using base::printable;
using base::Result;

std::string shown(const std::string& path) { return printable(path, limits::file_name_bytes_shown); }

// --- what to do --------------------------------------------------------------------------------------------------------

struct Plan {
    const quant::Recipe* recipe = nullptr;
    std::vector<quant::Choice> choices;           // of each tensor
    std::vector<const std::vector<float>*> importance;  // of each tensor, null for none
};

Error unknown_type(const std::string& name) {
    std::string known;
    for (const quant::Recipe& recipe : quant::recipes) known += cat(known.empty() ? "" : " ", recipe.name);
    return {ErrorCode::invalid_argument, cat("type is \"", printable(name), "\", allowed are ", known), ""};
}

// Writing must not touch what is read: IN itself or a part of it, by any name, and anything that is no plain file.
Result<void> check_paths(const QuantizeOptions& options, const std::string& in_path) {
    struct stat in {};
    if (::stat(in_path.c_str(), &in) != 0) return {};  // opening it says why
    for (const std::string& path : {options.out, gguf::Writer::partial_path(options.out)}) {
        struct stat other {};
        if (::stat(path.c_str(), &other) != 0) continue;
        if (in.st_dev == other.st_dev && in.st_ino == other.st_ino)
            return Error{ErrorCode::invalid_argument, cat(shown(path), " is the input itself; give the output another name"), ""};
        if (!S_ISREG(other.st_mode)) return Error{ErrorCode::invalid_argument, cat(shown(path), " exists and is no regular file"), ""};
    }
    return {};
}

// ARCHITECTURE.KEY, a number or the first of a list; `otherwise` when it is not there.
uint32_t model_number(const gguf::File& file, std::string_view architecture, std::string_view key, uint32_t otherwise) {
    const std::string full = cat(architecture, ".", key);
    if (auto number = file.get_uint(full)) return static_cast<uint32_t>(std::min<uint64_t>(number.value(), limits::model_width));
    if (auto list = file.get_ints(full); list && !list.value().empty())
        return static_cast<uint32_t>(std::clamp<int64_t>(list.value()[0], 0, limits::model_width));
    return otherwise;
}

Result<void> find_importance(const gguf::File& file, const gguf::Importance& matrix, Plan& plan) {
    size_t matched = 0;
    for (size_t i = 0; i < file.tensors().size(); ++i) {
        const gguf::TensorInfo& tensor = file.tensors()[i];
        const auto entry = matrix.columns.find(tensor.name);
        if (entry == matrix.columns.end() || plan.choices[i].type == tensor.type) continue;
        const uint64_t expected = tensor.dims[0] * tensor.dims[2] * tensor.dims[3];
        if (entry->second.size() == expected) {
            plan.importance[i] = &entry->second;
            ++matched;
        } else if (tensor.name != "token_embd.weight") {  // an embedding's rows are looked up: what was measured there is another thing
            return Error{ErrorCode::bad_file,
                         cat("the importance matrix has ", entry->second.size(), " values for '", printable(tensor.name), "', expected ", expected), ""};
        }
    }
    if (matched == 0) return Error{ErrorCode::bad_file, "the importance matrix has no entry for any tensor of this model", ""};
    return {};
}

Result<Plan> make_plan(const gguf::File& file, const QuantizeOptions& options, const std::optional<gguf::Importance>& matrix) {
    Plan plan;
    plan.recipe = quant::find_recipe(options.type);
    quant::RecipeModel model;
    auto architecture = file.get_string("general.architecture");
    if (!architecture) return architecture.take_error();
    model.architecture = architecture.value();
    model.n_layers = model_number(file, model.architecture, "block_count", 0);
    model.n_heads = model_number(file, model.architecture, "attention.head_count", 1);
    model.n_kv_heads = model_number(file, model.architecture, "attention.head_count_kv", model.n_heads);
    model.n_experts = model_number(file, model.architecture, "expert_count", 0);
    model.has_importance = matrix.has_value();
    std::vector<quant::RecipeTensor> tensors;
    for (const gguf::TensorInfo& tensor : file.tensors())
        tensors.push_back({tensor.name, tensor.type, {tensor.dims[0], tensor.dims[1], tensor.dims[2], tensor.dims[3]}});
    plan.choices = quant::choose_types(*plan.recipe, model, tensors);
    plan.importance.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
        const bool quantized = quant::info(tensors[i].type).block_elements > 1;
        if (quantized && plan.choices[i].type != tensors[i].type && !options.allow_requantize)
            return Error{ErrorCode::unsupported,
                         cat("tensor '", printable(tensors[i].name), "' is quantized already (", quant::info(tensors[i].type).name,
                             "); quantizing it again loses more than starting from F16 or F32, --allow-requantize does it all the same"), ""};
        if (plan.choices[i].wants_importance && !matrix)
            return Error{ErrorCode::unsupported, cat(plan.recipe->name, " puts '", printable(tensors[i].name), "' into too few bits to guess: it needs --imatrix"), ""};
    }
    if (matrix)
        if (auto found = find_importance(file, *matrix, plan); !found) return found.take_error();
    return plan;
}

// --- doing it ----------------------------------------------------------------------------------------------------------

// The metadata as it was, but for what says how the file is quantized.
void copy_metadata(const gguf::File& file, const Plan& plan, const QuantizeOptions& options, const std::optional<gguf::Importance>& matrix,
                   gguf::Writer& writer) {
    constexpr uint32_t quantization_version = 2;  // of the block layouts in quant/blocks.h
    const auto replaced = [](std::string_view key) {
        return key == "general.file_type" || key == "general.quantization_version" || key == "general.alignment" ||
               key.starts_with("quantize.imatrix.") || key.starts_with("split.");
    };
    for (const auto& [key, value] : file.metadata())
        if (!replaced(key)) writer.add_value(key, value);
    writer.add_u32("general.file_type", plan.recipe->file_type);
    writer.add_u32("general.quantization_version", quantization_version);
    if (!matrix) return;
    const size_t slash = options.importance.find_last_of('/');
    writer.add_string("quantize.imatrix.file", options.importance.substr(slash == std::string::npos ? 0 : slash + 1));
    if (!matrix->datasets.empty()) writer.add_string("quantize.imatrix.dataset", matrix->datasets[0]);
    writer.add_u32("quantize.imatrix.entries_count", static_cast<uint32_t>(matrix->columns.size()));
    writer.add_u32("quantize.imatrix.chunks_count", matrix->chunks);
}

// The directory of the finished file is the one that was planned. (Its blocks were looked at when they were made.)
Result<void> check_written(const gguf::File& in, const Plan& plan, const std::string& path, const base::FileSystem& files) {
    auto view = files.open_mapped(path);
    if (!view) return view.take_error();
    auto parsed = gguf::File::parse(view.value()->bytes(), path);
    if (!parsed) return parsed.take_error();
    const auto written = parsed.value().tensors();
    bool same = written.size() == in.tensors().size();
    for (size_t i = 0; same && i < written.size(); ++i)
        same = written[i].name == in.tensors()[i].name && written[i].type == plan.choices[i].type &&
               std::equal(std::begin(written[i].dims), std::end(written[i].dims), std::begin(in.tensors()[i].dims));
    if (!same) return Error{ErrorCode::internal, cat(shown(path), ": the written file is not the planned one"), ""};
    return {};
}

// An interrupted run leaves no partial file. Only what is safe in a handler: unlink, _exit.
char partial_to_remove[4096];

void on_interrupt(int signal) {
    ::unlink(partial_to_remove);
    ::_exit(128 + signal);
}

void remove_when_interrupted(const std::string& partial) {
    if (partial.size() >= sizeof partial_to_remove) return;  // no system takes such a path
    std::memcpy(partial_to_remove, partial.c_str(), partial.size() + 1);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action {};
        action.sa_handler = on_interrupt;
        ::sigaction(signal, &action, nullptr);
    }
}

void print_summary(std::ostream& out, const QuantizeOptions& options, const gguf::File& file, const Plan& plan, double seconds) {
    uint64_t weights = 0, bytes = 0, fallbacks = 0, with_importance = 0;
    uint64_t counts[quant::type_infos.size()] = {};
    for (size_t i = 0; i < file.tensors().size(); ++i) {
        weights += file.tensors()[i].n_elements();
        bytes += quant::row_bytes(plan.choices[i].type, file.tensors()[i].n_elements());
        fallbacks += plan.choices[i].fallback;
        with_importance += plan.importance[i] != nullptr;
        ++counts[static_cast<size_t>(plan.choices[i].type)];
    }
    char text[96];
    std::snprintf(text, sizeof text, "%.2f bits a weight, %.1f s", static_cast<double>(bytes) * 8 / static_cast<double>(weights), seconds);
    out << shown(options.out) << ": " << plan.recipe->name << ", " << bytes_text(file.size_bytes()) << " -> " << bytes_text(bytes) << ", " << text << "\ntensors:";
    for (const quant::TypeInfo& row : quant::type_infos)
        if (const uint64_t n = counts[static_cast<size_t>(row.type)]; n > 0) out << ' ' << n << ' ' << row.name;
    if (fallbacks > 0) out << "; " << fallbacks << " with rows that fit no block of the wanted type took another";
    if (!options.importance.empty()) out << "; " << with_importance << " with importance";
    out << '\n';
}

}  // namespace

int quantize_command(const QuantizeOptions& options, std::ostream& out, std::ostream& err, const base::FileSystem& files) {
    const auto refuse = [&](const Error& error, int code = 2) {
        err << "hearth: " << error.message << '\n';
        return code;
    };
    const base::Clock& clock = base::system_clock();
    const int64_t start_ns = clock.now_ns();
    if (!quant::find_recipe(options.type)) return refuse(unknown_type(options.type));
    auto opened = gguf::ModelFiles::open(options.in, files);
    if (!opened) return refuse(opened.error());
    const gguf::ModelFiles& in = opened.value();
    const gguf::File& file = in.file();
    for (const std::string& part : in.paths())
        if (auto apart = check_paths(options, part); !apart) return refuse(apart.error());
    if (file.tensors().empty()) return refuse({ErrorCode::bad_file, cat(shown(options.in), ": has no tensors"), ""});

    std::optional<gguf::Importance> matrix;
    if (!options.importance.empty()) {
        auto matrix_view = files.open_mapped(options.importance);
        if (!matrix_view) return refuse(matrix_view.error());
        auto loaded = gguf::Importance::parse(matrix_view.value()->bytes(), options.importance);
        if (!loaded) return refuse(in_file(loaded.error(), options.importance));
        matrix = std::move(loaded).value();
    }
    auto planned = make_plan(file, options, matrix);
    if (!planned) return refuse(in_file(planned.error(), options.in));
    const Plan& plan = planned.value();

    uint64_t total = 0, done = 0;
    for (const gguf::TensorInfo& tensor : file.tensors()) total += tensor.data.size();
    ProgressBar bar("quantizing", clock);
    const auto progress = [&](uint64_t bytes) { bar.update(done += bytes, total); };
    const uint32_t threads = options.threads > 0 ? options.threads : kernels::cpu::count_cpus().threads;

    gguf::Writer writer(static_cast<uint32_t>(file.alignment()));
    copy_metadata(file, plan, options, matrix, writer);
    bool input_at_fault = false;
    for (size_t i = 0; i < file.tensors().size(); ++i) {
        const gguf::TensorInfo& tensor = file.tensors()[i];
        writer.add_streamed_tensor(tensor.name, plan.choices[i].type, std::span(tensor.dims, tensor.n_dims), [&, i](const gguf::Writer::Sink& sink) {
            const float* importance = plan.importance[i] ? plan.importance[i]->data() : nullptr;
            auto result = quantize_tensor({in, file.tensors()[i], plan.choices[i].type, importance, threads, progress}, sink);
            input_at_fault = input_at_fault || !result;
            return result;
        });
    }
    remove_when_interrupted(gguf::Writer::partial_path(options.out));
    const auto check = [&](const std::string& partial) -> Result<void> {
        if (auto unchanged = in.check_unchanged(); !unchanged) {
            input_at_fault = true;
            return unchanged.take_error();
        }
        return check_written(file, plan, partial, files);
    };
    auto written = writer.write_file(options.out, check);
    bar.finish();
    if (!written) return refuse(input_at_fault ? in_file(written.error(), options.in) : written.error(), input_at_fault ? 2 : 1);
    print_summary(out, options, file, plan, static_cast<double>(clock.now_ns() - start_ns) * 1e-9);
    return 0;
}

}  // namespace commands
