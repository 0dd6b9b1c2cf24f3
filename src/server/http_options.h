// What the HTTP server is told at start. Filled by the options code; every default is the safe one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "server/auth.h"

namespace server {

struct HttpLimits {
    size_t header_bytes = limits::http_header_bytes;
    size_t target_bytes = limits::http_target_bytes;
    size_t headers_count = limits::http_headers_count;
    size_t read_buffer_bytes = limits::http_read_buffer_bytes;
    size_t body_bytes = limits::http_body_bytes;
    size_t bodies_bytes = limits::http_bodies_bytes;  // of all connections; a single body may always be body_bytes long
    uint32_t connections_count = limits::connections_count;
    int64_t header_time_ms = limits::http_header_time_ms;
    int64_t body_time_ms = limits::http_body_time_ms;
    int64_t idle_time_ms = limits::http_idle_time_ms;
    int64_t write_stall_ms = limits::http_write_stall_ms;
    int64_t linger_time_ms = limits::http_linger_time_ms;
};

struct HttpOptions {
    std::string address = "127.0.0.1";                            // an IP literal or "localhost" (127.0.0.1); "::" takes IPv4 too
    uint16_t port = 8080;                                         // 0: any free one
    std::vector<std::string> hosts;                               // further names allowed in Host; "*" allows all
    std::vector<std::string> cors_origins;                        // "https://app.example"; "*" allows all
    ApiKeys keys;                                                 // none: no authentication
    bool insecure = false;                                        // allows a bind beyond loopback without keys
    std::vector<std::string> open_paths = {"/health", "/ready"};  // answered without a key (GET and HEAD); add the page's assets
    HttpLimits limits;
    std::function<void(std::string_view)> log = base::log_warning;  // one line, not escaped; loop thread
};

// Whether this address may be bound: loopback always; elsewhere only with keys or when told (`--insecure`). Pure.
base::Result<void> check_bind(std::string_view address, bool has_keys, bool insecure);

}  // namespace server
