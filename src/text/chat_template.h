// A model's chat template: an interpreter for the Jinja that real models carry, built for breadth.
// A template is hostile input: limits on source, steps, depth, output and time (base/limits.h); no I/O, no attribute
// reaches outside the given values; dunder names are errors. Const and thread safe after parse().
// Every string remembers which of its bytes came from the caller: render() returns segments, so that special
// tokens are parsed in the template's own text only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "text/tokenizer.h"
#include "text/value.h"

namespace text {

class ChatTemplate {
  public:
    // Errors name line and column. transformers' settings: trim_blocks and lstrip_blocks on.
    static base::Result<std::unique_ptr<ChatTemplate>> parse(std::string source);
    virtual ~ChatTemplate() = default;

    // `variables`: messages, tools, add_generation_prompt, bos_token, eos_token, and whatever the caller adds.
    // Strings under messages, tools and other caller-given values are user text; bos_token and eos_token are not
    // (the caller names them in `trusted`). raise_exception(text) is an invalid_argument error with that text.
    virtual base::Result<std::vector<Segment>> render(const ValueObject& variables, std::span<const std::string_view> trusted,
                                                      const base::Clock& clock) const = 0;
    virtual std::string_view source() const = 0;
};

// Joins segments: what /apply-template shows.
std::string to_string(std::span<const Segment> segments);

}  // namespace text
