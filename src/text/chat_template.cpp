#include "text/chat_template.h"

#include <algorithm>
#include <new>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"

namespace text {

namespace {

using base::cat;
using base::Error;
using base::ErrorCode;

// "chat template, line L, column C: what". Lines and columns (in characters) count from 1.
Error located(const jinja::Failure& failure, std::string_view source, uint32_t position) {
    if (position == jinja::no_position) return {failure.code, cat("chat template: ", failure.message), ""};
    const std::string_view before = source.substr(0, std::min<size_t>(position, source.size()));
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    size_t column = 1;
    for (const char c : before.substr(line_begin)) column += (c & 0xC0) != 0x80;
    return {failure.code, cat("chat template, line ", line, ", column ", column, ": ", failure.message), ""};
}

Error out_of_memory() { return {ErrorCode::unavailable, "chat template: out of memory", ""}; }

class JinjaTemplate final : public ChatTemplate {
  public:
    JinjaTemplate(std::string source, std::unique_ptr<jinja::Template> parsed) : source_(std::move(source)), template_(std::move(parsed)) {}

    base::Result<std::vector<Segment>> render(const ValueObject& variables, std::span<const std::string_view> trusted,
                                              const base::Clock& clock) const override {
        uint32_t position = jinja::no_position;
        try {
            jinja::Interpreter interpreter(*template_, variables, trusted, clock);
            try {
                interpreter.run();
                return segments(interpreter.output());
            } catch (const jinja::Failure&) {
                position = interpreter.position();
                throw;
            }
        } catch (const jinja::Failure& failure) {
            if (failure.raised_by_template) return Error{failure.code, failure.message, ""};
            return located(failure, template_->source, failure.position != jinja::no_position ? failure.position : position);
        } catch (const std::bad_alloc&) { return out_of_memory(); }
    }

    std::string_view source() const override { return source_; }

  private:
    static std::vector<Segment> segments(const jinja::Builder& output) {
        std::vector<Segment> segments;
        const std::string_view text = output.text();
        size_t at = 0;
        const auto add = [&](size_t end, bool from_template) {
            if (end > at) segments.push_back({std::string(text.substr(at, end - at)), from_template});
            at = end;
        };
        for (const jinja::UserRange& range : output.user()) {
            add(range.begin, true);
            add(range.end, false);
        }
        add(text.size(), true);
        return segments;
    }

    std::string source_;
    std::unique_ptr<jinja::Template> template_;
};

}  // namespace

base::Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string source) {
    if (source.size() > limits::template_bytes) {
        return Error{ErrorCode::too_large, cat("chat template: ", source.size(), " bytes; ", limits::template_bytes, " are allowed"), ""};
    }
    const size_t valid = base::utf8::valid_prefix(source);
    if (valid < source.size()) { return Error{ErrorCode::invalid_argument, cat("chat template: byte ", valid, " is not valid UTF-8"), ""}; }
    try {
        auto parsed = jinja::parse_template(source);
        return std::unique_ptr<ChatTemplate>(new JinjaTemplate(std::move(source), std::move(parsed)));
    } catch (const jinja::Failure& failure) {
        return located(failure, jinja::normalize_source(source), failure.position);
    } catch (const std::bad_alloc&) { return out_of_memory(); }
}

std::string to_string(std::span<const Segment> segments) {
    std::string text;
    for (const Segment& segment : segments) text += segment.text;
    return text;
}

}  // namespace text
