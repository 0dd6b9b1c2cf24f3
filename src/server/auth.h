// API keys: read from a file, kept as SHA-256 hashes, compared in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace server {

struct HttpResponse;
struct Head;

struct ApiKey {
    std::array<uint8_t, 32> hash{};  // SHA-256 of the key; the key itself is not kept
    uint64_t salt = 0;               // from the hash, never 0: separates the prefix caches of different keys
    std::string name;                // may be empty
};

class ApiKeys {
  public:
    // One key a line: `name:key` or `key`; blank lines and lines that begin with '#' are passed over. A key is 16 to 512
    // visible ASCII characters, a name up to 64 of [A-Za-z0-9_.-]. Errors name the line, never the key.
    static base::Result<ApiKeys> parse(std::string_view text);
    static base::Result<ApiKeys> load(const std::string& path);
    bool empty() const { return keys_.empty(); }
    size_t size() const { return keys_.size(); }
    // Time depends on the number of keys and the length of `presented` only. nullptr: no such key.
    const ApiKey* find(std::string_view presented) const;

  private:
    std::vector<ApiKey> keys_;
};

// Who sent this head: a key, or the answer that refuses it (401 with WWW-Authenticate, or 400 when two headers name
// different keys). `keys` must not be empty; `key` points into it.
std::optional<HttpResponse> authenticate(const Head& head, const ApiKeys& keys, const ApiKey*& key);

}  // namespace server
