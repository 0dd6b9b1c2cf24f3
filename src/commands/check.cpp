#include "commands/check.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "base/limits.h"
#include "base/message.h"
#include "json/writer.h"

namespace commands {
namespace {

using base::cat;

constexpr Check rows[] = {
    {"family", "architecture and metadata that the family can have", check_configuration},
    {"ranges", "context and rope values that no model of any family has", check_ranges},
    {"shapes", "tensors that are missing, don't fit the family, or that nothing reads", check_shapes},
    {"vocabulary", "tokens missing or twice, lists of the wrong length", check_vocabulary},
    {"special-tokens", "ids out of range or of tokens of another kind", check_special_tokens},
    {"pre-tokenizer", "a name that is unknown, or that cuts the vocabulary's own tokens", check_pre_tokenizer},
    {"template", "a chat template that fails or loses what it is given", check_chat_template},
    {"end-of-turn", "answers that would not end where the template ends a turn", check_end_of_turn},
    {"file-type", "general.file_type that doesn't fit the tensors", check_file_type},
    {"numbers", "weights or scales that are NaN or infinite, tensors of zeros", check_numbers},
};

constexpr std::string_view names[] = {"note", "warning", "error"};
std::string_view name_of(Severity severity) { return names[static_cast<size_t>(severity)]; }

std::string count_text(uint64_t n, std::string_view what) { return cat(n, " ", what, n == 1 ? "" : "s"); }

}  // namespace

CheckedModel::CheckedModel(const gguf::File& gguf_file, const base::Clock& system_clock) : file(gguf_file), clock(system_clock) {
    if (auto read = model::read_config(file))
        config = std::move(read).value();
    else
        config_problem = read.take_error();
    if (auto loaded = text::Tokenizer::from_gguf(file))
        tokenizer = std::move(loaded).value();
    else
        tokenizer_problem = loaded.take_error();
    if (!file.find("tokenizer.chat_template")) return;
    auto source = file.get_string("tokenizer.chat_template");
    if (!source) {
        template_problem = source.take_error();
        return;
    }
    if (auto parsed = text::ChatTemplate::parse(std::string(source.value())))
        chat_template = std::move(parsed).value();
    else
        template_problem = parsed.take_error();
}

void Findings::add(Severity severity, std::string message) {
    if (++of_check_ <= limit_a_check) {
        list_.push_back({severity, check_, std::move(message)});
        return;
    }
    ++unsaid_;
    worst_unsaid_ = std::max(worst_unsaid_, severity);
}

void Findings::begin(std::string_view check) {
    check_ = check;
    worst_unsaid_ = Severity::note;
    of_check_ = unsaid_ = 0;
}

void Findings::end() {
    if (unsaid_ > 0) list_.push_back({worst_unsaid_, check_, cat("and ", unsaid_, " more of this kind")});
}

std::span<const Check> check_table() { return rows; }

std::vector<Finding> check_model(const CheckedModel& model) {
    Findings findings;
    for (const Check& row : rows) {
        findings.begin(row.name);
        row.run(model, findings);
        findings.end();
    }
    return findings.take();
}

int print_checks(const gguf::ModelFiles& files, bool json, std::ostream& out, std::ostream& err) {
    CheckedModel model(files.file());
    model.release = [&](std::span<const std::byte> part) { files.release(part); };
    const std::vector<Finding> findings = check_model(model);
    if (auto unchanged = files.check_unchanged(); !unchanged) {
        err << "hearth: " << unchanged.error().message << '\n';
        return 2;
    }
    std::array<uint64_t, std::size(names)> counts{};
    for (const Finding& finding : findings) ++counts[static_cast<size_t>(finding.severity)];
    const bool odd = counts[static_cast<size_t>(Severity::error)] + counts[static_cast<size_t>(Severity::warning)] > 0;
    if (json) {
        std::string text;
        json::Writer w(text);
        w.begin_object().member("path", files.path()).key("findings").begin_array();
        for (const Finding& finding : findings)
            w.begin_object().member("severity", name_of(finding.severity)).member("check", finding.check).member("message", finding.message).end_object();
        w.end_array();
        for (size_t i = std::size(names); i-- > 0;) w.member(cat(names[i], "s"), counts[i]);
        w.end_object();
        CHECK(w.complete());
        out << text << '\n';
        return odd ? 1 : 0;
    }
    for (const Finding& finding : findings) out << name_of(finding.severity) << ": " << finding.check << ": " << finding.message << '\n';
    out << base::printable(files.path(), limits::file_name_bytes_shown) << ": ";
    if (findings.empty())
        out << "nothing odd in " << count_text(files.file().metadata().size(), "metadata key") << " and " << count_text(files.file().tensors().size(), "tensor");
    else
        out << count_text(counts[2], "error") << ", " << count_text(counts[1], "warning") << ", " << count_text(counts[0], "note");
    out << '\n';
    return odd ? 1 : 0;
}

}  // namespace commands
