// Walks over anything iterable, one element at a time, without a copy of the whole.
#pragma once

#include "text/jinja/value.h"

namespace text::jinja {

class Cursor {
  public:
    // Fails as Python's iter() does when `value` can't be iterated.
    Cursor(Heap& heap, Value value);
    // False at the end. Charges a step.
    bool next(Value& item);

  private:
    Heap& heap_;
    Value source_;
    size_t at_ = 0;
};

}  // namespace text::jinja
