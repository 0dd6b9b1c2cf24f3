// SHA-256 (FIPS 180-4). For API keys (only their hashes are kept) and for the KV prefix chain. Not for passwords.
// Pure; distinct objects from distinct threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace base {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
  public:
    Sha256& update(std::span<const std::byte> bytes);
    Sha256& update(std::string_view text) { return update(std::as_bytes(std::span(text))); }
    // The digest of everything so far; afterwards the object is as new.
    Sha256Digest finish();

  private:
    void block(const uint8_t* bytes);

    static constexpr std::array<uint32_t, 8> initial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<uint32_t, 8> state_ = initial;
    std::array<uint8_t, 64> pending_{};  // [0, n_bytes_ % 64) wait for the rest of their block
    uint64_t n_bytes_ = 0;
};

Sha256Digest sha256(std::span<const std::byte> bytes);
Sha256Digest sha256(std::string_view text);
std::string to_hex(std::span<const uint8_t> bytes);  // lower case

}  // namespace base
