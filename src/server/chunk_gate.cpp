#include <algorithm>

#include "base/limits.h"
#include "server/gate.h"

namespace server {
namespace {

int hex_digit(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

GateState ChunkGate::refuse(unsigned status, std::string message) {
    refusal_ = {status, std::move(message), status == 413 ? "body_too_large" : "malformed_request"};
    return GateState::refused;
}

// One byte of framing. false: refused.
bool ChunkGate::step(unsigned char c) {
    const auto fail = [&](std::string message) {
        refuse(400, std::move(message));
        return false;
    };
    switch (where_) {
        case Where::size: {
            ++line_bytes_;
            if (const int digit = hex_digit(c); digit >= 0) {
                // 16 digits are all that 64 bits hold; leading zeros count, so a size can't be padded without end.
                if (++digits_ > 16) return fail("chunk size of more than 16 digits");
                size_ = size_ << 4 | static_cast<uint64_t>(digit);
                return true;
            }
            if (digits_ == 0) return fail("chunk size is not hexadecimal");
            if (size_ > body_bytes_max_ - body_bytes_) {
                refuse(413, "chunked body exceeds " + std::to_string(body_bytes_max_) + " bytes (--max-body)");
                return false;
            }
            if (c == ';')
                where_ = Where::name_begin;
            else if (c == '\r')
                where_ = Where::size_lf;
            else
                return fail("chunk size is followed by something else than ';' or the line end");
            return true;
        }
        case Where::name_begin:
        case Where::name:
        case Where::value_begin:
        case Where::value:
        case Where::quoted:
        case Where::quoted_pair:
        case Where::quoted_end:
            if (++line_bytes_ > limits::http_chunk_line_bytes || ++extension_bytes_ > limits::http_chunk_extension_bytes)
                return fail("chunk extension is too long");
            return extension_step(c) || fail("chunk extension is malformed");
        case Where::size_lf:
            if (c != '\n') return fail("carriage return without line feed in a chunk size line");
            body_bytes_ += size_;
            left_ = size_;
            where_ = size_ > 0 ? Where::data : Where::trailer;
            return true;
        case Where::data: return true;  // taken in bulk by feed
        case Where::data_cr:
            if (c != '\r') return fail("chunk data is not followed by a line end");
            where_ = Where::data_lf;
            return true;
        case Where::data_lf:
            if (c != '\n') return fail("chunk data is not followed by a line end");
            where_ = Where::size;
            size_ = digits_ = line_bytes_ = 0;
            return true;
        case Where::trailer:
            if (++trailer_bytes_ > limits::http_trailer_bytes) return fail("trailers are too long");
            if (c == '\r')
                where_ = Where::trailer_lf;
            else if (c == '\n')
                return fail("line feed without carriage return in the trailers");
            else
                trailer_line_ += static_cast<char>(c);
            return true;
        case Where::trailer_lf:
            ++trailer_bytes_;
            if (c != '\n') return fail("carriage return without line feed in the trailers");
            if (trailer_line_.empty()) {
                done_ = true;
                return true;
            }
            if (!valid_field_line(trailer_line_)) return fail("trailer is not NAME: VALUE");
            trailer_line_.clear();
            where_ = Where::trailer;
            return true;
    }
    return fail("unreachable");
}

// What an extension says is ignored, but its grammar is checked: in a quoted string some read on over a line end.
bool ChunkGate::extension_step(unsigned char c) {
    const auto go = [&](Where next) {
        where_ = next;
        return true;
    };
    const auto ends = [&] { return c == ';' ? go(Where::name_begin) : c == '\r' && go(Where::size_lf); };
    switch (where_) {
        case Where::name_begin: return is_token_char(c) && go(Where::name);
        case Where::name: return is_token_char(c) || (c == '=' ? go(Where::value_begin) : ends());
        case Where::value_begin: return c == '"' ? go(Where::quoted) : is_token_char(c) && go(Where::value);
        case Where::value: return is_token_char(c) || ends();
        case Where::quoted: return c == '"' ? go(Where::quoted_end) : c == '\\' ? go(Where::quoted_pair) : is_value_char(c);
        case Where::quoted_pair: return is_value_char(c) && go(Where::quoted);
        case Where::quoted_end: return ends();
        default: return false;
    }
}

GateState ChunkGate::feed(std::string_view bytes, size_t& used) {
    used = 0;
    if (!refusal_.message.empty()) return GateState::refused;
    while (used < bytes.size() && !done_) {
        if (where_ == Where::data) {
            const uint64_t taken = std::min<uint64_t>(left_, bytes.size() - used);
            used += taken;
            left_ -= taken;
            if (left_ == 0) where_ = Where::data_cr;
            continue;
        }
        if (!step(static_cast<unsigned char>(bytes[used]))) return GateState::refused;
        ++used;
        pending_bytes_ = where_ == Where::data || done_ ? 0 : pending_bytes_ + 1;
    }
    return done_ ? GateState::complete : GateState::more;
}

}  // namespace server
