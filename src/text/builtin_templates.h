// Chat templates by name, for files that carry none. Never chosen unasked: a prompt in another model's form answers badly
// and says nothing about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace text {

// Jinja source; nothing for an unknown name.
std::optional<std::string_view> builtin_template(std::string_view name);
// "chatml, gemma, llama3"
std::string builtin_template_names();

}  // namespace text
