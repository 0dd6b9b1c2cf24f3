// Python's two ways to format: 'a %s' % b and 'a {}'.format(b).
#pragma once

#include "text/jinja/interpreter.h"

namespace text::jinja {

// `args`: a tuple of values, a dict for %(name)s, or one value.
Value format_percent(Interpreter& in, const Str& format, const Value& args);
Value format_braces(Interpreter& in, const Str& format, Args& args);

// format(value, spec). `user`: a user wrote some of the spec, so the fill characters are a user's too.
void format_value(Interpreter& in, Builder& out, const Value& value, std::string_view spec, bool user);

}  // namespace text::jinja
