#include "quant/recipe.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace quant {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// N of "blk.N.", or -1.
int64_t layer_of(std::string_view name) {
    if (!name.starts_with("blk.")) return -1;
    int64_t layer = -1;
    for (size_t i = 4; i < name.size() && i < 12; ++i) {
        if (name[i] == '.') return layer;
        if (name[i] < '0' || name[i] > '9') return -1;
        layer = std::max<int64_t>(layer, 0) * 10 + (name[i] - '0');
    }
    return -1;
}

enum class Role { other, output, embedding, values, keys, queries, attention_output, ffn_up, ffn_gate, ffn_down };

// The first row whose text a tensor's name contains says its role.
struct RoleRow {
    std::string_view part;
    Role role;
};
constexpr RoleRow role_rows[] = {
    {"attn_qkv.weight", Role::values},  // what carries values suffers most from rounding: fused ones count as values
    {"attn_kv_b.weight", Role::values},
    {"attn_v.weight", Role::values},
    {"attn_k.weight", Role::keys},
    {"attn_q.weight", Role::queries},
    {"attn_output.weight", Role::attention_output},
    {"ffn_up", Role::ffn_up},
    {"ffn_gate", Role::ffn_gate},
    {"ffn_down", Role::ffn_down},
};

Role role_of(std::string_view name) {
    if (name == "output.weight") return Role::output;
    if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::embedding;
    for (const RoleRow& row : role_rows)
        if (has(name, row.part)) return row.role;
    return Role::other;
}

// Small or delicate matrices that are never quantized, by a part of their names.
constexpr std::string_view kept_parts[] = {
    "_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj", "ssm_conv1d",
    "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "time_mix_first.weight", "time_mix_w0.weight",
    "time_mix_w1.weight", "time_mix_w2.weight", "time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight",
    "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight", "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight", "attn_rel_b.weight", ".position_embd", "sam.pos_embd", "sam.neck.",
    "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger", "a.rvq.codebook", "mm.a.code_embd",
};

bool is_kept(const RecipeTensor& tensor) {
    const bool matrix = tensor.dims[1] > 1 || tensor.dims[2] > 1 || tensor.dims[3] > 1;
    if (!matrix || !tensor.name.ends_with("weight")) return true;
    if (tensor.name == "position_embd.weight" || tensor.name == "token_types.weight") return true;
    return std::any_of(std::begin(kept_parts), std::end(kept_parts), [&](std::string_view part) { return has(tensor.name, part); });
}

// The layers that get more bits in the middle mixes: the first and the last eighth, and every third between.
bool gets_more_bits(int64_t layer, int64_t n_layers) {
    return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

class Mixer {
  public:
    Mixer(const Recipe& recipe, const RecipeModel& model, std::span<const RecipeTensor> tensors) : recipe_(recipe), model_(model) {
        for (const RecipeTensor& tensor : tensors) {
            const Role role = role_of(tensor.name);
            n_values_ += role == Role::values;
            if (role == Role::output) tied_ = false;
        }
        wide_sharing_ = model.n_kv_heads > 0 && model.n_heads / model.n_kv_heads >= 4;
        falcon_ = model.architecture == "falcon";
    }

    // To be asked in the order of the layers: some choices count the tensors of a role.
    Type mixed(const RecipeTensor& tensor) {
        const Role role = role_of(tensor.name);
        if (role == Role::output || (tied_ && role == Role::embedding)) return for_output(tensor);
        switch (role) {
            case Role::values: return for_values(value_index_++);
            case Role::keys: return model_.n_experts == 8 ? Type::q8_0 : recipe_.base;
            case Role::ffn_down: {
                const int64_t counted = down_index_++;
                // The tensors of experts are not in the order of the layers in every file: their names say the layer.
                return for_ffn_down(model_.n_experts > 1 ? layer_of(tensor.name) : counted);
            }
            case Role::attention_output: return for_attention_output();
            default: return recipe_.base;
        }
    }

  private:
    Type for_output(const RecipeTensor& tensor) const {
        if (falcon_ || tensor.dims[0] % info(recipe_.base).block_elements != 0) return Type::q8_0;
        return recipe_.base == Type::q8_0 ? Type::q8_0 : Type::q6_k;
    }

    Type for_values(int64_t index) const {
        Type type = recipe_.base;
        switch (recipe_.id) {
            case RecipeId::q2_k: type = wide_sharing_ ? Type::q4_k : Type::q3_k; break;
            case RecipeId::q2_k_s: type = wide_sharing_ ? Type::q4_k : type; break;
            case RecipeId::q3_k_m: type = index < 2 ? Type::q5_k : Type::q4_k; break;
            case RecipeId::q3_k_l: type = Type::q5_k; break;
            case RecipeId::q4_k_s: type = index < 4 ? Type::q5_k : type; break;
            case RecipeId::q4_k_m:
            case RecipeId::q5_k_m: type = gets_more_bits(index, n_values_) ? Type::q6_k : type; break;
            case RecipeId::iq4_nl:
            case RecipeId::iq4_xs: type = wide_sharing_ ? Type::q5_k : type; break;
            default: break;
        }
        // Models of the 70B kind share one value head among eight: a small tensor with a large part.
        if (is_70b() && (type == Type::q3_k || type == Type::q4_k)) type = Type::q5_k;
        return model_.n_experts == 8 ? Type::q8_0 : type;
    }

    Type for_ffn_down(int64_t layer) const {
        const int64_t n = model_.n_layers;
        const bool first_eighth = layer < n / 8;
        switch (recipe_.id) {
            case RecipeId::q2_k: return Type::q3_k;
            case RecipeId::q2_k_s: return first_eighth ? Type::q4_k : recipe_.base;
            case RecipeId::q3_k_m:
                if (layer < n / 16) return Type::q5_k;
                return !falcon_ || gets_more_bits(layer, n) ? Type::q4_k : Type::q3_k;
            case RecipeId::q3_k_l: return falcon_ ? Type::q4_k : Type::q5_k;
            case RecipeId::q4_k_m:
                if (falcon_) return layer < n / 16 ? Type::q6_k : gets_more_bits(layer, n) ? Type::q5_k : Type::q4_k;
                return gets_more_bits(layer, n) ? Type::q6_k : Type::q4_k;
            case RecipeId::q4_k_s: return first_eighth && !falcon_ ? Type::q5_k : Type::q4_k;
            case RecipeId::q5_k_m: return gets_more_bits(layer, n) ? Type::q6_k : Type::q5_k;
            case RecipeId::iq4_nl:
            case RecipeId::iq4_xs: return first_eighth && !model_.has_importance ? Type::q5_k : recipe_.base;
            // Importance can lead these two astray in the first layers; an offset helps.
            case RecipeId::q4_0: return first_eighth && model_.has_importance ? Type::q4_1 : recipe_.base;
            case RecipeId::q5_0: return first_eighth && model_.has_importance ? Type::q5_1 : recipe_.base;
            default: return recipe_.base;
        }
    }

    Type for_attention_output() const {
        if (falcon_) return recipe_.id == RecipeId::q3_k_l ? Type::q4_k : recipe_.base;
        if (model_.n_experts == 8) {
            switch (recipe_.id) {
                case RecipeId::q2_k:
                case RecipeId::q3_k_s:
                case RecipeId::q3_k_m:
                case RecipeId::q4_k_s:
                case RecipeId::q4_k_m:
                case RecipeId::iq4_nl:
                case RecipeId::iq4_xs: return Type::q5_k;
                default: return recipe_.base;
            }
        }
        switch (recipe_.id) {
            case RecipeId::q2_k: return Type::q3_k;
            case RecipeId::q3_k_m: return Type::q4_k;
            case RecipeId::q3_k_l: return Type::q5_k;
            default: return recipe_.base;
        }
    }

    bool is_70b() const {
        return model_.n_layers == 80 && ((model_.architecture == "llama" && model_.n_heads != model_.n_kv_heads) || model_.architecture == "qwen2");
    }

    const Recipe& recipe_;
    const RecipeModel& model_;
    int64_t n_values_ = 0, value_index_ = 0, down_index_ = 0;
    bool tied_ = true, wide_sharing_ = false, falcon_ = false;
};

// A format whose blocks fit rows that are no multiple of 256.
Type smaller_blocks(Type type) {
    switch (type) {
        case Type::q2_k:
        case Type::q3_k: return Type::q4_0;
        case Type::q4_k: return Type::q5_0;
        case Type::q5_k: return Type::q5_1;
        case Type::q6_k: return Type::q8_0;
        case Type::iq4_xs: return Type::iq4_nl;
        default: return type;
    }
}

bool fits(Type type, uint64_t row) { return row % info(type).block_elements == 0; }

}  // namespace

const Recipe* find_recipe(std::string_view name) {
    std::string_view wanted = name;
    const auto same = [](std::string_view a, std::string_view b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return (x >= 'a' && x <= 'z' ? x - 32 : x) == y; });
    };
    for (const auto& [alias, meant] : {std::pair{"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}})
        if (same(name, alias)) wanted = meant;
    for (const Recipe& recipe : recipes)
        if (same(wanted, recipe.name)) return &recipe;
    return nullptr;
}

std::vector<Choice> choose_types(const Recipe& recipe, const RecipeModel& model, std::span<const RecipeTensor> tensors) {
    std::vector<size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::vector<int64_t> layers(tensors.size());
    std::transform(tensors.begin(), tensors.end(), layers.begin(), [](const RecipeTensor& tensor) { return layer_of(tensor.name); });
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return layers[a] != layers[b] ? layers[a] < layers[b] : tensors[a].name < tensors[b].name;
    });
    Mixer mixer(recipe, model, tensors);
    const bool floating = info(recipe.base).block_elements == 1;
    std::vector<Choice> out(tensors.size());
    for (const size_t i : order) {
        const RecipeTensor& tensor = tensors[i];
        Choice& choice = out[i];
        choice.type = tensor.type;
        if (is_kept(tensor)) continue;
        choice.type = floating ? recipe.base : mixer.mixed(tensor);
        if (!fits(choice.type, tensor.dims[0])) {
            choice.fallback = true;
            choice.type = smaller_blocks(choice.type);
            if (!fits(choice.type, tensor.dims[0])) choice.type = Type::f16;
        }
        const Role role = role_of(tensor.name);
        choice.wants_importance = recipe.id == RecipeId::q2_k_s && choice.type == Type::q2_k && role != Role::output && role != Role::embedding;
    }
    return out;
}

}  // namespace quant
