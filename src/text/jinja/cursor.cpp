#include "text/jinja/cursor.h"

#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/builder.h"
#include "text/jinja/failure.h"
#include "text/jinja/function.h"

namespace text::jinja {

Cursor::Cursor(Heap& heap, Value value) : heap_(heap), source_(std::move(value)) {
    if (!is_iterable(source_)) fail(base::cat("'", type_name(source_), "' object is not iterable"));
}

bool Cursor::next(Value& item) {
    heap_.step();
    switch (source_.kind()) {
        case Kind::list: {
            const auto& items = source_.list().items;  // may grow while it is walked, as in Python
            if (at_ >= items.size()) return false;
            item = items[at_++];
            return true;
        }
        case Kind::dict: {
            const auto& entries = source_.dict().entries;
            if (at_ >= entries.size()) return false;
            item = entries[at_++].first;
            return true;
        }
        case Kind::iterator: {
            Iterator& iterator = source_.iterator();
            if (iterator.next >= iterator.items.size()) return false;
            item = std::move(iterator.items[iterator.next++]);
            return true;
        }
        case Kind::range: {
            const Range& range = source_.range();
            if (static_cast<int64_t>(at_) >= range.length) return false;
            item = Value::integer(range.at(static_cast<int64_t>(at_++)));
            return true;
        }
        case Kind::string: {
            const Str& str = source_.str();
            if (at_ >= str.text.size()) return false;
            const size_t length = base::utf8::decode(str.text, at_).length;
            item = substring(heap_, str, at_, at_ + length);
            at_ += length;
            return true;
        }
        case Kind::function: return source_.function().next(item);
        default: return false;
    }
}

}  // namespace text::jinja
