#include "server/auth.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/constant_time.h"
#include "base/limits.h"
#include "base/message.h"
#include "base/sha256.h"
#include "server/gate.h"

namespace server {
namespace {

base::Error fault(size_t line, std::string_view what) {
    return {base::ErrorCode::bad_file, base::cat("key file line ", line, ": ", what), "api-key-file"};
}

bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    return text;
}

HttpResponse refusal(unsigned status, std::string_view message, std::string_view code) {
    HttpResponse response = error_response(status, message, code);
    if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"hearth\"");
    return response;
}

// The token of "Bearer TOKEN" (the scheme without case); empty when it is something else.
std::string_view bearer_token(std::string_view value) {
    constexpr std::string_view scheme = "bearer ";
    if (value.size() <= scheme.size()) return {};
    for (size_t i = 0; i < scheme.size(); ++i)
        if ((value[i] | 0x20) != scheme[i]) return {};
    return trim(value.substr(scheme.size()));
}

}  // namespace

base::Result<ApiKeys> ApiKeys::parse(std::string_view text) {
    ApiKeys result;
    size_t number = 0;
    while (!text.empty()) {
        ++number;
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.front() == '#') continue;
        if (result.keys_.size() == limits::api_keys_count) return fault(number, base::cat("more than ", limits::api_keys_count, " keys"));
        const size_t colon = line.find(':');
        const std::string_view name = colon == std::string_view::npos ? std::string_view() : line.substr(0, colon);
        const std::string_view key = colon == std::string_view::npos ? line : line.substr(colon + 1);
        if (colon != std::string_view::npos && (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), is_name_char)))
            return fault(number, "what is before ':' is not a name of 1 to 64 letters, digits, '_', '.' or '-'");
        if (key.size() < limits::api_key_bytes_min)
            return fault(number, base::cat("key is shorter than ", limits::api_key_bytes_min, " bytes"));
        if (key.size() > limits::api_key_bytes_max)
            return fault(number, base::cat("key is longer than ", limits::api_key_bytes_max, " bytes"));
        if (!std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; }))
            return fault(number, "key has a character that is not visible ASCII");
        ApiKey entry;
        entry.hash = base::sha256(key);
        for (int i = 0; i < 8; ++i) entry.salt |= uint64_t{entry.hash[static_cast<size_t>(i)]} << (8 * i);
        if (entry.salt == 0) entry.salt = 1;  // 0 means: no keys
        entry.name = name;
        for (const ApiKey& other : result.keys_)
            if (other.hash == entry.hash) return fault(number, "key is there twice");
        result.keys_.push_back(std::move(entry));
    }
    if (result.keys_.empty()) return base::Error{base::ErrorCode::bad_file, "key file has no key", "api-key-file"};
    return result;
}

base::Result<ApiKeys> ApiKeys::load(const std::string& path) {
    constexpr size_t bytes_max = limits::api_keys_count * (limits::api_key_bytes_max + 128);
    std::ifstream in(path, std::ios::binary);
    if (!in) return base::Error{base::ErrorCode::io, "cannot read the key file " + base::printable(path, 200), "api-key-file"};
    std::string text(bytes_max + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad()) return base::Error{base::ErrorCode::io, "cannot read the key file " + base::printable(path, 200), "api-key-file"};
    text.resize(static_cast<size_t>(in.gcount()));
    if (text.size() > bytes_max)
        return base::Error{base::ErrorCode::bad_file, base::cat("key file is larger than ", bytes_max, " bytes"), "api-key-file"};
    return parse(text);
}

const ApiKey* ApiKeys::find(std::string_view presented) const {
    if (presented.empty() || presented.size() > limits::api_key_bytes_max) return nullptr;
    const base::Sha256Digest hash = base::sha256(presented);
    // All keys are compared, so that the time tells neither which one matched nor how far one did.
    size_t found = keys_.size();
    for (size_t i = 0; i < keys_.size(); ++i)
        if (base::equal_in_constant_time(keys_[i].hash, hash)) found = i;
    return found < keys_.size() ? &keys_[found] : nullptr;
}

std::optional<HttpResponse> authenticate(const Head& head, const ApiKeys& keys, const ApiKey*& key) {
    key = nullptr;
    // The gate has refused a second header of either name.
    const std::string_view authorization = head.header("authorization");
    const std::string_view plain = head.header("x-api-key");
    if (authorization.empty() && plain.empty())
        return refusal(401, "no API key was sent: use the header 'Authorization: Bearer KEY'", "missing_api_key");
    const std::string_view token = bearer_token(authorization);
    if (!authorization.empty() && token.empty())
        return refusal(401, "the Authorization header is not of the form 'Bearer KEY'", "invalid_api_key");
    if (!authorization.empty() && !plain.empty() && token != plain)
        return refusal(400, "Authorization and x-api-key carry different keys", "ambiguous_api_key");
    key = keys.find(authorization.empty() ? plain : token);
    if (!key) return refusal(401, "incorrect API key", "invalid_api_key");
    return std::nullopt;
}

}  // namespace server
