// Puts a string together from pieces and remembers which bytes a user wrote.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace text::jinja {

class Builder {
  public:
    // `output`: this is the rendered text itself, which has a limit of its own.
    explicit Builder(Heap& heap, bool output = false) : heap_(heap), output_(output) {}
    ~Builder();
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;

    void add(std::string_view text, bool user = false);  // whole, by one writer
    void add(const Str& str) { add(str, 0, str.text.size()); }
    void add(const Str& str, size_t begin, size_t end);  // bytes [begin, end) with their writers
    void add(const Builder& other);

    std::string_view text() const { return text_; }
    const UserRanges& user() const { return user_; }
    bool empty() const { return text_.empty(); }
    Value finish();  // the builder is empty afterwards

  private:
    void grow(size_t bytes);
    void mark(size_t begin, size_t end);

    Heap& heap_;
    bool output_;
    std::string text_;
    UserRanges user_;
};

// Bytes [begin, end) of a string; the string itself when that is all of it is not shared, only copied.
Value substring(Heap& heap, const Str& str, size_t begin, size_t end);
// True when any of the bytes [begin, end) is a user's.
bool has_user_bytes(const Str& str, size_t begin, size_t end);
inline bool has_user_bytes(const Str& str) { return !str.user.empty(); }

}  // namespace text::jinja
