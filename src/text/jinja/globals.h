// What globals and methods share.
#pragma once

#include <string_view>

#include "text/jinja/interpreter.h"

namespace text::jinja {

// dict(...) and dict.update(...): a mapping or pairs by position, then names. `what` is named in messages.
void update_dict(Interpreter& in, Dict& dict, Args& args, std::string_view what);

}  // namespace text::jinja
