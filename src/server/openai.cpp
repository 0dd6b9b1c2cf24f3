#include "server/openai.h"

#include <array>

#include "json/writer.h"

namespace server {
namespace {

using base::ErrorCode;

constexpr std::string_view bad_request = "invalid_request_error";

constexpr std::array rows = {
    //       code                                status  type                  code
    ErrorRow{ErrorCode::invalid_argument, 400, bad_request, "invalid_value"},
    ErrorRow{ErrorCode::context_length_exceeded, 400, bad_request, "context_length_exceeded"},
    ErrorRow{ErrorCode::not_found, 404, bad_request, "not_found"},
    ErrorRow{ErrorCode::too_large, 413, bad_request, "request_too_large"},
    ErrorRow{ErrorCode::queue_full, 429, "rate_limit_error", "queue_full"},
    ErrorRow{ErrorCode::unavailable, 503, "unavailable_error", "unavailable"},
    ErrorRow{ErrorCode::unsupported, 400, bad_request, "unsupported_parameter"},
    ErrorRow{ErrorCode::bad_file, 500, "server_error", "bad_file"},
    ErrorRow{ErrorCode::io, 500, "server_error", "io_error"},
    ErrorRow{ErrorCode::internal, 500, "server_error", "internal_error"},
};

std::string body_of(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
    std::string out;
    json::Writer w(out);
    const auto text_or_null = [&](std::string_view name, std::string_view text) {
        w.key(name);
        if (text.empty())
            w.value(nullptr);
        else
            w.value(text);
    };
    w.begin_object().key("error").begin_object().member("message", message).member("type", type);
    text_or_null("param", param);
    text_or_null("code", code);
    w.end_object().end_object();
    return out;
}

}  // namespace

std::span<const ErrorRow> error_rows() { return rows; }

const ErrorRow& error_row(base::ErrorCode code) {
    for (const ErrorRow& row : rows)
        if (row.code == code) return row;
    CHECK(false && "every ErrorCode has a row");
    return rows.back();
}

std::string error_body(const base::Error& error) {
    const ErrorRow& row = error_row(error.code);
    return body_of(error.message, row.type, error.field, row.api_code);
}

HttpResponse to_response(const base::Error& error, std::optional<uint32_t> retry_after_s) {
    HttpResponse response;
    response.status = error_row(error.code).status;
    response.body = error_body(error);
    if (response.status == 429 || response.status == 503)
        response.headers.emplace_back("Retry-After", std::to_string(retry_after_s.value_or(1)));
    else if (response.status >= 500)
        response.headers.emplace_back("x-should-retry", "false");
    return response;
}

base::Error invalid(std::string field, std::string message) { return {ErrorCode::invalid_argument, std::move(message), std::move(field)}; }

base::Error unsupported(std::string field, std::string message) { return {ErrorCode::unsupported, std::move(message), std::move(field)}; }

}  // namespace server
