// A model in one file, or cut into several (NAME-00001-of-00003.gguf and so on, as gguf-split and the converters write
// them): the first part has the metadata, every part has some of the tensors and says by split.* which part it is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "gguf/file.h"

namespace gguf {

// What a file says by split.no, split.count and split.tensors.count.
struct Split {
    uint64_t part = 0;   // from 0
    uint64_t count = 1;  // 1: the model is not split
    std::optional<uint64_t> tensors;  // of all parts together
};
// Keys of another kind or out of bounds are `bad_file`.
base::Result<Split> read_split(const File& file);

// "DIR/NAME" of "DIR/NAME-00002-of-00005.gguf"; nothing when a path has no such end.
std::optional<std::string_view> split_stem(std::string_view path);
// "DIR/NAME-00002-of-00005.gguf"; `part` from 0.
std::string split_path(std::string_view stem, uint64_t part, uint64_t count);

// The mapped files of a model and what they say together. Movable; views of file() live as long as this.
class ModelFiles {
  public:
    // Opens `path`, which must be the whole model or its first part, and then the other parts beside it. An error names the file
    // that it is about: one that is missing, is another part than its name says, or does not belong to the others.
    static base::Result<ModelFiles> open(const std::string& path, const base::FileSystem& files);

    // One directory of the tensors of all parts; metadata is the first part's. Messages about it begin with path().
    const File& file() const { return file_; }
    const std::string& path() const { return paths_.front(); }
    const std::vector<std::string>& paths() const { return paths_; }  // of all parts, in order

    // Of every part; see base::FileView.
    base::Result<void> check_unchanged() const;
    void release(std::span<const std::byte> part) const;

  private:
    std::vector<std::string> paths_;
    std::vector<std::unique_ptr<base::FileView>> views_;  // as paths_
    std::vector<std::string> shown_;                      // names of parts, for File; empty for a model in one file
    File file_;
};

}  // namespace gguf
