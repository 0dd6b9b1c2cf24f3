#include "gguf/model_files.h"

#include <algorithm>
#include <cstdio>
#include <type_traits>
#include <variant>

#include "base/limits.h"
#include "base/message.h"

namespace gguf {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::string_view suffix_form = "-00000-of-00000.gguf";

std::string shown(std::string_view path) { return base::printable(path, limits::file_name_bytes_shown); }

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

Error bad(std::string_view path, std::string_view problem, ErrorCode code = ErrorCode::bad_file) {
    return {code, cat(shown(path), ": ", problem), ""};
}

Error in_file(Error error, std::string_view path) {
    error.message = cat(shown(path), ": ", error.message);
    return error;
}

// An integer from `low` to `high`, or nothing when the key is absent.
Result<std::optional<uint64_t>> number(const File& file, std::string_view key, uint64_t low, uint64_t high) {
    const Value* value = file.find(key);
    if (!value) return std::optional<uint64_t>();
    auto got = file.get_uint(key);
    if (!got) return got.take_error();
    if (got.value() < low || got.value() > high)
        return Error{ErrorCode::bad_file, cat("metadata key '", key, "' at byte ", value->offset, " is ", got.value(), ", allowed are ", low, " to ", high), ""};
    return std::optional(got.value());
}

bool same(const Value& a, const Value& b) {
    if (a.type != b.type) return false;
    return std::visit(
        [&](const auto& left) {
            using T = std::decay_t<decltype(left)>;
            const T& right = std::get<T>(b.data);
            if constexpr (std::is_same_v<T, Array>)
                return left.element_type == right.element_type && left.count == right.count && std::ranges::equal(left.bytes, right.bytes);
            else
                return left == right;
        },
        a.data);
}

// What keeps a part of another model out: its own numbers, and metadata that says something else than the first part's.
Result<void> check_belongs(const File& first, const Split& whole, const File& part, uint64_t number, std::string_view path, std::string_view first_path) {
    const std::string of_first = cat(" in ", shown(file_name(first_path)));
    auto split = read_split(part);
    if (!split) return in_file(split.take_error(), path);
    const Split& own = split.value();
    if (!part.find("split.no") || !part.find("split.count"))
        return bad(path, cat("metadata key '", part.find("split.no") ? "split.count" : "split.no", "' is missing, expected that of part ", number + 1, " of ", whole.count));
    if (own.count != whole.count)
        return bad(path, cat("metadata key 'split.count' at byte ", part.find("split.count")->offset, " is ", own.count, ", allowed is ", whole.count, " as", of_first));
    if (own.part != number)
        return bad(path, cat("metadata key 'split.no' at byte ", part.find("split.no")->offset, " is ", own.part, ", allowed is ", number, " by the file's name"));
    if (own.tensors && whole.tensors && *own.tensors != *whole.tensors)
        return bad(path, cat("metadata key 'split.tensors.count' at byte ", part.find("split.tensors.count")->offset, " is ", *own.tensors, ", allowed is ",
                             *whole.tensors, " as", of_first));
    for (const auto& [key, value] : part.metadata()) {
        if (key.starts_with("split.") || key == "general.alignment") continue;
        const Value* original = first.find(key);
        if (original && same(*original, value)) continue;
        return bad(path, cat("metadata key '", base::printable(key), "' at byte ", value.offset, original ? " differs from that" : " is not",
                             of_first, ": this part is not of the same model"));
    }
    return {};
}

}  // namespace

Result<Split> read_split(const File& file) {
    constexpr uint64_t parts_max = 65'535;  // the keys are 16 bits wide
    Split out;
    auto count = number(file, "split.count", 1, parts_max);
    if (!count) return count.take_error();
    out.count = count.value().value_or(1);
    auto part = number(file, "split.no", 0, out.count - 1);
    if (!part) return part.take_error();
    out.part = part.value().value_or(0);
    auto tensors = number(file, "split.tensors.count", 0, limits::gguf_tensors_count);
    if (!tensors) return tensors.take_error();
    out.tensors = tensors.value();
    return out;
}

std::optional<std::string_view> split_stem(std::string_view path) {
    if (path.size() <= suffix_form.size()) return {};
    const std::string_view stem = path.substr(0, path.size() - suffix_form.size()), suffix = path.substr(stem.size());
    for (size_t i = 0; i < suffix.size(); ++i) {
        const bool fits = suffix_form[i] == '0' ? suffix[i] >= '0' && suffix[i] <= '9' : suffix[i] == suffix_form[i];
        if (!fits) return {};
    }
    return stem.back() == '/' ? std::optional<std::string_view>() : stem;
}

std::string split_path(std::string_view stem, uint64_t part, uint64_t count) {
    char suffix[64];
    std::snprintf(suffix, sizeof suffix, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(part + 1), static_cast<unsigned long long>(count));
    return cat(stem, suffix);
}

Result<ModelFiles> ModelFiles::open(const std::string& path, const base::FileSystem& files) {
    ModelFiles out;
    std::vector<File> parts;
    const auto add = [&](const std::string& part_path) -> Result<void> {
        auto view = files.open_mapped(part_path);
        if (!view) return view.take_error();
        auto parsed = File::parse(view.value()->bytes(), part_path);
        if (!parsed) return parsed.take_error();
        out.paths_.push_back(part_path);
        out.views_.push_back(std::move(view).value());
        parts.push_back(std::move(parsed).value());
        return {};
    };
    if (auto first = add(path); !first) return first.take_error();
    auto split = read_split(parts[0]);
    if (!split) return in_file(split.take_error(), path);
    const Split whole = split.value();
    if (whole.count == 1) {
        out.file_ = std::move(parts[0]);
        return out;
    }

    const std::string place = cat("is part ", whole.part + 1, " of ", whole.count, " of a split model (metadata key 'split.count' at byte ",
                                  parts[0].find("split.count")->offset, ")");
    const std::optional<std::string_view> stem = split_stem(path);
    if (whole.part != 0)
        return bad(path, cat(place, "; give the first part", stem ? cat(", ", shown(split_path(*stem, 0, whole.count))) : std::string(), ", which has the metadata"),
                   ErrorCode::unsupported);
    if (whole.count > limits::gguf_split_parts) return bad(path, cat(place, "; allowed are ", limits::gguf_split_parts, " parts"), ErrorCode::unsupported);
    if (!stem || split_path(*stem, 0, whole.count) != path)
        return bad(path, cat(place, "; its name must end in ", split_path("", 0, whole.count), ", so that the other parts can be found beside it"),
                   ErrorCode::unsupported);
    for (uint64_t i = 1; i < whole.count; ++i) {
        const std::string part_path = split_path(*stem, i, whole.count);
        if (auto added = add(part_path); !added) {
            Error error = added.take_error();
            if (error.code == ErrorCode::io) error.message += cat(" (part ", i + 1, " of ", whole.count, " of ", shown(path), ")");
            return error;
        }
        if (auto belongs = check_belongs(parts[0], whole, parts.back(), i, part_path, path); !belongs) return belongs.take_error();
    }

    // Which of two files has the tensor twice, or how many are there, is only known now.
    uint64_t tensors = 0;
    for (const File& part : parts) tensors += part.tensors().size();
    if (whole.tensors && tensors != *whole.tensors)
        return bad(path, cat("metadata key 'split.tensors.count' at byte ", parts[0].find("split.tensors.count")->offset, " is ", *whole.tensors, ", but the ",
                             whole.count, " parts have ", tensors, " tensors"));
    out.shown_.reserve(parts.size());
    for (const std::string& part_path : out.paths_) out.shown_.push_back(shown(file_name(part_path)));
    auto joined = File::join(std::move(parts), out.shown_);
    if (!joined) return in_file(joined.take_error(), path);
    out.file_ = std::move(joined).value();
    return out;
}

Result<void> ModelFiles::check_unchanged() const {
    for (const auto& view : views_)
        if (auto unchanged = view->check_unchanged(); !unchanged) return unchanged.take_error();
    return {};
}

void ModelFiles::release(std::span<const std::byte> part) const {
    const auto holds = [&](std::span<const std::byte> bytes) {
        return !std::less<>()(part.data(), bytes.data()) && std::less<>()(part.data(), bytes.data() + bytes.size());
    };
    for (const auto& view : views_)
        if (holds(view->bytes())) return view->release(part);
}

}  // namespace gguf
