#include "commands/inspect.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <optional>
#include <ostream>
#include <vector>

#include "base/mapped_file.h"
#include "base/message.h"
#include "commands/check.h"
#include "commands/words.h"
#include "gguf/file.h"
#include "gguf/model_files.h"
#include "json/writer.h"
#include "kernels/cpu/cpu.h"
#include "model/config.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace commands {
namespace {

using base::cat;
using base::printable;

constexpr uint64_t elements_shown = 8;        // of an array
constexpr size_t text_bytes_shown = 100;      // of a string, in the text form

struct TypeTotal {
    uint64_t tensors = 0, parameters = 0, bytes = 0;
};

// What serving would take. Products saturate: a file may claim dimensions whose memory no 64 bits can count.
struct Memory {
    uint32_t context = 0;  // tokens of a sequence
    model::MemoryPlan plan;
    uint64_t kv_blocks = 0, kv_bytes = 0, total_bytes = 0;
};

struct Report {
    std::array<TypeTotal, quant::type_infos.size()> totals{};
    TypeTotal all;
    std::optional<model::Config> config;
    std::optional<Memory> memory;
    bool split = false;                  // the model has several files
    std::optional<base::Error> problem;  // why there is no config or no memory
};

uint64_t saturated(unsigned __int128 n) { return n > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(n); }

base::Result<Memory> memory_of(const gguf::File& file, const model::Config& config, const InspectOptions& options) {
    auto backend = kernels::cpu::create({});
    if (!backend) return backend.take_error();
    model::ModelOptions load;
    load.kv_type = options.kv_type == "f32" ? kernels::KvType::f32 : kernels::KvType::f16;
    load.context_length = options.context;
    load.logit_rows_max = std::clamp<uint32_t>(options.sequences, 1, limits::sequences_running);  // as serve does
    auto plan = model::plan(file, *backend.value(), load);
    if (!plan) return plan.take_error();
    Memory out;
    out.context = options.context == 0 ? config.context_length : options.context;
    out.plan = plan.value();
    const uint64_t blocks_of_one = (uint64_t{out.context} + limits::kv_block_tokens - 1) / limits::kv_block_tokens;
    out.kv_blocks = blocks_of_one * options.sequences;
    const auto kv_bytes = static_cast<unsigned __int128>(out.kv_blocks) * out.plan.kv_block_bytes;
    out.kv_bytes = saturated(kv_bytes);
    out.total_bytes = saturated(kv_bytes + out.plan.fixed_bytes());
    return out;
}

Report examine(const gguf::File& file, const InspectOptions& options) {
    Report report;
    report.split = !file.tensors().empty() && !file.tensors()[0].part.empty();
    for (const gguf::TensorInfo& tensor : file.tensors()) {
        for (TypeTotal* total : {&report.totals[static_cast<size_t>(tensor.type)], &report.all}) {
            total->tensors += 1;
            total->parameters += tensor.n_elements();
            total->bytes += tensor.data.size();
        }
    }
    auto config = model::read_config(file);
    if (!config) {
        report.problem = config.take_error();
        return report;
    }
    report.config = config.value();
    auto memory = memory_of(file, config.value(), options);
    if (memory)
        report.memory = memory.value();
    else
        report.problem = memory.take_error();
    // Only when a server could otherwise load it: a file of weights without a tokenizer is worth looking at.
    if (!report.problem)
        if (auto tokenizer = text::Tokenizer::from_gguf(file); !tokenizer) report.problem = tokenizer.take_error();
    return report;
}

// --- Values ---------------------------------------------------------------------------------------------------------

// Calls each(value) for the first elements of an array.
template <typename Each>
void for_first(const gguf::Array& array, Each&& each) {
    gguf::Array head = array;
    head.count = std::min(array.count, elements_shown);
    if (array.element_type == gguf::ValueType::string) {
        for (const std::string_view text : gguf::strings(head)) each(gguf::Value{array.element_type, text});
    } else {
        for (uint64_t i = 0; i < head.count; ++i) each(gguf::element(array, i));
    }
}

// Calls each(data) with a number, a flag or a text. A float was widened by the parser; as a float again its shortest text
// is the one that the author of the file wrote.
template <typename Each>
void visit_plain(const gguf::Value& value, Each&& each) {
    if (value.type == gguf::ValueType::f32) return each(static_cast<float>(std::get<double>(value.data)));
    std::visit(
        [&](const auto& data) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(data)>, gguf::Array>) each(data);
        },
        value.data);
}

template <std::floating_point T>
std::string plain_text(T number) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
    return {buffer, end};
}
std::string plain_text(bool flag) { return flag ? "true" : "false"; }
std::string plain_text(uint64_t number) { return std::to_string(number); }
std::string plain_text(int64_t number) { return std::to_string(number); }
std::string plain_text(std::string_view text) { return cat('"', printable(text, text_bytes_shown), '"'); }

std::string type_text(const gguf::Value& value) {
    const auto* array = std::get_if<gguf::Array>(&value.data);
    if (!array) return std::string(gguf::type_name(value.type));
    return cat(gguf::type_name(array->element_type), "[", array->count, "]");
}

std::string value_text(const gguf::Value& value) {
    std::string out;
    if (const auto* array = std::get_if<gguf::Array>(&value.data)) {
        for_first(*array, [&](const gguf::Value& element) { out += cat(out.empty() ? "" : ", ", value_text(element)); });
        return cat("[", out, array->count > elements_shown ? ", ...]" : "]");
    }
    visit_plain(value, [&](const auto& data) { out = plain_text(data); });
    return out;
}

// --- Text form ------------------------------------------------------------------------------------------------------

// 98362432 -> "98,362,432"
std::string grouped(uint64_t number) {
    const std::string digits = std::to_string(number);
    std::string out;
    for (size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string bytes_text(uint64_t bytes) {
    constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    std::string out = cat(grouped(bytes), bytes == 1 ? " byte" : " bytes");
    if (bytes == UINT64_MAX) return "more than 2^64 bytes";
    double scaled = static_cast<double>(bytes);
    size_t unit = 0;
    for (scaled /= 1024; scaled >= 1024; scaled /= 1024) ++unit;
    if (bytes < 10'000) return out;
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, scaled, std::chars_format::fixed, 1).ptr;
    return cat(out, " (", std::string_view(buffer, static_cast<size_t>(end - buffer)), ' ', units[unit], ')');
}

std::string shape_text(const gguf::TensorInfo& tensor) {
    std::string out = std::to_string(tensor.dims[0]);
    for (uint32_t d = 1; d < tensor.n_dims; ++d) out += cat(" x ", tensor.dims[d]);
    return out;
}

// Rows of cells as columns: all but the last padded to the widest, those in `right` to the right.
void print_columns(std::ostream& out, const std::vector<std::vector<std::string>>& rows, std::string_view right = {}) {
    std::vector<size_t> widths;
    for (const auto& row : rows)
        for (size_t c = 0; c < row.size(); ++c) {
            if (widths.size() <= c) widths.resize(c + 1);
            widths[c] = std::max(widths[c], row[c].size());
        }
    for (const auto& row : rows) {
        std::string line = "  ";
        for (size_t c = 0; c < row.size(); ++c) {
            const std::string pad(widths[c] - row[c].size(), ' ');
            const bool to_right = c < right.size() && right[c] == 'r';
            line += to_right ? pad + row[c] : c + 1 < row.size() ? row[c] + pad : row[c];
            if (c + 1 < row.size()) line += "  ";
        }
        out << line << '\n';
    }
}

void print_text(const gguf::File& file, const Report& report, const InspectOptions& options, std::ostream& out) {
    std::vector<std::vector<std::string>> rows;
    out << "metadata (" << file.metadata().size() << ")\n";
    for (const auto& [key, value] : file.metadata()) rows.push_back({printable(key), type_text(value), value_text(value)});
    print_columns(out, rows);

    out << "\ntensors (" << file.tensors().size() << "): name, type, shape (row length first), offset, bytes"
        << (report.split ? ", file\n" : "\n");
    rows.clear();
    for (const gguf::TensorInfo& tensor : file.tensors()) {
        rows.push_back({printable(tensor.name), std::string(quant::info(tensor.type).name), shape_text(tensor), std::to_string(tensor.offset),
                        std::to_string(tensor.data.size())});
        if (!tensor.part.empty()) rows.back().emplace_back(tensor.part);
    }
    print_columns(out, rows, "lllrr");

    out << "\ntypes: tensors, parameters, bytes\n";
    rows.clear();
    for (const quant::TypeInfo& row : quant::type_infos) {
        const TypeTotal& total = report.totals[static_cast<size_t>(row.type)];
        if (total.tensors > 0) rows.push_back({std::string(row.name), grouped(total.tensors), grouped(total.parameters), grouped(total.bytes)});
    }
    rows.push_back({"all", grouped(report.all.tensors), grouped(report.all.parameters), grouped(report.all.bytes)});
    print_columns(out, rows, "lrrr");

    out << "\nmodel\n";
    rows.clear();
    rows.push_back({"file", printable(options.path, 200)});
    rows.push_back({"size", bytes_text(file.size_bytes())});
    rows.push_back({"format", cat("GGUF v", file.version(), ", alignment ", file.alignment())});
    for (const auto& [label, key] : {std::pair{"name", "general.name"}, {"architecture", "general.architecture"}})
        if (auto text = file.get_string(key)) rows.push_back({label, printable(text.value())});
    rows.push_back({"parameters", grouped(report.all.parameters)});
    if (report.config) {
        const model::Config& c = *report.config;
        rows.push_back({"layers", std::to_string(c.n_layers)});
        rows.push_back({"width", cat(c.n_embd, ", feed-forward ", c.n_ff)});
        rows.push_back({"heads", cat(c.n_heads, " of ", c.head_dim, ", keys and values ", c.n_kv_heads)});
        rows.push_back({"vocabulary", grouped(c.n_vocab)});
        rows.push_back({"context", cat(grouped(c.context_length), " tokens")});
        rows.push_back({"KV per token", cat(bytes_text(kernels::cpu::kv_block_bytes(c.kv_shape(kernels::KvType::f16)) / limits::kv_block_tokens), " as f16, ",
                                            bytes_text(kernels::cpu::kv_block_bytes(c.kv_shape(kernels::KvType::f32)) / limits::kv_block_tokens), " as f32")});
    }
    print_columns(out, rows);

    if (report.memory) {
        const Memory& m = *report.memory;
        out << "\nmemory for " << options.sequences << (options.sequences == 1 ? " sequence" : " sequences") << " of " << grouped(m.context)
            << " tokens at once, KV as " << options.kv_type << '\n';
        rows = {{"weights, repacked", bytes_text(m.plan.weights_bytes)},
                {"activations and scratch", bytes_text(m.plan.activations_bytes + m.plan.scratch_bytes)},
                {"KV", cat(bytes_text(m.kv_bytes), " in ", grouped(m.kv_blocks), " blocks of ", limits::kv_block_tokens, " tokens")},
                {"total", bytes_text(m.total_bytes)}};
        print_columns(out, rows);
    }
    if (report.problem) out << "\nhearth cannot serve this file: " << report.problem->message << '\n';
}

// --- JSON form ------------------------------------------------------------------------------------------------------

void write_total(json::Writer& w, const TypeTotal& total) {
    w.member("tensors", total.tensors).member("parameters", total.parameters).member("bytes", total.bytes);
}

void write_value(json::Writer& w, const gguf::Value& value) {
    w.begin_object().member("type", gguf::type_name(value.type)).member("offset", value.offset);
    if (const auto* array = std::get_if<gguf::Array>(&value.data)) {
        w.member("element_type", gguf::type_name(array->element_type)).member("count", array->count).key("first").begin_array();
        for_first(*array, [&](const gguf::Value& element) { visit_plain(element, [&](const auto& data) { w.value(data); }); });
        w.end_array();
    } else {
        visit_plain(value, [&](const auto& data) { w.member("value", data); });
    }
    w.end_object();
}

void write_json(const gguf::File& file, const std::vector<std::string>& paths, const Report& report, const InspectOptions& options, std::string& text) {
    json::Writer w(text);
    w.begin_object();
    w.key("file").begin_object().member("path", options.path).member("bytes", file.size_bytes());
    w.member("version", file.version()).member("alignment", file.alignment());
    if (report.split) {
        w.key("parts").begin_array();
        for (const std::string& path : paths) w.value(path);
        w.end_array();
    }
    w.end_object();
    w.key("metadata").begin_object();
    for (const auto& [key, value] : file.metadata()) {
        w.key(key);
        write_value(w, value);
    }
    w.end_object().key("tensors").begin_array();
    for (const gguf::TensorInfo& tensor : file.tensors()) {
        w.begin_object().member("name", tensor.name).member("type", quant::info(tensor.type).name).key("shape").begin_array();
        for (uint32_t d = 0; d < tensor.n_dims; ++d) w.value(tensor.dims[d]);
        w.end_array().member("offset", tensor.offset).member("bytes", uint64_t{tensor.data.size()});
        if (report.split) w.member("file", tensor.part);
        w.end_object();
    }
    w.end_array().key("types").begin_object();
    for (const quant::TypeInfo& row : quant::type_infos) {
        const TypeTotal& total = report.totals[static_cast<size_t>(row.type)];
        if (total.tensors == 0) continue;
        w.key(row.name).begin_object();
        write_total(w, total);
        w.end_object();
    }
    w.end_object().key("total").begin_object();
    write_total(w, report.all);
    w.end_object();
    w.key("model");
    if (report.config) {
        const model::Config& c = *report.config;
        w.begin_object().member("layers", c.n_layers).member("embedding_length", c.n_embd).member("feed_forward_length", c.n_ff);
        w.member("heads", c.n_heads).member("kv_heads", c.n_kv_heads).member("head_dim", c.head_dim);
        w.member("vocabulary", c.n_vocab).member("context_length", c.context_length).key("kv_bytes_per_token").begin_object();
        for (const kernels::KvType type : {kernels::KvType::f16, kernels::KvType::f32})
            w.member(kernels::name(type), kernels::cpu::kv_block_bytes(c.kv_shape(type)) / limits::kv_block_tokens);
        w.end_object().end_object();
    } else {
        w.value(nullptr);
    }
    w.key("memory");
    if (report.memory) {
        const Memory& m = *report.memory;
        w.begin_object().member("context", m.context).member("sequences", options.sequences).member("kv_type", options.kv_type);
        w.member("weights_bytes", m.plan.weights_bytes).member("activations_bytes", m.plan.activations_bytes);
        w.member("scratch_bytes", m.plan.scratch_bytes).member("kv_blocks", m.kv_blocks).member("kv_bytes", m.kv_bytes);
        w.member("total_bytes", m.total_bytes).end_object();
    } else {
        w.value(nullptr);
    }
    w.key("problem");
    if (report.problem)
        w.value(report.problem->message);
    else
        w.value(nullptr);
    w.end_object();
    CHECK(w.complete());
}

}  // namespace

int inspect_command(const InspectOptions& options, std::ostream& out, std::ostream& err, const base::FileSystem& files) {
    const auto refuse = [&](const base::Error& error) {
        err << "hearth: " << error.message << '\n';
        return 2;
    };
    if (options.kv_type != "f16" && options.kv_type != "f32")
        return refuse({base::ErrorCode::invalid_argument, cat("KV type is ", printable(options.kv_type), "; allowed: f16, f32"), ""});
    auto opened = gguf::ModelFiles::open(options.path, files);
    if (!opened) return refuse(opened.error());
    const gguf::File& file = opened.value().file();
    if (options.check) return print_checks(opened.value(), options.json, out, err);
    const Report report = examine(file, options);
    // A bad option is the caller's, not the file's: no output that could be taken for an answer.
    if (report.problem && report.problem->code == base::ErrorCode::invalid_argument) return refuse(*report.problem);
    if (options.json) {
        std::string text;
        write_json(file, opened.value().paths(), report, options, text);
        out << text << '\n';
    } else {
        print_text(file, report, options, out);
    }
    if (auto unchanged = opened.value().check_unchanged(); !unchanged) return refuse(unchanged.error());
    if (report.problem && report.problem->code != base::ErrorCode::unsupported)
        return refuse(in_file(*report.problem, options.path));
    return 0;
}

}  // namespace commands
