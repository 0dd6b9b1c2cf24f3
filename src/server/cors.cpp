#include "server/cors.h"

#include <algorithm>

#include "base/ascii.h"

namespace server {
namespace {

bool may_send(const std::string& header) {
    for (const std::string_view name :
         {"authorization", "content-type", "accept", "x-api-key", "x-request-id", "user-agent", "cache-control"})
        if (header == name) return true;
    for (const std::string_view family : {"x-stainless-", "openai-", "anthropic-", "x-hearth-"})
        if (header.size() > family.size() && header.compare(0, family.size(), family) == 0) return true;
    return false;
}

// The requested headers that may be sent, in their order; all of them when every one may.
std::string allowed_headers(std::string_view requested) {
    std::string out;
    while (!requested.empty()) {
        const size_t comma = std::min(requested.find(','), requested.size());
        std::string name = base::to_lower(requested.substr(0, comma));
        name.erase(0, std::min(name.find_first_not_of(" \t"), name.size()));
        name.erase(name.find_last_not_of(" \t") + 1);
        if (valid_field_line(name + ":") && may_send(name)) {
            if (!out.empty()) out += ", ";
            out += name;
        }
        requested.remove_prefix(std::min(comma + 1, requested.size()));
    }
    return out;
}

}  // namespace

Cors::Cors(std::vector<std::string> origins) {
    for (std::string& origin : origins) {
        if (origin == "*") all_ = true;
        std::string lowered = base::to_lower(origin);
        if (!lowered.empty() && lowered.back() == '/') lowered.pop_back();
        origins_.push_back(std::move(lowered));
    }
}

bool Cors::allows(std::string_view origin) const {
    if (origin.empty()) return false;
    return all_ || std::find(origins_.begin(), origins_.end(), base::to_lower(origin)) != origins_.end();
}

void Cors::add_headers(std::string_view origin, std::vector<std::pair<std::string, std::string>>& headers) const {
    if (origins_.empty()) return;
    if (!all_) headers.emplace_back("Vary", "Origin");
    if (!allows(origin)) return;
    // Never with credentials: keys travel in headers that the page sets itself.
    headers.emplace_back("Access-Control-Allow-Origin", all_ ? "*" : std::string(origin));
    headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, X-Hearth-Ignored, Retry-After");
}

bool Cors::is_preflight(const Head& head) {
    return head.method == "OPTIONS" && !head.header("origin").empty() && !head.header("access-control-request-method").empty();
}

HttpResponse Cors::preflight(const Head& head) const {
    if (!allows(head.header("origin")))
        return error_response(403, "this origin is not on the server's list (--cors-origin)", "origin_not_allowed");
    HttpResponse response;
    response.status = 204;
    response.headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS");
    if (std::string names = allowed_headers(head.header("access-control-request-headers")); !names.empty())
        response.headers.emplace_back("Access-Control-Allow-Headers", std::move(names));
    response.headers.emplace_back("Access-Control-Max-Age", "86400");
    return response;
}

}  // namespace server
