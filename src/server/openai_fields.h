// The request fields that both endpoints share, as tables: honoured, refused unless it says nothing, harmless.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "server/openai_request.h"

namespace server {

// Reads every member of `body` (an object) that is not in `own`, the endpoint's own fields. Sampling starts from
// SamplingDefaults; unknown names go to out.ignored.
base::Result<void> read_shared_fields(GenerationRequest& out, const json::Value& body, std::initializer_list<std::string_view> own);

// A member that is there and not null.
bool present(const json::Value& body, std::string_view field);
// null, false, 0, "", [] and {}: a value by which a client asks for nothing.
bool says_nothing(const json::Value& value);

}  // namespace server
