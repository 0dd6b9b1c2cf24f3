// Files are a seam: who reads a model asks a FileSystem, so a test can hand out bytes, errors and changing files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace base {

// A file's bytes for as long as the view lives. Const access from any thread.
class FileView {
  public:
    virtual ~FileView() = default;
    virtual std::span<const std::byte> bytes() const = 0;
    // An error (io) when the file changed size or was written to since it was opened: what was read may be a mixture.
    // Call it after the last read, before what was read is believed.
    virtual Result<void> check_unchanged() const = 0;
    // A hint that these bytes of the view are not needed again soon, for one pass over a file that is larger than the
    // memory one wants to take. They stay readable.
    virtual void release(std::span<const std::byte>) const {}
};

class FileSystem {
  public:
    virtual ~FileSystem() = default;
    // Maps a regular, non-empty file read-only. Anything else (a directory, a FIFO, a device, no permission) is an
    // `io` error whose message names the path and the reason; nothing blocks and nothing is read.
    virtual Result<std::unique_ptr<FileView>> open_mapped(const std::string& path) const = 0;
};

// The machine's files. Lives for ever. While a view of it is alive, a read beyond the end of a file that was truncated
// in place, and a read that the disk fails, do not die by SIGBUS: one line on stderr names the file and the byte, and the
// process exits with code 70. (A file renamed over or unlinked is no problem: the mapping keeps the old one.)
const FileSystem& system_files();

}  // namespace base
