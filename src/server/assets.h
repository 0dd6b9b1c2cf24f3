// The chat page, embedded at build time by web/embed.py (generated file in the build folder).
#pragma once

#include <span>
#include <string_view>

namespace server {

struct Asset {
    std::string_view path;          // "/", "/app.js"
    std::string_view content_type;
    std::string_view etag;          // quoted, from a hash of the content
    std::string_view encoding;      // "gzip" or ""
    std::string_view bytes;
};

std::span<const Asset> assets();
// Content-Security-Policy sent with every asset.
std::string_view assets_csp();

}  // namespace server
