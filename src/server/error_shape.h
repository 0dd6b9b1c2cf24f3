// The error object of the OpenAI API, which every client of hearth reads, also for refusals made before any route.
#pragma once

#include <string>
#include <string_view>

#include "server/http.h"

namespace server {

// A request that the connection code turns away: what to answer. The connection is closed after it.
struct Refusal {
    unsigned status = 400;
    std::string message;  // one line for a person
    std::string code;     // stable word for programs
};

// {"error":{"message","type","param","code"}}; `param` and `code` are null when empty. Any bytes may be passed: what
// is not printable ASCII is escaped.
std::string error_json(std::string_view message, std::string_view type, std::string_view param, std::string_view code);
HttpResponse error_response(unsigned status, std::string_view message, std::string_view code);
// "server_error" from 500 up, else "invalid_request_error".
std::string_view error_type(unsigned status);

}  // namespace server
