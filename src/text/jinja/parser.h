// Source to Template by recursive descent, no deeper than limits::template_depth.
#pragma once

#include <memory>
#include <string_view>

#include "text/jinja/ast.h"

namespace text::jinja {

// Throws Failure with a position (in the normalized source). `source` is valid UTF-8.
std::unique_ptr<Template> parse_template(std::string_view source);

}  // namespace text::jinja
