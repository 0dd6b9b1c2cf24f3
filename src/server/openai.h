// Errors as the OpenAI API words them: the one table from base::ErrorCode to HTTP status, type and code.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http.h"

namespace server {

struct ErrorRow {
    base::ErrorCode code;
    unsigned status;            // HTTP
    std::string_view type;      // "type" of the error object
    std::string_view api_code;  // "code"; empty: null
};

// One row per ErrorCode.
std::span<const ErrorRow> error_rows();
const ErrorRow& error_row(base::ErrorCode code);

// {"error":{"message","type","param","code"}}: the body of an answer and the payload of an SSE error event.
std::string error_body(const base::Error& error);
// The whole answer. retry_after_s goes into Retry-After (429 and 503 always have one, 1 when not given). Failures that
// a retry can't mend carry x-should-retry: false, which the OpenAI SDKs honour.
HttpResponse to_response(const base::Error& error, std::optional<uint32_t> retry_after_s = std::nullopt);

base::Error invalid(std::string field, std::string message);
base::Error unsupported(std::string field, std::string message);

}  // namespace server
