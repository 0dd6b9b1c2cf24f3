#include "text/builtin_templates.h"

namespace text {
namespace {

struct Row {
    std::string_view name, source;
};

// The forms as the families' model cards give them; content is trimmed where theirs is.
constexpr Row rows[] = {
    {"chatml",
     "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
     "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"},
    {"gemma",
     "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ 'model' if message.role == 'assistant' else 'user' }}\n"
     "{{ message.content | trim }}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"},
    {"llama3",
     "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
     "{{ message.content | trim }}<|eot_id|>{% endfor %}"
     "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"},
};

}  // namespace

std::optional<std::string_view> builtin_template(std::string_view name) {
    for (const Row& row : rows)
        if (row.name == name) return row.source;
    return std::nullopt;
}

std::string builtin_template_names() {
    std::string out;
    for (const Row& row : rows) out += (out.empty() ? "" : ", ") + std::string(row.name);
    return out;
}

}  // namespace text
