// The functions that every template has: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#include "text/jinja/globals.h"

#include <ctime>

#include "base/message.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"

namespace text::jinja {

using base::cat;

namespace {

constexpr int64_t range_length_max = 100'000;  // as Jinja's sandbox

Value range(Interpreter& in, const Value&, Args& args) {
    if (!args.named.empty()) fail("range() takes no keyword arguments");
    if (args.positional.empty() || args.positional.size() > 3) fail("range expected 1 to 3 arguments");
    int64_t bounds[3] = {0, 0, 1};
    const size_t n = args.positional.size();
    if (n == 1) {
        bounds[1] = int_argument(args.positional[0], "range's bound");
    } else {
        for (size_t i = 0; i < n; ++i) bounds[i] = int_argument(args.positional[i], "range's bound");
    }
    const auto [start, stop, step] = bounds;
    if (step == 0) fail("range() arg 3 must not be zero");
    const bool forward = step > 0;
    unsigned __int128 length = 0;
    if (forward ? start < stop : start > stop) {
        const __int128 distance = forward ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
        const __int128 stride = forward ? static_cast<__int128>(step) : -static_cast<__int128>(step);
        length = static_cast<unsigned __int128>((distance - 1) / stride + 1);
    }
    if (length > static_cast<unsigned __int128>(range_length_max)) {
        fail_limit(cat("range too big: at most ", range_length_max, " items are allowed"));
    }
    return Value::object(Kind::range, new Range(in.heap(), start, stop, step, static_cast<int64_t>(length)));
}

Value make_dict_from(Interpreter& in, const Value&, Args& args) {
    Value dict = make_dict(in.heap());
    update_dict(in, dict.dict(), args, "dict");
    return dict;
}

Value make_namespace(Interpreter& in, const Value&, Args& args) {
    Value space = Value::object(Kind::space, new Namespace(in.heap()));
    space.space().attributes = make_dict(in.heap());
    update_dict(in, space.space().attributes.dict(), args, "namespace");
    for (const auto& [key, value] : space.space().attributes.dict().entries) {
        if (key.is_string() && key.str().text.starts_with('_')) {
            fail(cat("a namespace can't hold '", base::printable(key.str().text), "': it begins with an underscore"));
        }
    }
    return space;
}

struct Cycler final : Function {
    Cycler(Heap& heap, std::vector<Value> values) : Function(heap), items(make_list(heap, std::move(values), Flavor::tuple)) {}
    void clear() override { items = Value(); }
    bool is_callable() const override { return false; }
    Value call(Interpreter&, Args&) override { fail("'Cycler' object is not callable"); }
    std::string type_name() const override { return "Cycler"; }
    const Value& current() const { return items.list().items[at]; }
    bool attribute(Interpreter&, std::string_view name, Value& value) override {
        const Value self = Value::object(Kind::function, this);
        if (name == "current") {
            value = current();
        } else if (name == "next") {
            value = make_native(
                heap,
                [](Interpreter&, const Value& self, Args& args) {
                    args.none("next");
                    auto& cycler = static_cast<Cycler&>(self.function());
                    const Value item = cycler.current();
                    cycler.at = (cycler.at + 1) % cycler.items.list().items.size();
                    return item;
                },
                self, "next");
        } else if (name == "reset") {
            value = make_native(
                heap,
                [](Interpreter&, const Value& self, Args& args) {
                    args.none("reset");
                    static_cast<Cycler&>(self.function()).at = 0;
                    return Value();
                },
                self, "reset");
        } else if (name == "items") {
            value = items;
        } else if (name == "pos") {
            value = Value::integer(static_cast<int64_t>(at));
        } else {
            return false;
        }
        return true;
    }

    Value items;
    size_t at = 0;
};

Value cycler(Interpreter& in, const Value&, Args& args) {
    if (args.positional.empty() || !args.named.empty()) fail("at least one item has to be provided");
    return Value::object(Kind::function, new Cycler(in.heap(), std::move(args.positional)));
}

struct Joiner final : Function {
    Joiner(Heap& heap, Value sep) : Function(heap), separator(std::move(sep)) {}
    void clear() override { separator = Value(); }
    std::string type_name() const override { return "Joiner"; }
    Value call(Interpreter& in, Args& args) override {
        args.none("a joiner");
        if (used) return separator;
        used = true;
        return in.string("");
    }
    Value separator;
    bool used = false;
};

Value joiner(Interpreter& in, const Value&, Args& args) {
    const Value* out[1];
    args.bind("joiner", {"sep"}, out);
    return Value::object(Kind::function, new Joiner(in.heap(), out[0] ? *out[0] : in.string(", ")));
}

Value raise_exception(Interpreter& in, const Value&, Args& args) {
    const Value* out[1];
    args.bind("raise_exception", {"message"}, out, 1);
    throw Failure{base::ErrorCode::invalid_argument, std::string(in.to_string(*out[0]).str().text), no_position, true};
}

// One conversion at a time through the C library, in UTC: a server has no time zone of its own, and reading one would
// be I/O. Flags and widths of glibc (%-d) work.
Value strftime_now(Interpreter& in, const Value&, Args& args) {
    const Value* out[1];
    args.bind("strftime_now", {"format"}, out, 1);
    const Str& format = string_argument(*out[0], "strftime_now's format");
    const time_t now = in.clock().wall_unix_s();
    std::tm fields{};
    if (!gmtime_r(&now, &fields)) fail("the clock's time has no date");
    Builder text(in.heap());
    const std::string_view s = format.text;
    for (size_t at = 0; at < s.size();) {
        in.heap().step();
        const size_t percent = std::min(s.find('%', at), s.size());
        text.add(format, at, percent);
        if (percent == s.size()) break;
        size_t end = percent + 1;
        while (end < s.size() && std::string_view("-_0^#").find(s[end]) != std::string_view::npos) ++end;
        if (end < s.size() && (s[end] == 'E' || s[end] == 'O')) ++end;
        static constexpr std::string_view known = "aAbBcCdDeFgGhHIjklmMnprRsStTuUVwWxXyYzZ%";
        if (end >= s.size() || end - percent > 8 || known.find(s[end]) == std::string_view::npos) {
            text.add(format, percent, std::min(end + 1, s.size()));  // an unknown conversion stays as it is
            at = std::min(end + 1, s.size());
            continue;
        }
        const std::string conversion(s.substr(percent, end + 1 - percent));
        char buffer[128];
        const size_t n = std::strftime(buffer, sizeof buffer, conversion.c_str(), &fields);
        text.add(std::string_view(buffer, n));
        at = end + 1;
    }
    return text.finish();
}

Value lipsum(Interpreter&, const Value&, Args&) { fail("'lipsum' is refused: the same prompt must come out each time"); }

}  // namespace

std::optional<Value> find_global(Interpreter& in, std::string_view name) {
    static constexpr struct {
        std::string_view name;
        Native function;
    } table[] = {
        {"range", range},
        {"dict", make_dict_from},
        {"namespace", make_namespace},
        {"cycler", cycler},
        {"joiner", joiner},
        {"raise_exception", raise_exception},
        {"strftime_now", strftime_now},
        {"lipsum", lipsum},
    };
    for (const auto& row : table) {
        if (row.name == name) return make_native(in.heap(), row.function, Value(), row.name);
    }
    return std::nullopt;
}

}  // namespace text::jinja
