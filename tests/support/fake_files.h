// Files in memory behind the file seam: what they hold, whether they change while being read, and how many are open.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace support {

class FakeFiles final : public base::FileSystem {
  public:
    std::map<std::string, std::vector<std::byte>> files;
    bool changed_while_read = false;
    mutable int opened = 0, open_now = 0;

    base::Result<std::unique_ptr<base::FileView>> open_mapped(const std::string& path) const override {
        const auto it = files.find(path);
        if (it == files.end()) return base::Error{base::ErrorCode::io, path + ": no such file", ""};
        ++opened;
        return std::unique_ptr<base::FileView>(std::make_unique<View>(*this, it->second));
    }

  private:
    class View final : public base::FileView {
      public:
        View(const FakeFiles& files, std::vector<std::byte> content) : files_(files), content_(std::move(content)) { ++files_.open_now; }
        // What still looked at the file would see other weights, and under a sanitizer freed memory.
        ~View() override { --files_.open_now; }
        std::span<const std::byte> bytes() const override { return content_; }
        base::Result<void> check_unchanged() const override {
            if (files_.changed_while_read) return base::Error{base::ErrorCode::io, "the file changed while it was read", ""};
            return {};
        }

      private:
        const FakeFiles& files_;
        std::vector<std::byte> content_;
    };
};

}  // namespace support
