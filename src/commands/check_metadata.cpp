// Checks of what the metadata claims.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/message.h"
#include "commands/check.h"
#include "model/key_reader.h"
#include "quant/recipe.h"

namespace commands {
namespace {

using base::cat;
using model::short_text;

// A number of the architecture, and what any published model has: far outside of it is a slip of the converter.
struct RangeRow {
    std::string_view key;
    double low, high;
    std::string_view why;
};
constexpr RangeRow range_rows[] = {
    {"context_length", 128, 16'777'216, "models are trained on at least 128 tokens"},
    {"rope.freq_base", 1'000, 1e9, "families have 10000 to 50000000"},
    {"rope.freq_base_swa", 1'000, 1e9, "families have 10000 to 1000000"},
    {"rope.scaling.factor", 1, 128, "contexts are stretched, and not by more than 64"},
    {"attention.layer_norm_rms_epsilon", 1e-8, 1e-3, "families have 1e-6 to 1e-5"},
};

std::optional<double> number(const gguf::File& file, std::string_view key) {
    if (auto integer = file.get_uint(key)) return static_cast<double>(integer.value());
    if (auto real = file.get_float(key)) return real.value();
    return std::nullopt;
}

}  // namespace

void check_configuration(const CheckedModel& model, Findings& findings) {
    if (model.config_problem) findings.add(Severity::error, model.config_problem->message);
}

void check_ranges(const CheckedModel& model, Findings& findings) {
    const auto architecture = model.file.get_string("general.architecture");
    if (!architecture) return;  // check_configuration says so
    const auto key = [&](std::string_view name) { return cat(architecture.value(), ".", name); };
    const auto odd = [&](std::string_view name, std::string_view problem) {
        findings.add(Severity::warning, cat("metadata key '", base::printable(key(name)), "' at byte ", model.file.find(key(name))->offset, " ", problem));
    };
    for (const RangeRow& row : range_rows) {
        const std::optional<double> value = number(model.file, key(row.key));
        if (value && !(*value >= row.low && *value <= row.high)) odd(row.key, cat("is ", short_text(*value), "; ", row.why));
    }
    const std::optional<double> context = number(model.file, key("context_length"));
    const std::optional<double> original = number(model.file, key("rope.scaling.original_context_length"));
    const std::optional<double> factor = number(model.file, key("rope.scaling.factor"));
    if (!context || !original) return;
    if (*original > *context) odd("rope.scaling.original_context_length", cat("is ", short_text(*original), ", above the context length, ", short_text(*context)));
    // A little over is rounding.
    if (factor && *original * *factor < *context * 0.99)
        odd("context_length", cat("is ", short_text(*context), ", but the original context of ", short_text(*original), " stretched ", short_text(*factor), " times gives ",
                                  short_text(*original * *factor)));
}

void check_file_type(const CheckedModel& model, Findings& findings) {
    constexpr std::string_view key = "general.file_type";
    constexpr uint64_t guessed = 1'024;  // a flag: the reader that wrote it had guessed
    const gguf::Value* value = model.file.find(key);
    if (!value) return;
    const auto where = [&](std::string_view problem) { return cat("metadata key '", key, "' at byte ", value->offset, " ", problem); };
    auto claimed = model.file.get_uint(key);
    if (!claimed) return findings.add(Severity::warning, claimed.error().message);
    const uint64_t number = claimed.value() & ~guessed;
    const auto recipe = std::find_if(quant::recipes.begin(), quant::recipes.end(), [&](const quant::Recipe& row) { return row.file_type == number; });
    if (recipe == quant::recipes.end()) return findings.add(Severity::note, where(cat("is ", claimed.value(), ", a mix that hearth doesn't know")));

    std::array<uint64_t, quant::type_infos.size()> counts{};
    bool could = false;  // rows of some matrix fit blocks of the type
    uint64_t matrices = 0, quantized = 0;
    const quant::TypeInfo& base_type = quant::info(recipe->base);
    for (const gguf::TensorInfo& tensor : model.file.tensors()) {
        if (tensor.n_dims < 2) continue;
        ++matrices;
        ++counts[static_cast<size_t>(tensor.type)];
        quantized += quant::info(tensor.type).block_elements > 1;
        could = could || tensor.dims[0] % base_type.block_elements == 0;
    }
    if (matrices == 0) return;
    std::string seen;
    for (const quant::TypeInfo& row : quant::type_infos)
        if (const uint64_t n = counts[static_cast<size_t>(row.type)]; n > 0) seen += cat(seen.empty() ? "" : ", ", n, " ", row.name);
    // A mix puts its base type somewhere, unless no row fits its blocks; a plain type has no quantized matrix at all.
    const bool plain = base_type.block_elements == 1;
    if (plain ? quantized > 0 : could && counts[static_cast<size_t>(recipe->base)] == 0)
        findings.add(Severity::warning, where(cat("says ", recipe->name, ", but the matrices are ", seen)));
}

}  // namespace commands
