#include "gguf/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/limits.h"
#include "base/message.h"

namespace gguf {
namespace {

uint64_t padding(uint64_t n, uint64_t alignment) { return (alignment - n % alignment) % alignment; }

template <typename T>
void append(std::vector<std::byte>& out, T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), raw, raw + sizeof value);
}

void append_string(std::vector<std::byte>& out, std::string_view text) {
    append(out, uint64_t{text.size()});
    const auto raw = std::as_bytes(std::span(text));
    out.insert(out.end(), raw.begin(), raw.end());
}

bool write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return false;
        bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return true;
}

}  // namespace

Writer::Writer(uint32_t alignment, uint32_t version) : alignment_(alignment), version_(version) {
    CHECK(version == 2 || version == 3);
    CHECK(alignment >= limits::gguf_alignment_min && alignment <= limits::gguf_alignment_max && (alignment & (alignment - 1)) == 0);
    if (alignment != 32) add_u32("general.alignment", alignment);
}

void Writer::put_bytes(std::span<const std::byte> raw) { metadata_.insert(metadata_.end(), raw.begin(), raw.end()); }

void Writer::put_string(std::string_view text) { append_string(metadata_, text); }

void Writer::begin_value(std::string_view key, ValueType type) {
    CHECK(!key.empty());
    CHECK(keys_.emplace(key).second);
    put_string(key);
    put(static_cast<uint32_t>(type));
    ++n_kv_;
}

void Writer::add_string(std::string_view key, std::string_view value) {
    begin_value(key, ValueType::string);
    put_string(value);
}

void Writer::add_strings(std::string_view key, std::span<const std::string> values) {
    begin_value(key, ValueType::array);
    put(static_cast<uint32_t>(ValueType::string));
    put(uint64_t{values.size()});
    for (const std::string& text : values) put_string(text);
}

void Writer::array(std::string_view key, ValueType element_type, uint64_t count, std::span<const std::byte> raw) {
    begin_value(key, ValueType::array);
    put(static_cast<uint32_t>(element_type));
    put(count);
    put_bytes(raw);
}

void Writer::add_value(std::string_view key, const Value& value) {
    if (const auto* elements = std::get_if<Array>(&value.data)) return array(key, elements->element_type, elements->count, elements->bytes);
    if (const auto* text = std::get_if<std::string_view>(&value.data)) return add_string(key, *text);
    if (const auto* flag = std::get_if<bool>(&value.data)) return add_bool(key, *flag);
    switch (value.type) {
        case ValueType::u8: return add_u8(key, static_cast<uint8_t>(std::get<uint64_t>(value.data)));
        case ValueType::u16: return add_u16(key, static_cast<uint16_t>(std::get<uint64_t>(value.data)));
        case ValueType::u32: return add_u32(key, static_cast<uint32_t>(std::get<uint64_t>(value.data)));
        case ValueType::u64: return add_u64(key, std::get<uint64_t>(value.data));
        case ValueType::i8: return add_i8(key, static_cast<int8_t>(std::get<int64_t>(value.data)));
        case ValueType::i16: return add_i16(key, static_cast<int16_t>(std::get<int64_t>(value.data)));
        case ValueType::i32: return add_i32(key, static_cast<int32_t>(std::get<int64_t>(value.data)));
        case ValueType::i64: return add_i64(key, std::get<int64_t>(value.data));
        case ValueType::f32: return add_f32(key, static_cast<float>(std::get<double>(value.data)));
        case ValueType::f64: return add_f64(key, std::get<double>(value.data));
        default: CHECK(!"a value whose type and data disagree");
    }
}

void Writer::add_tensor(std::string_view name, quant::Type type, std::span<const uint64_t> dims, std::span<const std::byte> data) {
    add_tensor(name, type, dims, [data] { return data; });
}

void Writer::add_tensor(std::string_view name, quant::Type type, std::span<const uint64_t> dims, Producer producer) {
    add_streamed_tensor(name, type, dims, [producer = std::move(producer)](const Sink& sink) -> base::Result<void> {
        sink(producer());  // write() sees a refusal
        return {};
    });
}

void Writer::add_streamed_tensor(std::string_view name, quant::Type type, std::span<const uint64_t> dims, Stream stream) {
    CHECK(!name.empty() && name.size() <= limits::gguf_tensor_name_bytes);
    CHECK(names_.emplace(name).second);
    CHECK(!dims.empty() && dims.size() <= limits::gguf_dims);
    const uint64_t n_elements = std::accumulate(dims.begin(), dims.end(), uint64_t{1}, std::multiplies<>());
    CHECK(n_elements > 0);
    CHECK_EQ(dims[0] % quant::info(type).block_elements, 0u);
    tensors_.push_back({std::string(name), type, {dims.begin(), dims.end()}, quant::row_bytes(type, n_elements), std::move(stream)});
}

base::Result<void> Writer::write(const Sink& sink) const {
    const base::Error refused{base::ErrorCode::io, "writing the model file stopped: the sink took no more bytes", ""};
    std::vector<std::byte> head;
    append(head, uint32_t{0x46554747});
    append(head, version_);
    append(head, uint64_t{tensors_.size()});
    append(head, n_kv_);
    head.insert(head.end(), metadata_.begin(), metadata_.end());
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
        append_string(head, tensor.name);
        append(head, static_cast<uint32_t>(tensor.dims.size()));
        for (const uint64_t dim : tensor.dims) append(head, dim);
        append(head, quant::info(tensor.type).gguf_number);
        append(head, offset);
        offset += tensor.n_bytes + padding(tensor.n_bytes, alignment_);
    }
    if (!tensors_.empty()) head.resize(head.size() + padding(head.size(), alignment_));
    if (!sink(head)) return refused;
    const std::vector<std::byte> zeros(alignment_);
    for (const Tensor& tensor : tensors_) {
        uint64_t n_bytes = 0;
        bool taken = true;
        const Sink counted = [&](std::span<const std::byte> part) {
            n_bytes += part.size();
            return taken = taken && sink(part);
        };
        auto result = tensor.stream(counted);
        if (!taken) return refused;
        if (!result) return result.take_error();
        CHECK_EQ(n_bytes, tensor.n_bytes);
        if (!sink(std::span(zeros).first(padding(tensor.n_bytes, alignment_)))) return refused;
    }
    return {};
}

std::vector<std::byte> Writer::bytes() const {
    std::vector<std::byte> out;
    const auto result = write([&](std::span<const std::byte> part) {
        out.insert(out.end(), part.begin(), part.end());
        return true;
    });
    CHECK(result.ok());
    return out;
}

base::Result<void> Writer::write_file(const std::string& path, const Check& check) const {
    // Removes the partial file however this function is left, unless it got its name.
    struct Partial {
        std::string path;
        int fd = -1;
        bool keep = false;
        ~Partial() {
            if (fd >= 0) ::close(fd);
            if (!path.empty() && !keep) ::unlink(path.c_str());
        }
    } partial;
    const auto io_error = [&](std::string_view what) {
        return base::Error{base::ErrorCode::io, base::cat(base::printable(path, 200), ": ", what, ": ", std::strerror(errno)), ""};
    };
    partial.fd = ::open(partial_path(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (partial.fd < 0) return io_error("cannot create");
    partial.path = partial_path(path);
    int write_error = 0;
    auto result = write([&](std::span<const std::byte> part) {
        if (write_all(partial.fd, part)) return true;
        write_error = errno;
        return false;
    });
    if (write_error != 0) {
        errno = write_error;
        return io_error("cannot write");
    }
    if (!result) return result.take_error();
    if (::fsync(partial.fd) != 0) return io_error("cannot flush");
    if (::close(std::exchange(partial.fd, -1)) != 0) return io_error("cannot close");
    if (check)
        if (auto sound = check(partial.path); !sound) return sound.take_error();
    if (::rename(partial.path.c_str(), path.c_str()) != 0) return io_error("cannot rename");
    partial.keep = true;
    return {};
}

}  // namespace gguf
