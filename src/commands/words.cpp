#include "commands/words.h"

#include <cstdio>

#include "base/limits.h"
#include "base/message.h"

namespace commands {

std::string bytes_text(uint64_t bytes) {
    char text[32];
    const double value = static_cast<double>(bytes);
    if (bytes >= 1024 * limits::mib)
        std::snprintf(text, sizeof text, "%.1f GiB", value / (1024.0 * limits::mib));
    else if (bytes >= limits::mib)
        std::snprintf(text, sizeof text, "%.0f MiB", value / limits::mib);
    else
        std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
    return text;
}

base::Error in_file(base::Error error, const std::string& path) {
    const std::string name = base::printable(path, limits::file_name_bytes_shown);
    const bool of_file = error.code == base::ErrorCode::bad_file || error.code == base::ErrorCode::unsupported;
    if (of_file && !error.message.starts_with(name)) error.message = base::cat(name, ": ", error.message);
    return error;
}

}  // namespace commands
