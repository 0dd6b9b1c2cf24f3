#include "text/jinja/builder.h"

#include <algorithm>

#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/failure.h"

namespace text::jinja {

namespace {

// The first range that ends after `at`.
UserRanges::const_iterator first_range_after(const UserRanges& ranges, size_t at) {
    return std::partition_point(ranges.begin(), ranges.end(), [&](const UserRange& range) { return range.end <= at; });
}

}  // namespace

Builder::~Builder() {
    if (!output_) heap_.give_bytes(text_.size());
}

void Builder::grow(size_t bytes) {
    if (!output_) {
        heap_.take_bytes(bytes);
        return;
    }
    if (bytes > limits::template_output_bytes - text_.size()) {
        fail_limit(base::cat("the rendered prompt is longer than ", limits::template_output_bytes, " bytes"));
    }
    heap_.work(bytes);
}

void Builder::mark(size_t begin, size_t end) {
    if (begin == end) return;
    if (!user_.empty() && user_.back().end == begin) {
        user_.back().end = static_cast<uint32_t>(end);
    } else {
        user_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    }
}

void Builder::add(std::string_view text, bool user) {
    grow(text.size());
    const size_t at = text_.size();
    text_ += text;
    if (user) mark(at, text_.size());
}

void Builder::add(const Str& str, size_t begin, size_t end) {
    grow(end - begin);
    const size_t at = text_.size();
    text_.append(str.text, begin, end - begin);
    for (auto it = first_range_after(str.user, begin); it != str.user.end() && it->begin < end; ++it) {
        mark(at + std::max<size_t>(it->begin, begin) - begin, at + std::min<size_t>(it->end, end) - begin);
    }
}

void Builder::add(const Builder& other) {
    grow(other.text_.size());
    const size_t at = text_.size();
    text_ += other.text_;
    for (const UserRange& range : other.user_) mark(at + range.begin, at + range.end);
}

Value Builder::finish() {
    if (!output_) heap_.give_bytes(text_.size());
    std::string text;
    text.swap(text_);
    UserRanges user;
    user.swap(user_);
    return make_string(heap_, std::move(text), std::move(user));
}

Value substring(Heap& heap, const Str& str, size_t begin, size_t end) {
    UserRanges user;
    for (auto it = first_range_after(str.user, begin); it != str.user.end() && it->begin < end; ++it) {
        user.push_back({static_cast<uint32_t>(std::max<size_t>(it->begin, begin) - begin),
                        static_cast<uint32_t>(std::min<size_t>(it->end, end) - begin)});
    }
    return make_string(heap, std::string(str.text.substr(begin, end - begin)), std::move(user));
}

bool has_user_bytes(const Str& str, size_t begin, size_t end) {
    const auto it = first_range_after(str.user, begin);
    return it != str.user.end() && it->begin < end;
}

}  // namespace text::jinja
