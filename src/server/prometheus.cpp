#include "server/prometheus.h"

#include <charconv>
#include <cmath>

namespace server {
namespace {

void append_number(std::string& out, double value) {
    if (std::isinf(value)) {
        out += value > 0 ? "+Inf" : "-Inf";
        return;
    }
    char text[64];
    // Counts as plain integers, everything else as the shortest text that reads back equal.
    const bool whole = value == std::floor(value) && std::fabs(value) < 9e15;
    const auto end = whole ? std::to_chars(text, text + sizeof text, static_cast<int64_t>(value)).ptr
                           : std::to_chars(text, text + sizeof text, value).ptr;
    out.append(text, end);
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
    out.append(name).append("=\"");
    for (const char c : value) {
        if (c == '\\' || c == '"')
            out += '\\', out += c;
        else if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    out += '"';
}

}  // namespace

void PrometheusText::family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void PrometheusText::line(std::string_view suffix, std::initializer_list<Label> labels, std::string_view le, double value) {
    out_.append(name_).append(suffix);
    if (labels.size() > 0 || !le.empty()) {
        out_ += '{';
        bool first = true;
        for (const auto& [name, text] : labels) {
            if (!std::exchange(first, false)) out_ += ',';
            append_label(out_, name, text);
        }
        if (!le.empty()) {
            if (!first) out_ += ',';
            append_label(out_, "le", le);
        }
        out_ += '}';
    }
    out_ += ' ';
    append_number(out_, value);
    out_ += '\n';
}

void PrometheusText::sample(double value, std::initializer_list<Label> labels) { line("", labels, "", value); }

void PrometheusText::one(std::string_view name, std::string_view type, std::string_view help, double value,
                         std::initializer_list<Label> labels) {
    family(name, type, help);
    sample(value, labels);
}

void PrometheusText::histogram(std::string_view name, std::string_view help, const engine::Histogram& values,
                               std::initializer_list<Label> labels) {
    family(name, "histogram", help);
    // Read once: the buckets, their sum and the count must agree within one answer.
    uint64_t cumulative = 0;
    for (size_t i = 0; i < values.bounds().size(); ++i) {
        cumulative += values.bucket(i);
        std::string le;
        append_number(le, values.bounds()[i]);
        line("_bucket", labels, le, static_cast<double>(cumulative));
    }
    cumulative += values.bucket(values.bounds().size());
    line("_bucket", labels, "+Inf", static_cast<double>(cumulative));
    line("_sum", labels, "", values.sum());
    line("_count", labels, "", static_cast<double>(cumulative));
}

}  // namespace server
