// Server-sent events in the forms that every client library accepts (each was tried against the SDKs).
#pragma once

#include <string>
#include <string_view>

#include "base/check.h"
#include "server/http.h"

namespace server {

// One event. The payload is JSON without line breaks (a JSON writer escapes them).
inline std::string sse_data(std::string_view json) {
    CHECK(json.find_first_of("\r\n") == std::string_view::npos);
    std::string frame;
    frame.reserve(json.size() + 8);
    frame += "data: ";
    frame += json;
    frame += "\n\n";
    return frame;
}

// Keeps proxies and clients waiting. A comment line and ONE newline: with a blank line after it, openai-go before 3.43
// takes the pair for an event without data and gives up; with `id:` or an empty `data:` openai-python does.
inline constexpr std::string_view sse_heartbeat = ": ping\n";

inline constexpr std::string_view sse_done = "data: [DONE]\n\n";

// Head of an event stream: never cached, transformed or held back by a proxy.
inline HttpResponse sse_head() {
    HttpResponse head;
    head.content_type = "text/event-stream";
    head.headers.emplace_back("Cache-Control", "no-cache, no-transform");
    head.headers.emplace_back("X-Accel-Buffering", "no");
    return head;
}

}  // namespace server
